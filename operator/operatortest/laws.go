package operatortest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/homeostat-dev/homeostat/operator"
)

// asks is how often the same question is asked: enough that an answer in the
// order of a Go map gives itself away.
const asks = 10

// LawError says which law of the contract an operator breaks, and where.
type LawError struct{ message string }

func (e *LawError) Error() string { return e.message }

func broken(format string, args ...any) error {
	return &LawError{message: fmt.Sprintf(format, args...)}
}

// Check holds the operator to the laws of the contract in one world and at the
// world's point of rest. A failure that Sync returns is an answer like others.
func Check(op *operator.Operator, w World) error {
	if err := errors.Join(checkMutation(op, w), checkSameAnswer(op, w)); err != nil {
		return err
	}
	settled, err := Settle(op, w)
	if err != nil {
		if law, ok := errors.AsType[*LawError](err); ok {
			return law
		}
		return nil
	}
	return errors.Join(checkSameAnswer(op, settled.World), checkTime(op, settled))
}

// checkMutation asks Sync itself: Decide works on copies, which would hide it.
func checkMutation(op *operator.Operator, w World) error {
	request := w.Request(op)
	before := questionValues(request)
	if p := callSync(op, request); p != nil {
		return nil // Decide reports a panic.
	}
	if path, was, is := firstDifference(before, questionValues(request)); path != "" {
		return broken("Sync changes what it was given: %s goes from %s to %s", path, was, is)
	}
	return nil
}

func callSync(op *operator.Operator, r operator.Request) (panicked any) {
	defer func() { panicked = recover() }()
	// The answer does not matter here, a failure neither.
	_, _ = op.Sync(r)
	return nil
}

func questionValues(r operator.Request) map[string]any {
	taken := []string{}
	for _, t := range r.Taken {
		taken = append(taken, t.String())
	}
	return roundTrip(map[string]any{
		"parent": r.Parent.Object, "children": byRef(r.Children.Items()), "related": byRef(r.Related.Items()), "taken": taken,
	})
}

func byRef(items []*unstructured.Unstructured) map[string]any {
	out := map[string]any{}
	for _, u := range items {
		out[ref(u).String()] = u.Object
	}
	return out
}

// checkSameAnswer asks the same question often, with the lists in other orders.
func checkSameAnswer(op *operator.Operator, w World) error {
	first, firstErr := op.Decide(w.Request(op))
	want := answerValues(first)
	for i := range asks {
		again := w.clone()
		if i%2 == 1 {
			slices.Reverse(again.Children)
			slices.Reverse(again.Related)
			slices.Reverse(again.Taken)
		}
		d, err := op.Decide(again.Request(op))
		if !reflect.DeepEqual(errorText(err), errorText(firstErr)) {
			return broken("asked again about the same world, Sync's error is %q and was %q", errorText(err), errorText(firstErr))
		}
		if path, was, is := firstDifference(want, answerValues(d)); path != "" {
			return broken("asked again about the same world, Sync answers otherwise: %s goes from %s to %s", path, was, is)
		}
	}
	return nil
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return renderError(err)
}

// checkTime holds a settled answer to the time law.
func checkTime(op *operator.Operator, s Settled) error {
	w, until := s.World, s.Decision.Until
	if !until.IsZero() && !until.After(w.Now) {
		return broken("the settled answer holds until %s, which is not after now, %s: Sync would be asked for ever", until, w.Now)
	}
	want := answerValues(s.Decision)
	for _, at := range instants(w.Now, until) {
		w.Now = at
		d, err := op.Decide(w.Request(op))
		if err != nil {
			return broken("time law: at %s Sync fails (%v) although its answer of %s holds %s", stamp(at), err, stamp(s.World.Now), untilText(until))
		}
		if path, was, is := firstDifference(want, answerValues(d)); path != "" {
			return broken("time law: at %s %s goes from %s to %s although the answer of %s holds %s",
				stamp(at), path, was, is, stamp(s.World.Now), untilText(until))
		}
	}
	return nil
}

// instants are moments at which an answer given at now still has to hold.
func instants(now, until time.Time) []time.Time {
	out := []time.Time{}
	for _, d := range []time.Duration{time.Microsecond, time.Second, time.Minute, time.Hour, 365 * 24 * time.Hour} {
		if at := now.Add(d); until.IsZero() || at.Before(until) {
			out = append(out, at)
		}
	}
	if !until.IsZero() {
		for _, at := range []time.Time{now.Add(until.Sub(now) / 2).Truncate(time.Microsecond), until.Add(-time.Microsecond)} {
			if at.After(now) {
				out = append(out, at)
			}
		}
	}
	return out
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func untilText(until time.Time) string {
	if until.IsZero() {
		return "for ever"
	}
	return "until " + stamp(until)
}
