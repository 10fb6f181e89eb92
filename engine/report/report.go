// Package report derives what an engine tells people: the parent's status with
// its conditions, and events. It is pure and never a source of decisions: no
// condition is read back as an input. Its invariant: told twice about the same
// facts it says the same, so that a status that says it already is not written.
package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/homeostat-dev/homeostat/engine/plan"
	"github.com/homeostat-dev/homeostat/operator"
)

// The condition types that the engine keeps, as kstatus reads them: Ready is
// the summary, Reconciling is true while things move, Stalled while they cannot.
const (
	Ready       = "Ready"
	Reconciling = "Reconciling"
	Stalled     = "Stalled"
)

// Facts are what a pass found out about one parent.
type Facts struct {
	// Parent is the parent as it stands.
	Parent *unstructured.Unstructured
	// Decision is what Sync answered, nil when it failed; Failure is why.
	Decision *operator.Decision
	Failure  *operator.Failure
	// Problems are children that cannot be made, Waiting those on their way out.
	Problems []plan.Problem
	Waiting  []operator.Ref
	// Standing is what stands at a child's name, nil for nothing.
	Standing func(operator.Ref) *unstructured.Unstructured
	Now      time.Time
}

// Status is the status that the parent ought to have, nil when it has none.
func (s *Shape) Status(f Facts) map[string]any {
	var status map[string]any
	switch {
	case f.Decision == nil:
		status = s.ownStatus(f.Parent)
	case f.Decision.Status != nil:
		status = s.pruned(f.Decision.Status)
	}
	if status == nil {
		status = map[string]any{}
	}
	if s.generation {
		status["observedGeneration"] = f.Parent.GetGeneration()
	}
	if s.conditions {
		status["conditions"] = s.merged(f)
	}
	if len(status) == 0 {
		return nil
	}
	return status
}

// merged are the conditions with the times they had where they did not change.
// After a failure the author's conditions stand as they were.
func (s *Shape) merged(f Facts) []any {
	observed := observedConditions(f.Parent)
	conditions := summary(f)
	if f.Decision != nil {
		for _, c := range f.Decision.Conditions {
			if !slices.ContainsFunc(conditions, func(o metav1.Condition) bool { return o.Type == c.Type }) {
				conditions = append(conditions, c)
			}
		}
	} else {
		for t, c := range observed {
			if t != Ready && t != Reconciling && t != Stalled && s.ours(f.Parent, t) {
				conditions = append(conditions, metav1.Condition{Type: t,
					Status: metav1.ConditionStatus(text(c, "status")), Reason: text(c, "reason"), Message: text(c, "message")})
			}
		}
	}
	slices.SortStableFunc(conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	out := make([]any, 0, len(conditions))
	for _, c := range conditions {
		since := f.Now.UTC().Format(time.RFC3339)
		if old := observed[c.Type]; old != nil && text(old, "status") == string(c.Status) && text(old, "lastTransitionTime") != "" {
			since = text(old, "lastTransitionTime")
		}
		out = append(out, map[string]any{
			"type": c.Type, "status": string(c.Status), "reason": c.Reason, "message": c.Message,
			"observedGeneration": f.Parent.GetGeneration(), "lastTransitionTime": since,
		})
	}
	return out
}

// summary is Ready, Reconciling and Stalled, from the worst fact down.
func summary(f Facts) []metav1.Condition {
	reason, message, human := trouble(f)
	switch {
	case reason == "":
		return authored(f, append([]metav1.Condition{condition(Ready, true, "Ready", "everything is as desired")}, moving(false, false, "", "")...))
	case human:
		return append([]metav1.Condition{condition(Ready, false, reason, message)}, moving(false, true, reason, message)...)
	}
	return append([]metav1.Condition{condition(Ready, false, reason, message)}, moving(true, false, reason, message)...)
}

// authored are the engine's conditions with the author's in their place where
// Sync says them: it may know better than the children whether a parent is
// ready, and that one which failed for good is stalled.
func authored(f Facts, conditions []metav1.Condition) []metav1.Condition {
	for i, c := range conditions {
		if a := authors(f, c.Type); a != nil {
			conditions[i] = *a
		}
	}
	return conditions
}

// trouble is the first reason why the parent is not ready, and whether a human
// must act; an empty reason means that there is none.
func trouble(f Facts) (reason, message string, human bool) {
	switch {
	case f.Failure != nil:
		return f.Failure.Reason, f.Failure.Message, f.Failure.Kind != operator.FailureRetry
	case len(f.Problems) > 0:
		return f.Problems[0].Reason, problems(f.Problems), slices.ContainsFunc(f.Problems, func(p plan.Problem) bool { return p.Human })
	case len(f.Waiting) > 0:
		return "Recreating", fmt.Sprintf("%v is on its way out and will be made anew", f.Waiting[0]), false
	case authors(f, Ready) != nil:
		return "", "", false
	}
	return unready(f)
}

func problems(all []plan.Problem) string {
	const most = 3
	var parts []string
	for _, p := range all[:min(most, len(all))] {
		parts = append(parts, p.Message)
	}
	if more := len(all) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}

// unready is the first child that kstatus does not call current.
func unready(f Facts) (reason, message string, human bool) {
	for _, d := range f.Decision.Children {
		if d.Keep {
			continue
		}
		child := f.Standing(d.Ref())
		if child == nil {
			return "ChildrenInProgress", fmt.Sprintf("%v is not there yet", d.Ref()), false
		}
		result, err := kstatus.Compute(child)
		switch {
		case failedPod(child):
			return "ChildFailed", fmt.Sprintf("%v: the pod has failed", d.Ref()), true
		case err != nil || result.Status == kstatus.CurrentStatus:
		case result.Status == kstatus.FailedStatus:
			return "ChildFailed", fmt.Sprintf("%v: %s", d.Ref(), result.Message), true
		default:
			return "ChildrenInProgress", fmt.Sprintf("%v: %s", d.Ref(), result.Message), false
		}
	}
	return "", "", false
}

// failedPod is true of a pod that has ended badly. To kstatus it is current,
// because nothing moves any more; what wanted it to run is not ready.
func failedPod(o *unstructured.Unstructured) bool {
	phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
	return o.GetKind() == "Pod" && o.GetAPIVersion() == "v1" && phase == "Failed"
}

// authors is the condition of a type that Sync says, nil when it does not.
func authors(f Facts, conditionType string) *metav1.Condition {
	if f.Decision == nil {
		return nil
	}
	i := slices.IndexFunc(f.Decision.Conditions, func(c metav1.Condition) bool { return c.Type == conditionType })
	if i < 0 {
		return nil
	}
	return &f.Decision.Conditions[i]
}

func moving(reconciling, stalled bool, reason, message string) []metav1.Condition {
	say := func(kind string, is bool) metav1.Condition {
		if is {
			return condition(kind, true, reason, message)
		}
		return condition(kind, false, "No", "")
	}
	return []metav1.Condition{say(Reconciling, reconciling), say(Stalled, stalled)}
}

func condition(kind string, is bool, reason, message string) metav1.Condition {
	status := metav1.ConditionFalse
	if is {
		status = metav1.ConditionTrue
	}
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: bounded(message)}
}

func observedConditions(parent *unstructured.Unstructured) map[string]map[string]any {
	list, _, _ := unstructured.NestedSlice(parent.Object, "status", "conditions")
	out := map[string]map[string]any{}
	for _, e := range list {
		if c, ok := e.(map[string]any); ok {
			out[text(c, "type")] = c
		}
	}
	return out
}

func text(m map[string]any, field string) string { s, _ := m[field].(string); return s }
