package engine

import (
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/homeostat-dev/homeostat/operator"
)

// selections says what each parent selects and which parents select an object.
// Each selector is filed under one thing that the object must have, a label or a
// name, so that an event costs as many lookups as its object has labels and not
// one per parent.
type selections struct {
	filed    map[handle]map[types.NamespacedName][]operator.Selector
	byParent map[types.NamespacedName]*selected
}

// selected is what one parent selects. It is not changed once it is made.
type selected struct {
	// adopts are the selectors of child kinds with a rule to adopt, reads those
	// of Operator.Reads, in their order.
	adopts map[schema.GroupVersionKind]operator.Selector
	reads  []operator.Selector
	// err is why the operator could not say what the parent selects.
	err     error
	handles []handle
}

// handle is one label of a kind, or one name where key is empty.
type handle struct {
	kind       schema.GroupVersionKind
	key, value string
}

func newSelections() *selections {
	return &selections{
		filed:    map[handle]map[types.NamespacedName][]operator.Selector{},
		byParent: map[types.NamespacedName]*selected{},
	}
}

// set asks the operator what a parent selects now, and files it.
func (s *selections) set(op *operator.Operator, parent *unstructured.Unstructured) {
	name := nameOf(parent)
	s.drop(name)
	now := &selected{adopts: map[schema.GroupVersionKind]operator.Selector{}}
	s.byParent[name] = now
	for _, c := range op.Children {
		if c.Adopt != nil {
			selector, err := c.Selector(parent)
			now.err = errors.Join(now.err, err)
			now.adopts[c.Kind.GroupVersionKind] = selector
			s.file(c.Kind.GroupVersionKind, name, selector)
		}
	}
	for _, r := range op.Reads {
		selector, err := r.Selector(parent)
		now.err = errors.Join(now.err, err)
		now.reads = append(now.reads, selector)
		s.file(r.Kind.GroupVersionKind, name, selector)
	}
}

func (s *selections) file(kind schema.GroupVersionKind, parent types.NamespacedName, selector operator.Selector) {
	for _, h := range handles(kind, selector) {
		if s.filed[h] == nil {
			s.filed[h] = map[types.NamespacedName][]operator.Selector{}
		}
		s.filed[h][parent] = append(s.filed[h][parent], selector)
		s.byParent[parent].handles = append(s.byParent[parent].handles, h)
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
	old := s.byParent[parent]
	if old == nil {
		return
	}
	for _, h := range old.handles {
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
