package engine

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/homeostat-dev/homeostat/engine/plan"
	"github.com/homeostat-dev/homeostat/engine/world"
	"github.com/homeostat-dev/homeostat/operator"
)

// refusals is what went wrong with the operations of a pass.
type refusals struct {
	// refused are the children that the API server would not take.
	refused map[operator.Ref]plan.Problem
	// statusRefused is why the status could not be saved, nil when it could.
	statusRefused error
	// transient is what will pass by itself and ended the pass.
	transient error
	// unstable is set once Sync has used up its rounds.
	unstable *operator.Failure
	// conflicts counts answers that said the cache was behind.
	conflicts int
	// terminating is true when the namespace takes nothing new, events included.
	terminating bool
	// asked is true once the parent was to be read live in this pass, live once it was.
	asked, live bool
	// badStatus is set once the API server called the status that Sync wants invalid.
	badStatus error
	// stack is where Sync panicked, for the log.
	stack string
}

// verdict is what an error means for the pass.
type verdict int

const (
	verdictGoOn   verdict = iota // recorded; the rest of the pass goes on
	verdictReread                // the cache was behind: read the object, decide again
	verdictGone                  // the object is not there any more
	verdictOver                  // end the pass and come back later
)

// mostConflicts ends a pass that keeps losing races; it comes back after a wait.
const mostConflicts = 8

// judge decides what an error means. It is the one place that does.
func (p *Pass) judge(op plan.Op, err error) verdict {
	switch {
	case op.Verb == plan.Tell:
		return verdictGoOn // An event that exists was told before; one that cannot be told is not worth a retry.
	case op.Verb == plan.Read && apierrors.IsNotFound(err), op.Verb == plan.Delete && apierrors.IsNotFound(err):
		return verdictGone
	case behind(op, err):
		if p.conflicts++; p.conflicts > mostConflicts {
			p.transient = err
			return verdictOver
		}
		return verdictReread
	case passing(err) && (op.Verb == plan.Read || p.memory.failures < 3 || !apierrors.IsInternalError(err)):
		p.transient = err
		return verdictOver
	}
	p.refuse(op, err)
	return verdictGoOn
}

// behind reports whether the error says that the object is not the one the
// operation meant. An apply with a UID answers 409 where nothing is and 422
// where another object is; an exclusive creation answers 409.
func behind(op plan.Op, err error) bool {
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return true
	case apierrors.IsInvalid(err):
		details := statusOf(err).Details
		return op.UID != "" && details != nil &&
			slices.ContainsFunc(details.Causes, func(c metav1.StatusCause) bool { return c.Field == "metadata.uid" })
	case apierrors.IsNotFound(err):
		return op.Verb == plan.Strip || op.Verb == plan.Adopt || op.Verb == plan.Release || op.Verb == plan.Status || op.Verb == plan.Set
	}
	return false
}

// passing reports whether an error is likely to pass by itself: everything that
// is no answer of the API server, and its answers that speak of load or of a defect.
func passing(err error) bool {
	return apierrors.ReasonForError(err) == metav1.StatusReasonUnknown && !isAnswer(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) || apierrors.IsUnauthorized(err)
}

// isAnswer reports whether the error is an answer with a 4xx code and no reason.
func isAnswer(err error) bool {
	code := statusOf(err).Code
	return code >= 400 && code < 500
}

// statusOf is what the API server answered, empty where it was not asked.
func statusOf(err error) metav1.Status {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status()
	}
	return metav1.Status{}
}

func (p *Pass) refuse(op plan.Op, err error) {
	problem := describe(op, err)
	if problem.Reason == "NamespaceTerminating" {
		p.terminating = true
	}
	if op.Verb == plan.Status && apierrors.IsInvalid(err) && p.badStatus == nil {
		p.badStatus = operator.Stall("StatusRefused", "%s", problem.Message)
		return // What the engine itself has to say may still be saved.
	}
	if op.Ref().Kind == p.core.operator.Parent.GroupVersionKind && op.Verb != plan.Set {
		p.statusRefused = fmt.Errorf("%s %v: %w", op.Verb, op.Ref(), err)
		return
	}
	p.refused[op.Ref()] = problem
}

// describe says for people what the API server would not take, and what to do.
func describe(op plan.Op, err error) plan.Problem {
	problem := plan.Problem{Ref: op.Ref(), Reason: "Refused", Human: true}
	tell := func(reason, advice string) {
		problem.Reason = reason
		problem.Message = fmt.Sprintf("%s %v: %s (%s)", op.Verb, op.Ref(), advice, quote(op, err))
	}
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		tell("NamespaceTerminating", "the namespace is being deleted and takes nothing new")
	case apierrors.IsNotFound(err) && kindOfDetails(err) == "namespaces":
		tell("NamespaceMissing", "create the namespace")
	case apierrors.IsNotFound(err):
		tell("KindNotServed", "install the CustomResourceDefinition of the kind")
	case apierrors.IsForbidden(err):
		tell("Forbidden", "a quota, a policy, or a permission that the role printed by manifests --only rbac gives; it is tried again from time to time")
	case apierrors.IsInvalid(err):
		tell("Refused", "the API server calls it invalid; change the parent's spec or the operator")
	default:
		tell("Refused", "the API server would not take it")
	}
	return problem
}

// quote is what the API server said, in the few words that people need: the
// fields it does not like and why, without the values. Of a Secret only the kind
// of error is told.
func quote(op plan.Op, err error) string {
	if op.Kind.Kind == "Secret" && op.Kind.Group == "" {
		return cmp.Or(string(apierrors.ReasonForError(err)), "no reason given")
	}
	details := statusOf(err).Details
	if details == nil || len(details.Causes) == 0 {
		return fmt.Sprintf("%.400v", err)
	}
	const most = 3
	var parts []string
	for _, c := range details.Causes[:min(most, len(details.Causes))] {
		parts = append(parts, strings.TrimPrefix(fmt.Sprintf("%s: %.200s", c.Field, withoutValue(c.Message)), ": "))
	}
	if more := len(details.Causes) - most; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}

// withoutValue takes the value out of what field.Error says of a field,
// "Invalid value: "x": must be …".
func withoutValue(message string) string {
	kind, rest, ok := strings.Cut(message, " value: ") // "Required value" comes without one.
	if !ok || kind == "Required" {
		return message
	}
	if quoted, err := strconv.QuotedPrefix(rest); err == nil {
		rest = rest[len(quoted):]
	} else if _, after, found := strings.Cut(rest, ": "); found {
		rest = ": " + after
	}
	return kind + " value" + rest
}

func kindOfDetails(err error) string {
	if details := statusOf(err).Details; details != nil {
		return details.Kind
	}
	return ""
}

func (p *Pass) sortedRefusals() []plan.Problem {
	return slices.SortedFunc(maps.Values(p.refused), func(a, b plan.Problem) int {
		if a.Ref.String() < b.Ref.String() {
			return -1
		}
		return 1
	})
}

// cost reports whether a pass that failed asked Sync or the API server in vain;
// one that only found a name taken or a kind missing did not.
func (p *Pass) cost() bool {
	return p.transient != nil || p.failure != nil || len(p.refused) > 0 || p.statusRefused != nil
}

// wait is how long to wait before the parent is tried again: what the author
// asked for, or the backoff, or what the server asked for where that is longer.
func (p *Pass) wait(backoff time.Duration) time.Duration {
	if p.transient == nil && p.failure != nil && p.failure.After > 0 {
		return max(p.failure.After, p.core.options.FirstBackoff)
	}
	if seconds, ok := apierrors.SuggestsClientDelay(p.transient); ok {
		return max(backoff, time.Duration(seconds)*time.Second)
	}
	return backoff
}

// Err is what kept the parent from coming to rest, nil when it did.
func (p *Pass) Err() error {
	switch {
	case p.transient != nil:
		return p.transient
	case p.failure != nil:
		return p.failure
	case p.statusRefused != nil:
		return p.statusRefused
	}
	if all := append(slices.Clone(p.problems), p.sortedRefusals()...); len(all) > 0 {
		return &operator.Failure{Kind: operator.FailureStalled, Reason: all[0].Reason, Message: all[0].Message}
	}
	return nil
}

// Stack is where Sync panicked; empty when it did not.
func (p *Pass) Stack() string { return p.stack }

// note passes on what a write of this pass changed to the other parents.
func (p *Pass) note(change world.Change, news bool) {
	if news {
		p.core.concern(change, p.memory.name)
	}
}
