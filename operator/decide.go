package operator

import (
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Decision is a Response in the form that drivers use: plain objects with what
// is not owned taken out, checked against the declaration, sorted.
type Decision struct {
	// Status is the new status as JSON values; nil: conditions only.
	Status map[string]any
	// Children are the desired children, sorted.
	Children []Desired
	// Parent are the fields of the parent's own spec to write now, sorted by
	// path, provided that it still has the UID and the resourceVersion of the
	// request. Empty where Sync changed nothing.
	Parent []FieldSet
	// Until is when to ask again, zero for never.
	Until      time.Time
	Conditions []metav1.Condition
	Events     []Event
}

// Desired is one child that ought to be there.
type Desired struct {
	// Object is what Sync sets, and nothing else; of a kept child, its observed form.
	Object *unstructured.Unstructured
	// Keep is true for a child that is listed unchanged.
	Keep bool
	// Set are the create-only fields to write now, provided that the object
	// still has SetVersion.
	Set        []string
	SetVersion string
}

// Ref names the child.
func (d Desired) Ref() Ref {
	return Ref{Kind: d.Object.GroupVersionKind(), Namespace: d.Object.GetNamespace(), Name: d.Object.GetName()}
}

// Panicked is the failure of a Sync, or of a selector, that panicked: a defect
// of the operator, confined to the parent that shows it.
type Panicked struct {
	// Value is what was panicked with, Stack where.
	Value any
	Stack string
	// In is what panicked: "Sync" or "the selector".
	In string
}

func (p *Panicked) Error() string { return fmt.Sprintf("%s panicked: %v", p.In, p.Value) }

// Decide asks Sync, on copies, and returns its answer in checked form. It is
// the one way by which drivers ask. A panic becomes a stalled Failure that
// wraps nothing of the request.
func (o *Operator) Decide(r Request) (Decision, error) {
	parent := r.Parent
	r.Parent, r.Taken = r.Parent.DeepCopy(), slices.Clone(r.Taken)
	r.Now = r.Now.UTC().Truncate(time.Microsecond)
	response, err := o.ask(r)
	if err != nil {
		return Decision{}, err
	}
	d := Decision{Until: response.Until, Conditions: response.Conditions, Events: response.Events}
	if d.Status, err = statusValues(response.Status); err != nil {
		return Decision{}, err
	}
	r.Parent = parent
	if d.Parent, err = o.parentSets(r.Parent, response.Parent); err != nil {
		return Decision{}, err
	}
	if d.Children, err = o.desired(r, response.Children); err != nil {
		return Decision{}, err
	}
	return d, nil
}

func (o *Operator) ask(r Request) (response Response, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &Panicked{Value: v, Stack: string(debug.Stack()), In: "Sync"}
		}
	}()
	return o.Sync(r)
}

// statusValues turns a status into JSON values and drops what the engine owns
// and what is null: an API server drops nulls too.
func statusValues(status any) (map[string]any, error) {
	if status == nil {
		return nil, nil
	}
	data, err := json.Marshal(status)
	if err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	values := map[string]any{}
	if err := unmarshalJSON(data, &values); err != nil {
		return nil, fmt.Errorf("status must be a struct or a map: %w", err)
	}
	dropNulls(values)
	delete(values, "conditions")
	delete(values, "observedGeneration")
	return values, nil
}

func (o *Operator) desired(r Request, children []Object) ([]Desired, error) {
	out := make([]Desired, 0, len(children))
	seen := map[Ref]bool{}
	for i, c := range children {
		d, err := o.desiredChild(r, c)
		if err != nil {
			return nil, fmt.Errorf("child %d: %w", i, err)
		}
		if seen[d.Ref()] {
			return nil, Stall("DuplicateChild", "Sync lists %v twice", d.Ref())
		}
		seen[d.Ref()] = true
		out = append(out, d)
	}
	sortDesired(out)
	return out, nil
}

func (o *Operator) desiredChild(r Request, child Object) (Desired, error) {
	d := Desired{}
	switch wrapped := child.(type) {
	case *kept:
		child, d.Keep = wrapped.Object, true
	case *fenced:
		child, d.Set, d.SetVersion = wrapped.Object, wrapped.fields, wrapped.version
	}
	if isNil(child) {
		return d, badChild("Sync listed a nil child")
	}
	switch child.(type) {
	case *kept, *fenced:
		return d, badChild("Sync wrapped %s twice: Keep and SetIfUnchanged exclude each other", child.GetName())
	}
	gvk, err := o.childKind(child)
	if err != nil {
		return d, err
	}
	if d.Object, err = ownedFields(child); err != nil {
		return d, err
	}
	d.Object.SetGroupVersionKind(gvk)
	rule, _ := o.Child(gvk)
	if err := placeChild(r.Parent.GetNamespace(), rule, d.Object); err != nil {
		return d, err
	}
	if d.Keep {
		return keptChild(r, d)
	}
	serverFields(d.Object)
	return d, checkSet(rule, d)
}

func badChild(format string, args ...any) error { return Stall("BadChild", format, args...) }

// placeChild gives a child its namespace and refuses one that its parent cannot own.
func placeChild(parentNamespace string, rule Child, child *unstructured.Unstructured) error {
	if child.GetName() == "" {
		return badChild("a %s without a name; operator.Name makes one from a key", child.GetKind())
	}
	namespace := child.GetNamespace()
	ref := Desired{Object: child}.Ref()
	switch {
	case rule.Kind.ClusterScoped && namespace != "":
		return badChild("%v has a namespace and its kind has none", ref)
	case rule.Kind.ClusterScoped:
	case namespace == "" && parentNamespace == "":
		return badChild("%v has no namespace, and neither has its parent", ref)
	case namespace == "":
		child.SetNamespace(parentNamespace)
	case parentNamespace != "" && namespace != parentNamespace:
		return badChild("%v is not in the namespace of its parent, %s: garbage collection cannot own it", ref, parentNamespace)
	}
	return nil
}

// keptChild is the child as observed: what Sync holds is only its typed reading.
func keptChild(r Request, d Desired) (Desired, error) {
	for _, u := range r.Children.items {
		if (Desired{Object: u}).Ref() == d.Ref() {
			d.Object = u.DeepCopy()
			return d, nil
		}
	}
	return d, badChild("Keep lists %v, which is not there: list what ought to be made without Keep", d.Ref())
}

// checkSet refuses a SetIfUnchanged of what the rule or the child does not have.
func checkSet(rule Child, d Desired) error {
	for _, path := range d.Set {
		if !slices.Contains(rule.CreateOnly, path) {
			return badChild("SetIfUnchanged of %s in %v: it is not among the declared CreateOnly fields; all others are written anyway", path, d.Ref())
		}
		if fields, err := ParsePath(path); err != nil || !has(d.Object.Object, fields) {
			return badChild("SetIfUnchanged of %s in %v: the child does not set it", path, d.Ref())
		}
	}
	return nil
}

func has(values map[string]any, fields []string) bool {
	_, found, err := unstructured.NestedFieldNoCopy(values, fields...)
	return found && err == nil
}

func (o *Operator) childKind(child Object) (schema.GroupVersionKind, error) {
	gvk := child.GetObjectKind().GroupVersionKind()
	t := elem(child)
	for _, c := range o.Children {
		if c.Kind.GroupVersionKind == gvk || gvk.Empty() && c.Kind.goType != nil && c.Kind.goType == t {
			return c.Kind.GroupVersionKind, nil
		}
	}
	if gvk.Empty() {
		return gvk, Stall("UndeclaredKind", "Sync lists a %v, which is not among the declared Children", t)
	}
	return gvk, Stall("UndeclaredKind", "Sync lists a %s of %s, which is not among the declared Children", gvk.Kind, gvk.GroupVersion())
}
