package operatortest

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/homeostat-dev/homeostat/operator"
	"github.com/homeostat-dev/homeostat/operator/admission"
)

// What a parent gets that does not say otherwise. The last twelve digits of the
// UID are easy to recognise where names are made of them.
const (
	DefaultName      = "sample"
	DefaultNamespace = "default"
	DefaultUID       = types.UID("00000000-0000-4000-8000-0123456789ab")
)

// World is what an operator can see at one moment. Functions of this package
// never change the objects of a world that they are given.
type World struct {
	// Parent is the object asked about, with its saved status. It is being
	// deleted when it has a deletionTimestamp.
	Parent *unstructured.Unstructured
	// Children are the objects of the child kinds that the parent controls. Of a
	// kind with an Adopt rule those that do not match are there, but released.
	Children []*unstructured.Unstructured
	// Related are objects of the read kinds; those that no Read selects are not seen.
	Related []*unstructured.Unstructured
	// Taken are objects of others, as Request.Taken shows them.
	Taken []operator.Ref
	// Now is the time, to the microsecond.
	Now time.Time
}

// Request is the question about the world, on copies of its objects.
func (w World) Request(op *operator.Operator) operator.Request {
	ns := w.Parent.GetNamespace()
	var children, related []*unstructured.Unstructured
	for _, c := range w.Children {
		if w.controlled(op, c) {
			children = append(children, c.DeepCopy())
		}
	}
	for _, o := range w.Related {
		if w.selected(op, o) {
			related = append(related, o.DeepCopy())
		}
	}
	return operator.Request{
		Parent:   w.Parent.DeepCopy(),
		Children: op.Objects(ns, children),
		Related:  op.Objects(ns, related),
		Now:      w.Now,
		Deleting: w.Parent.GetDeletionTimestamp() != nil,
		Taken:    append([]operator.Ref(nil), w.Taken...),
	}
}

// controlled reports whether a child still counts: one that its kind's Adopt
// rule no longer selects is released.
func (w World) controlled(op *operator.Operator, child *unstructured.Unstructured) bool {
	rule, ok := op.Child(child.GroupVersionKind())
	if !ok || rule.Adopt == nil {
		return ok
	}
	s, err := rule.Selector(w.Parent)
	return err == nil && s.Matches(w.Parent.GetNamespace(), child)
}

func (w World) selected(op *operator.Operator, object *unstructured.Unstructured) bool {
	for _, r := range op.Reads {
		if r.Kind.GroupVersionKind != object.GroupVersionKind() {
			continue
		}
		if s, err := r.Selector(w.Parent); err == nil && s.Matches(w.Parent.GetNamespace(), object) {
			return true
		}
	}
	return false
}

// complete fills in what a cluster would have filled in and refuses what a
// cluster would have refused.
func (w *World) complete(op *operator.Operator) error {
	p := w.Parent
	if p.GroupVersionKind() != op.Parent.GroupVersionKind {
		return fmt.Errorf("parent.yaml is a %v, the operator looks after %v", p.GroupVersionKind(), op.Parent.GroupVersionKind)
	}
	p.SetName(cmp.Or(p.GetName(), DefaultName))
	p.SetUID(cmp.Or(p.GetUID(), DefaultUID))
	if !op.Parent.ClusterScoped {
		p.SetNamespace(cmp.Or(p.GetNamespace(), DefaultNamespace))
	}
	completeMeta(p)
	if err := errors.Join(w.admit(op), checkSelectors(op, p)); err != nil {
		return err
	}
	for i, ref := range w.Taken {
		w.Taken[i].Namespace = cmp.Or(ref.Namespace, p.GetNamespace())
	}
	for _, c := range w.Children {
		rule, ok := op.Child(c.GroupVersionKind())
		if !ok {
			return fmt.Errorf("children.yaml has a %s, which is not a declared child kind", c.GetKind())
		}
		completeObject(c, p.GetNamespace(), rule.Kind)
		if metav1.GetControllerOf(c) == nil {
			own(p, c)
		}
	}
	for _, o := range w.Related {
		kind, ok := readKind(op, o.GroupVersionKind())
		if !ok {
			return fmt.Errorf("related.yaml has a %s, which is not a declared read kind", o.GetKind())
		}
		completeObject(o, p.GetNamespace(), kind)
	}
	return nil
}

// checkSelectors finds selectors that fail on the parent, so that [World.Request]
// need not.
func checkSelectors(op *operator.Operator, parent *unstructured.Unstructured) error {
	var errs []error
	for _, c := range op.Children {
		_, err := c.Selector(parent)
		errs = append(errs, err)
	}
	for _, r := range op.Reads {
		_, err := r.Selector(parent)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// admit defaults and validates the parent as an API server would.
func (w *World) admit(op *operator.Operator) error {
	if op.CRD == nil {
		return nil
	}
	s, err := admission.Compile(op.CRD, op.Parent.Version)
	if err != nil {
		return err
	}
	if unknown := s.Prune(w.Parent.DeepCopy()); len(unknown) > 0 {
		return fmt.Errorf("the CRD does not know these fields of the parent: %v", unknown)
	}
	if err := s.Create(w.Parent); err != nil {
		return fmt.Errorf("the CRD refuses the parent: %w", err)
	}
	return nil
}

func readKind(op *operator.Operator, gvk schema.GroupVersionKind) (operator.Kind, bool) {
	for _, r := range op.Reads {
		if r.Kind.GroupVersionKind == gvk {
			return r.Kind, true
		}
	}
	return operator.Kind{}, false
}

func completeObject(o *unstructured.Unstructured, namespace string, kind operator.Kind) {
	if !kind.ClusterScoped {
		o.SetNamespace(cmp.Or(o.GetNamespace(), namespace))
	}
	completeMeta(o)
}

func completeMeta(o *unstructured.Unstructured) {
	o.SetUID(cmp.Or(o.GetUID(), newUID(o, "")))
	o.SetResourceVersion(cmp.Or(o.GetResourceVersion(), "1"))
	o.SetGeneration(cmp.Or(o.GetGeneration(), 1))
}

// newUID is a UID that is the same for the same object in the same place.
func newUID(o *unstructured.Unstructured, incarnation string) types.UID {
	sum := sha256.Sum256([]byte(o.GetAPIVersion() + "/" + o.GetKind() + "/" + o.GetNamespace() + "/" + o.GetName() + "/" + incarnation))
	sum[6], sum[8] = sum[6]&0x0f|0x40, sum[8]&0x3f|0x80
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
}

func own(parent, child *unstructured.Unstructured) {
	yes := true
	child.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: parent.GetAPIVersion(), Kind: parent.GetKind(),
		Name: parent.GetName(), UID: parent.GetUID(), Controller: &yes, BlockOwnerDeletion: &yes,
	}})
}

// checkStatus refuses a status that an API server would prune or refuse.
func checkStatus(op *operator.Operator, parent *unstructured.Unstructured) error {
	if op.CRD == nil {
		return nil
	}
	s, err := admission.Compile(op.CRD, op.Parent.Version)
	if err != nil {
		return err
	}
	if unknown := s.Prune(parent.DeepCopy()); len(unknown) > 0 {
		return broken("the CRD does not know %v: a server would drop it without a word", unknown)
	}
	if err := s.Update(parent.DeepCopy(), parent); err != nil {
		return broken("the CRD refuses what Sync makes of the parent: %v", err)
	}
	return nil
}
