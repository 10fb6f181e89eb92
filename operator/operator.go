package operator

import (
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Operator is a declared unit: what it is called, which kind of parent it
// looks after, which kinds it makes and reads, and its decision. It holds no
// state and may be driven by many drivers at once. Authors make one with
// [Declare].
type Operator struct {
	// Name is a DNS label of at most 40 characters; field manager, lease and
	// role are named after it.
	Name string
	// Doc is one sentence for --help and for generated pages.
	Doc string
	// CRD is the parent's definition, nil for a kind that is not the operator's own.
	CRD *apiextensionsv1.CustomResourceDefinition
	// Manifest is the CRD's YAML as declared.
	Manifest []byte
	// Parent is the kind looked after.
	Parent Kind
	// Children are the kinds it makes, each with its rule.
	Children []Child
	// Reads are the kinds it only looks at.
	Reads []Read
	// ParentSets are the fields of the parent's own spec, such as
	// "spec.switchPosition", that Sync may write through Response.Parent.
	ParentSets []string
	// Sync decides. Drivers call Decide instead.
	Sync func(Request) (Response, error)

	err error
}

// Child is a kind of object that the operator makes, and the rule for it.
type Child struct {
	Kind Kind
	// Update says what happens to a child that is not as desired.
	Update Update
	// CreateOnly are the fields, as paths such as "spec.replicas", that are
	// set when the child is created and belong to others afterwards.
	CreateOnly []string
	// OwnedLists are the lists, such as "spec.ports", in which nobody else's
	// entries are suffered.
	OwnedLists []string
	// Adopt selects the objects that count as children although the operator
	// did not make them: matching ones that nobody controls are adopted, and a
	// child that no longer matches is released. Nil: only what it made.
	Adopt func(parent *unstructured.Unstructured) Selector
}

// Update is what happens to a child that exists and is not as desired.
type Update string

const (
	// UpdateInPlace applies the difference. It is the default.
	UpdateInPlace Update = ""
	// UpdateRecreate deletes the child and makes it anew, for kinds such as
	// Pod whose fields cannot change.
	UpdateRecreate Update = "Recreate"
	// UpdateOnDelete leaves the child until somebody deletes it.
	UpdateOnDelete Update = "OnDelete"
)

// Read is a kind of object that Sync sees in Request.Related and never changes.
type Read struct {
	Kind Kind
	// Select says which objects a parent needs; the engine indexes it.
	Select func(parent *unstructured.Unstructured) Selector
}

// Selector is what Adopt selects for a parent, and the zero Selector where there
// is no Adopt. Drivers ask here: a panic in Adopt becomes an error.
func (c Child) Selector(parent *unstructured.Unstructured) (Selector, error) {
	return selectFor(c.Adopt, parent)
}

// Selector is what Select selects for a parent; a panic becomes an error.
func (r Read) Selector(parent *unstructured.Unstructured) (Selector, error) {
	return selectFor(r.Select, parent)
}

func selectFor(f func(*unstructured.Unstructured) Selector, parent *unstructured.Unstructured) (s Selector, err error) {
	if f == nil {
		return Selector{}, nil
	}
	defer func() {
		if v := recover(); v != nil {
			s, err = Selector{}, &Panicked{Value: v, Stack: string(debug.Stack()), In: "the selector"}
		}
	}()
	return f(parent.DeepCopy()), nil
}

// Selector picks objects by label and name. The zero Selector picks nothing.
type Selector struct {
	// Namespace is where; empty means the parent's own, "*" means all.
	Namespace string
	// Labels must all be there, with these values.
	Labels map[string]string
	// Names, where given, is the list of names that count.
	Names []string
}

// Empty reports whether the selector picks nothing.
func (s Selector) Empty() bool { return len(s.Labels) == 0 && len(s.Names) == 0 }

// Matches reports whether the selector picks an object; parentNamespace is what
// an empty Namespace stands for.
func (s Selector) Matches(parentNamespace string, object *unstructured.Unstructured) bool {
	if s.Empty() || !s.inNamespace(parentNamespace, object.GetNamespace()) {
		return false
	}
	labels := object.GetLabels()
	for k, v := range s.Labels {
		if got, ok := labels[k]; !ok || got != v {
			return false
		}
	}
	if len(s.Names) == 0 {
		return true
	}
	for _, n := range s.Names {
		if n == object.GetName() {
			return true
		}
	}
	return false
}

func (s Selector) inNamespace(parent, namespace string) bool {
	switch s.Namespace {
	case "*":
		return true
	case "":
		return namespace == parent || namespace == ""
	}
	return namespace == s.Namespace
}

// Manager is the field manager under which the operator's writes are recorded.
func (o *Operator) Manager() string { return "homeostat-" + o.Name }

// Child is the rule for a kind, and whether the kind is declared.
func (o *Operator) Child(gvk schema.GroupVersionKind) (Child, bool) {
	for _, c := range o.Children {
		if c.Kind.GroupVersionKind == gvk {
			return c, true
		}
	}
	return Child{}, false
}

// Kinds are the kinds the operator observes, parent first, each once.
func (o *Operator) Kinds() []Kind {
	kinds := []Kind{o.Parent}
	seen := map[schema.GroupVersionKind]bool{o.Parent.GroupVersionKind: true}
	add := func(k Kind) {
		if !seen[k.GroupVersionKind] {
			seen[k.GroupVersionKind] = true
			kinds = append(kinds, k)
		}
	}
	for _, c := range o.Children {
		add(c.Kind)
	}
	for _, r := range o.Reads {
		add(r.Kind)
	}
	return kinds
}

// Objects wraps observed objects for a Request, sorted, with the operator's
// types. The objects are shared, not copied; Decide hands out copies.
func (o *Operator) Objects(parentNamespace string, items []*unstructured.Unstructured) Objects {
	kinds := map[reflect.Type]schema.GroupVersionKind{}
	for _, k := range o.Kinds() {
		if k.goType != nil {
			kinds[k.goType] = k.GroupVersionKind
		}
	}
	SortObjects(items)
	return Objects{items: items, kinds: kinds, namespace: parentNamespace}
}

// Validate reports everything that is wrong with the declaration, so that a
// driver refuses it before it touches anything.
func (o *Operator) Validate() error {
	errs := []error{o.err}
	complain := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, m := range validation.IsDNS1123Label(o.Name) {
		complain("name %q: %s", o.Name, m)
	}
	if len(o.Name) > 40 {
		complain("name %q has %d characters, 40 are allowed: names of roles and leases are built from it", o.Name, len(o.Name))
	}
	if o.Sync == nil {
		complain("Sync is not set")
	}
	if o.Parent.Empty() && o.err == nil {
		complain("the parent kind is not known: set CRD, or Parent for a kind that is not the operator's own")
	}
	for _, p := range o.ParentSets {
		if fields, err := ParsePath(p); err != nil {
			complain("ParentSets: %w", err)
		} else if fields[0] != "spec" || len(fields) < 2 {
			complain("ParentSets: %s is not a field of the parent's spec", p)
		}
	}
	o.validateChildren(complain)
	o.validateStatus(complain)
	for _, r := range o.Reads {
		if r.Select == nil {
			complain("read kind %v has no Select: nothing says which objects a parent needs", r.Kind)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("operator %s: %w", o.Name, err)
	}
	return nil
}

// validateStatus refuses a schema under which the engine could not say why Sync
// failed: there is no value yet for a field that must be there.
func (o *Operator) validateStatus(complain func(string, ...any)) {
	s := o.Schema()
	if s == nil {
		return
	}
	for _, field := range s.Properties["status"].Required {
		if field != "conditions" && s.Properties["status"].Properties[field].Default == nil {
			complain("the schema requires status.%s: a status that only says why Sync failed would be refused; make it optional or give it a default", field)
		}
	}
}

func (o *Operator) validateChildren(complain func(string, ...any)) {
	seen := map[schema.GroupVersionKind]bool{o.Parent.GroupVersionKind: true}
	for _, c := range o.Children {
		if seen[c.Kind.GroupVersionKind] {
			complain("child kind %v is declared twice or is the parent's own", c.Kind)
		}
		seen[c.Kind.GroupVersionKind] = true
		for _, p := range slices.Concat(c.CreateOnly, c.OwnedLists) {
			if _, err := ParsePath(p); err != nil {
				complain("child kind %v: %w", c.Kind, err)
			}
		}
		switch c.Update {
		case UpdateInPlace, UpdateRecreate, UpdateOnDelete:
		default:
			complain("child kind %v: there is no update method %q", c.Kind, c.Update)
		}
		if c.Kind.ClusterScoped && !o.Parent.ClusterScoped {
			complain("child kind %v is cluster-scoped and its parent is not: garbage collection cannot own it", c.Kind)
		}
	}
}
