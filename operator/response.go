package operator

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is any API object: a typed one such as *appsv1.Deployment, or an
// *unstructured.Unstructured.
type Object interface {
	metav1.Object
	runtime.Object
}

// Response is what ought to be.
type Response struct {
	// Status is the parent's whole new status: a struct or a map. Nil writes
	// conditions only. "conditions" and "observedGeneration" in it are the
	// engine's and are ignored here.
	Status any
	// Children is the complete list of desired children. One that is observed
	// and not listed is deleted; see [Keep] and [SetIfUnchanged].
	Children []Object
	// Parent, for the rare operator that writes to its own parent's spec, is
	// the parent with fields changed. The declared ParentSets are written where
	// they differ, after the children and before the status, unless somebody
	// has changed the parent since Sync saw it: then nothing is written and
	// Sync is asked again. Whatever else differs is ignored.
	Parent Object
	// Until is how long the answer holds while the world does not change; the
	// engine asks again then. Zero: for ever.
	Until time.Time
	// Conditions are conditions of the author's own: type, status, reason and
	// message; times and generations are kept by the engine. Ready,
	// Reconciling and Stalled are derived by the engine where Sync does not say
	// them, and always while something is wrong that Sync does not know of.
	Conditions []metav1.Condition
	// Events are told once each, at the end of the pass that made them true: only
	// those of the settled answer count, so return one as long as it is true.
	Events []Event
}

// Event is something worth telling the owner of the parent. It is level
// triggered: return it while it is true, it is sent when it becomes true.
type Event struct {
	// Type is Normal (also when empty) or Warning.
	Type string
	// Reason is one CamelCase word, Message a sentence.
	Reason, Message string
	// Key tells occurrences apart; within an hour an event with the same key is
	// told once. Empty: reason and message.
	Key string
}

// Keep lists an observed child unchanged: a finished Job, a piece of history.
func Keep(child Object) Object { return &kept{child} }

type kept struct{ Object }

// SetIfUnchanged lists a child and writes the named create-only fields of it
// too, such as "spec.position", fenced by the version in which observed was
// seen: a decision made on an old read must not overwrite a newer edit. If the
// object has changed meanwhile nothing is written and Sync is asked again.
func SetIfUnchanged(child, observed Object, fields ...string) Object {
	return &fenced{Object: child, version: observed.GetResourceVersion(), fields: fields}
}

type fenced struct {
	Object
	version string
	fields  []string
}
