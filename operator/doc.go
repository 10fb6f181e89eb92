// Package operator is the contract between an operator and whatever runs it.
// It holds values only: no client, no network, no clock, no goroutine.
//
// # An operator is a function
//
// An author writes Sync: from what is observed to what ought to be. [Declare]
// makes an [Operator] of it, a value that says which kind of parent it looks
// after, which kinds of children it makes and which kinds it only reads.
// Drivers run that value: the engine in a cluster, render from a file, plan
// against a live cluster without changing it, a simulator with faults.
//
//	observed ──▶ Sync(parent, Request) ──▶ Response: status, children, until, events
//
// The invariant on which all drivers build: the same request gets the same
// response. Sync must not look at the clock (use Request.Now), call anything,
// keep anything, or change what it was given.
//
// # Children
//
// Response.Children is the complete list. A child that is observed and not
// listed is deleted; [Keep] lists one unchanged. What Sync sets in a child is
// owned and healed; what it leaves empty belongs to whoever sets it. Of a typed
// child, empty means: null, an empty struct held by value, a status. A typed
// struct cannot say "zero on purpose" for every field; an unstructured child can,
// because it is taken as it stands.
//
// Names are deterministic, so that a lost response never means a second object:
// either fixed, or [Name] of a key. Two kinds of fields need a word in the
// declaration: Child.CreateOnly for fields that others change after creation
// (replicas under an autoscaler), Child.OwnedLists for lists in which a foreign
// entry does harm (the ports of a Service). [SetIfUnchanged] writes a
// create-only field later, unless somebody else was faster.
//
// An operator writes its parent's status and, as a rule, nothing else of it. One
// whose point is to change the parent's own spec (a switch that goes back by
// itself) declares the fields in ParentSets and returns the changed parent in
// Response.Parent; that write is fenced like SetIfUnchanged.
//
// # Saved status
//
// The status that Sync sees is durable. First the children are settled, then
// fields of the parent's own spec, if any, then the status is written if it
// changed; after each Sync is asked again on what was written, until nothing
// changes. Time stands still meanwhile. Hence: save first, act when you see it saved.
// A measurement goes into the status in one round; the pods that made it are
// dropped from the list in the round that sees it there.
//
//	round 1   sees: pod succeeded          says: status Done, children: pods
//	round 2   sees: status Done            says: status Done, children: none
//
// Killed between the two, the operator starts again at one of them; nothing is
// lost and nothing happens twice. A Sync that never comes to rest is stopped
// and reported as Unstable.
//
// # Time
//
// A settled answer holds until the time it names in Response.Until: asked at
// any earlier moment about the same world, Sync gives the same answer. This is
// the time law. It makes timers safe (write down when you saw something, return
// Until, act when Now is there) and timestamp loops impossible; operatortest
// checks it.
//
// # Failures
//
// [Retry], [Stall] and [Invalid] say what must happen before asking again can
// help. While Sync fails, children stay as they are, and the parent's
// conditions say why.
package operator
