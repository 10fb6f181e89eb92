package engine

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/homeostat-dev/homeostat/engine/plan"
	"github.com/homeostat-dev/homeostat/operator"
)

// members plans who belongs to the parent, where a rule adopts: objects that
// match and that nobody controls come in, children that no longer match go out.
// Before the first adoption the parent itself is read live, as controllers do: a
// parent that was deleted meanwhile must not take anything with it.
func (p *Pass) members() []plan.Op {
	var ops []plan.Op
	if p.parent.GetDeletionTimestamp() != nil || p.selects.err != nil {
		return nil
	}
	for _, rule := range p.core.operator.Children {
		if rule.Adopt == nil {
			continue
		}
		picked := p.selects.adopts[rule.Kind.GroupVersionKind]
		for _, o := range p.core.world.Select(rule.Kind.GroupVersionKind, p.parent.GetNamespace(), picked) {
			if metav1.GetControllerOfNoCopy(o) == nil && o.GetDeletionTimestamp() == nil {
				ops = append(ops, adoption(p.parent, rule.Kind, o))
			}
		}
		for _, o := range p.core.world.Controlled(rule.Kind.GroupVersionKind, p.memory.uid) {
			if !picked.Matches(p.parent.GetNamespace(), o) && o.GetDeletionTimestamp() == nil {
				ops = append(ops, release(p.parent, rule.Kind, o))
			}
		}
	}
	ops = slices.DeleteFunc(ops, func(op plan.Op) bool { _, no := p.refused[op.Ref()]; return no })
	adopts := func(op plan.Op) bool { return op.Verb == plan.Adopt }
	switch {
	case p.live || !slices.ContainsFunc(ops, adopts):
	case p.asked:
		return slices.DeleteFunc(ops, adopts) // The parent could not be read: nothing is adopted.
	default:
		p.asked = true
		return []plan.Op{{Verb: plan.Read, Kind: p.core.operator.Parent, Namespace: p.parent.GetNamespace(),
			Name: p.parent.GetName(), UID: p.parent.GetUID(), Reason: "a parent is read live before it adopts"}}
	}
	return ops
}

func adoption(parent *unstructured.Unstructured, kind operator.Kind, o *unstructured.Unstructured) plan.Op {
	return referencing(plan.Adopt, kind, o, append(o.GetOwnerReferences(), *plan.ControllerRef(parent)),
		fmt.Sprintf("it matches the selector of %s %s and nobody controls it", parent.GetKind(), parent.GetName()))
}

func release(parent *unstructured.Unstructured, kind operator.Kind, o *unstructured.Unstructured) plan.Op {
	rest := slices.DeleteFunc(o.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == parent.GetUID() })
	return referencing(plan.Release, kind, o, rest,
		fmt.Sprintf("it no longer matches the selector of %s %s", parent.GetKind(), parent.GetName()))
}

// referencing is a merge patch of the owner references, fenced so that it means
// the object exactly as it was seen.
func referencing(verb plan.Verb, kind operator.Kind, o *unstructured.Unstructured, refs []metav1.OwnerReference, reason string) plan.Op {
	list := make([]any, 0, len(refs))
	for _, r := range refs {
		values, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&r)
		if err != nil {
			continue // An OwnerReference is strings and booleans; it always converts.
		}
		list = append(list, values)
	}
	return plan.Op{
		Verb: verb, Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(),
		UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(), Reason: reason,
		Body: map[string]any{"metadata": map[string]any{
			"uid": string(o.GetUID()), "resourceVersion": o.GetResourceVersion(), "ownerReferences": list,
		}},
	}
}
