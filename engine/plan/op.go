// Package plan compares what ought to be with what is and says, as an ordered
// list of API operations with a reason on each, what would make them equal. It
// is pure: no client, no clock, no memory but the Memo it is given. Its
// invariant: the plan for a world in which a plan was carried out is empty.
package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/homeostat-dev/homeostat/operator"
)

// Verb is what an operation does.
type Verb string

// The operations an engine performs. Every write is fenced: a creation is
// exclusive, a change and a deletion carry the UID of the object they mean.
const (
	// Create makes an object that must not exist, by an apply that carries
	// resourceVersion "1": no object has it, so an existing one answers 409 and
	// its fields are owned as by every later apply.
	Create Verb = "create"
	// Apply is a forced server-side apply of the fields that Sync sets.
	Apply Verb = "apply"
	// Strip takes foreign entries out of lists that are owned whole; a JSON
	// merge patch fenced by UID and resourceVersion.
	Strip Verb = "strip"
	// Adopt makes the parent the controller of an object; Release ends it.
	// Both are JSON merge patches fenced by UID and resourceVersion.
	Adopt   Verb = "adopt"
	Release Verb = "release"
	// Set writes declared fields of the parent's own spec: a JSON merge patch
	// fenced by UID and resourceVersion. An apply would own them for good.
	Set Verb = "set"
	// Delete removes an object, in the background.
	Delete Verb = "delete"
	// Status applies the parent's status subresource.
	Status Verb = "status"
	// Tell creates an Event under a name made of its key, so that telling twice
	// is a 409 and no second event.
	Tell Verb = "tell"
	// Read gets the live object, after an answer that said the cache was behind.
	Read Verb = "get"
)

// Op is one API operation. An Op is complete: it can be carried out, printed
// and recorded without its context.
type Op struct {
	Verb      Verb          `json:"verb"`
	Kind      operator.Kind `json:"-"`
	Namespace string        `json:"namespace,omitempty"`
	Name      string        `json:"name"`

	// Manager is the field manager of an apply.
	Manager string `json:"-"`
	// Body is what is sent: the object of an apply or an event, the patch of a
	// strip, adopt or release; nil for get and delete.
	Body map[string]any `json:"body,omitempty"`
	// UID and ResourceVersion fence the operation where they are not empty.
	UID             types.UID `json:"uid,omitempty"`
	ResourceVersion string    `json:"resourceVersion,omitempty"`

	// Reason says why in words, Changes what would differ, for people.
	Reason  string   `json:"reason"`
	Changes []Change `json:"changes,omitempty"`

	// desired and skip are what the answer to an apply proves, see Prove.
	desired map[string]any
	skip    []string
	// seen is the version of the object that an apply was planned on.
	seen string
}

// Seen is the version of the object that an apply was planned on; an answer with
// the same version says that nothing was changed.
func (o Op) Seen() string { return o.seen }

// Desired is a digest of what an apply wants of its object; equal digests want
// the same.
func (o Op) Desired() string { return digest(o.desired) }

// Prove tells the memo what the answer to a creation or an apply proves.
func (o Op) Prove(m *Memo, result *unstructured.Unstructured) {
	switch {
	case result == nil:
	case o.Verb == Create || o.Verb == Apply:
		m.Prove(o.desired, result, o.Manager, "", o.skip)
	case o.Verb == Status:
		m.Prove(o.desired, result, o.Manager, "status", o.skip)
	}
}

// Change is one field that an operation changes. Values are JSON values; nil is absent.
type Change struct {
	Path     string `json:"path"`
	From, To any    `json:",omitempty"`
}

// Ref names the operation's object.
func (o Op) Ref() operator.Ref {
	return operator.Ref{Kind: o.Kind.GroupVersionKind, Namespace: o.Namespace, Name: o.Name}
}

// String is the operation on one line: "apply Deployment default/web: spec.replicas differs".
func (o Op) String() string { return fmt.Sprintf("%s %v: %s", o.Verb, o.Ref(), o.Reason) }

// Writes reports whether the operation may change something.
func (o Op) Writes() bool { return o.Verb != Read }

// Result is the answer to an operation. Err is what the API server or the
// network said, as an apimachinery API status error where it was one. Object is
// the object as the server has it now, nil where the operation left none.
type Result struct {
	Object *unstructured.Unstructured
	Err    error
}

// Describe is the list of changes in a few words: the paths, the first few of them.
func Describe(changes []Change) string {
	const most = 3
	paths := make([]string, 0, len(changes))
	for _, c := range changes {
		paths = append(paths, c.Path)
	}
	slices.Sort(paths)
	if extra := len(paths) - most; extra > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(paths[:most], ", "), extra)
	}
	return strings.Join(paths, ", ")
}
