package engine

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/homeostat-dev/homeostat/operator"
)

// selections says which parents select an object. Each selector is filed under
// one thing that the object must have, a label or a name, so that an event costs
// as many lookups as its object has labels and not one per parent.
type selections struct {
	filed    map[handle]map[types.NamespacedName][]operator.Selector
	byParent map[types.NamespacedName][]handle
}

// handle is one label of a kind, or one name where key is empty.
type handle struct {
	kind       schema.GroupVersionKind
	key, value string
}

func newSelections() *selections {
	return &selections{
		filed:    map[handle]map[types.NamespacedName][]operator.Selector{},
		byParent: map[types.NamespacedName][]handle{},
	}
}

// set files what a parent selects now.
func (s *selections) set(op *operator.Operator, parent *unstructured.Unstructured) {
	name := nameOf(parent)
	s.drop(name)
	for _, c := range op.Children {
		if c.Adopt != nil {
			s.file(c.Kind.GroupVersionKind, name, selector(c.Adopt, parent))
		}
	}
	for _, r := range op.Reads {
		s.file(r.Kind.GroupVersionKind, name, selector(r.Select, parent))
	}
}

func (s *selections) file(kind schema.GroupVersionKind, parent types.NamespacedName, selector operator.Selector) {
	for _, h := range handles(kind, selector) {
		if s.filed[h] == nil {
			s.filed[h] = map[types.NamespacedName][]operator.Selector{}
		}
		s.filed[h][parent] = append(s.filed[h][parent], selector)
		s.byParent[parent] = append(s.byParent[parent], h)
	}
}

// handles are the places at which a selector is filed: the smallest of its
// labels, or each of its names.
func handles(kind schema.GroupVersionKind, selector operator.Selector) []handle {
	best := handle{kind: kind}
	for k, v := range selector.Labels {
		if best.key == "" || k < best.key {
			best.key, best.value = k, v
		}
	}
	if best.key != "" {
		return []handle{best}
	}
	var out []handle
	for _, n := range selector.Names {
		out = append(out, handle{kind: kind, value: n})
	}
	return out
}

func (s *selections) drop(parent types.NamespacedName) {
	for _, h := range s.byParent[parent] {
		delete(s.filed[h], parent)
		if len(s.filed[h]) == 0 {
			delete(s.filed, h)
		}
	}
	delete(s.byParent, parent)
}

// concerned adds the parents that select an object.
func (s *selections) concerned(o *unstructured.Unstructured, into map[types.NamespacedName]bool) {
	look := func(h handle) {
		for parent, selectors := range s.filed[h] {
			for _, selector := range selectors {
				if selector.Matches(parent.Namespace, o) {
					into[parent] = true
				}
			}
		}
	}
	kind := o.GroupVersionKind()
	look(handle{kind: kind, value: o.GetName()})
	for k, v := range o.GetLabels() {
		look(handle{kind: kind, key: k, value: v})
	}
}

// selector asks an author's function, which must not bring the engine down. A
// parent for which it panics selects nothing; Sync, which asks the same, says so.
func selector(f func(*unstructured.Unstructured) operator.Selector, parent *unstructured.Unstructured) (s operator.Selector) {
	defer func() {
		if recover() != nil {
			s = operator.Selector{}
		}
	}()
	return f(parent.DeepCopy())
}
