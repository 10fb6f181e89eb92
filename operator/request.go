package operator

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Request is everything that Sync may depend on.
type Request struct {
	// Parent is the object asked about, with its saved status.
	Parent *unstructured.Unstructured
	// Children are the objects of the declared child kinds that the parent controls.
	Children Objects
	// Related are the objects that the declared Reads select.
	Related Objects
	// Now is the time of the pass, in UTC, to the microsecond: what
	// metav1.MicroTime stores. It stands still while a pass settles.
	Now time.Time
	// Deleting is true when the parent is being deleted. Status still counts
	// then; children are no longer created or changed.
	Deleting bool
	// Taken are the objects of others that stand where Sync's earlier answers
	// in this pass wanted a child.
	Taken []Ref
}

// IsTaken reports whether a child of type T cannot have the name because
// somebody else's object has it. An author who generates names then picks
// another key; one whose names are fixed need not ask: the engine reports
// ForeignOwner.
func IsTaken[T any](r Request, name string) bool {
	kind := reflect.TypeFor[T]().Name()
	return slices.ContainsFunc(r.Taken, func(t Ref) bool { return t.Kind.Kind == kind && t.Name == name })
}

// Objects is a set of observed objects, sorted by kind, namespace and name. It
// is read with [List] and [Get].
type Objects struct {
	items     []*unstructured.Unstructured
	kinds     map[reflect.Type]schema.GroupVersionKind
	namespace string
}

// List is every object of type T, each a copy of its own, sorted by namespace
// and name. It panics when the operator does not declare T, because an empty
// list would hide the mistake.
func List[T any](o Objects) []*T {
	var out []*T
	for _, u := range o.ofKind(o.kindOf(reflect.TypeFor[T]())) {
		out = append(out, into[T](u))
	}
	return out
}

// Get is the object of type T with the name, in the parent's namespace or
// cluster-scoped, as a copy; nil when there is none. It panics when the
// operator does not declare T.
func Get[T any](o Objects, name string) *T {
	for _, u := range o.ofKind(o.kindOf(reflect.TypeFor[T]())) {
		if u.GetName() == name && (u.GetNamespace() == "" || u.GetNamespace() == o.namespace) {
			return into[T](u)
		}
	}
	return nil
}

// Items is every object, as a copy of its own.
func (o Objects) Items() []*unstructured.Unstructured {
	out := make([]*unstructured.Unstructured, len(o.items))
	for i, u := range o.items {
		out[i] = u.DeepCopy()
	}
	return out
}

func (o Objects) kindOf(t reflect.Type) schema.GroupVersionKind {
	gvk, ok := o.kinds[t]
	if !ok {
		panic(fmt.Sprintf("%v is not among the operator's declared Children or Reads", t))
	}
	return gvk
}

func (o Objects) ofKind(gvk schema.GroupVersionKind) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, u := range o.items {
		if u.GroupVersionKind() == gvk {
			out = append(out, u)
		}
	}
	return out
}

// read is an object as its Go type. A stored object need not fit: the schema may
// be wider than the type, as for a time without microseconds in a MicroTime.
func read[T any](u *unstructured.Unstructured) (*T, error) {
	out := new(T)
	// The converter shares slices and maps with its input where it can.
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.DeepCopy().Object, out); err != nil {
		return nil, fmt.Errorf("%v does not fit %T: %w", Desired{Object: u}.Ref(), out, err)
	}
	return out, nil
}

func into[T any](u *unstructured.Unstructured) *T {
	out, err := read[T](u)
	if err != nil {
		panic(err)
	}
	return out
}

// SortObjects sorts by apiVersion, kind, namespace and name, the order of
// everything that is compared or written: lists from caches have none.
func SortObjects[O interface {
	metav1.Object
	runtime.Object
}](objects []O) {
	slices.SortFunc(objects, func(a, b O) int {
		x, y := a.GetObjectKind().GroupVersionKind(), b.GetObjectKind().GroupVersionKind()
		return cmp.Or(cmp.Compare(x.Group, y.Group), cmp.Compare(x.Version, y.Version), cmp.Compare(x.Kind, y.Kind),
			cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
}
