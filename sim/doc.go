// Package sim is a small deterministic world in which the shipped engine core
// runs: an API server in memory, caches that lag, a few actors that play the
// rest of a cluster, users with a script, and faults. It is single-threaded,
// has no clock but the virtual one, and never touches a network or a file. Its
// invariant: the same scenario under the same schedule and fault gives the same
// trace, byte for byte.
//
// # What is real
//
// The core under test is the one that ships. Server-side apply is the
// algorithm of the real API server, taken as a library, with the real types:
// those of Kubernetes for built-in kinds, the schema of the definition for
// custom ones. Pruning, defaulting, schema and CEL validation of custom
// resources are the real ones too. The rest of [Server] was written for this
// package; its tests are the table of what was seen on a real API server.
//
// # What is not
//
// Defaults, validation and the controllers of built-in kinds are the few that
// operators notice. Everything this package prints says that it is simulated.
//
// # A torture
//
// [Torture] runs a [Scenario] once without faults, which gives the reference,
// and then once for every write of the reference and every fault at it: the
// process dies before or after it, its response is lost, it is refused. A
// process that died starts again from lists that are fresh, or legally stale.
// Every run must end where the reference ended, with the same objects created
// and deleted, and then be silent.
package sim
