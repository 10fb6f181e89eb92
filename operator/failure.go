package operator

import (
	"errors"
	"fmt"
	"time"
)

// FailureKind says what has to happen before asking again can help.
type FailureKind string

const (
	// FailureRetry passes by itself: ask again after a while.
	FailureRetry FailureKind = "Retry"
	// FailureStalled needs a human; asking again is cheap and rare.
	FailureStalled FailureKind = "Stalled"
	// FailureInvalid needs the parent's spec to change.
	FailureInvalid FailureKind = "Invalid"
	// FailureUnstable is the engine's own: Sync kept changing its answer.
	FailureUnstable FailureKind = "Unstable"
)

// Failure is an error with a consequence. Sync returns one through [Retry],
// [Stall] or [Invalid]; any other error counts as a retry with reason
// "SyncFailed". While Sync fails, children stay as they are.
type Failure struct {
	Kind FailureKind
	// Reason is the CamelCase word that becomes the condition's and the event's reason.
	Reason string
	// Message is for the person who owns the parent: what is wrong, what to do.
	Message string
	// After is when to ask again; zero leaves it to the engine's backoff.
	After time.Duration
}

func (f *Failure) Error() string { return f.Reason + ": " + f.Message }

// Retry says that asking again after a while may help, for example when
// something outside the cluster is not ready. Zero leaves the wait to the
// engine's backoff.
func Retry(after time.Duration, reason, format string, args ...any) error {
	return &Failure{Kind: FailureRetry, Reason: reason, Message: fmt.Sprintf(format, args...), After: after}
}

// Stall says that a human must act; the message says how.
func Stall(reason, format string, args ...any) error {
	return &Failure{Kind: FailureStalled, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Invalid says that one field of the parent, such as "spec.size", cannot be
// used. What a schema can refuse, the CRD should refuse instead.
func Invalid(field, format string, args ...any) error {
	return &Failure{Kind: FailureInvalid, Reason: "InvalidField", Message: field + ": " + fmt.Sprintf(format, args...)}
}

// ReasonPanicked is the reason of a Sync or a selector that panicked.
const ReasonPanicked = "SyncPanicked"

// AsFailure is err as a Failure: itself where it is one, stalled for a panic,
// otherwise a retry.
func AsFailure(err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	if p, ok := errors.AsType[*Panicked](err); ok {
		return &Failure{Kind: FailureStalled, Reason: ReasonPanicked, Message: p.Error()}
	}
	return &Failure{Kind: FailureRetry, Reason: "SyncFailed", Message: err.Error()}
}
