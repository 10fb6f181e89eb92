// Package engine runs operators: it observes, asks Sync, plans, applies and
// reports, and does so again until the world is as desired.
//
// The heart is [Core], a deterministic step machine without goroutines, clock or
// client. Around it stands a thin shell, added to a controller-runtime manager
// by [Add], that brings it events and the time and carries out its operations:
//
//	reflect ──▶ Core.Observe ──▶ world         events, own writes folded in
//	              │ wakes parents
//	Core.Next ──▶ Pass.Step ──▶ plan.Op ──▶ apply ──▶ Pass.Done
//	              │ gather, Sync, plan, report        the answer, folded at once
//	Core.Finish ◀─┘ backoff, timers
//
// What was done is remembered in a [Record] for each parent, served beside the
// metrics, and told in an event that sums it up, when nothing else is due.
//
// The engine knows no operator. Its invariant: in a world at rest a pass yields
// no operation, reads included. It decides from the observed world and the saved
// status only; what it remembers besides (proofs that an apply would change
// nothing, events told, failures counted) may be lost at any moment and costs
// some requests, never correctness.
package engine
