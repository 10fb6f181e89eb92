// Package render asks an operator about a custom resource from a file, without a
// cluster: it does what an API server would do to it first, then what the
// engine would do with the answer. It never talks to a server and reads no
// file. Its invariant: the same input gives the same output, UIDs included.
package render

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/homeostat-dev/homeostat/engine/plan"
	"github.com/homeostat-dev/homeostat/operator"
	"github.com/homeostat-dev/homeostat/operator/admission"
)

// Input is a parent and what is observed around it.
type Input struct {
	Parent            *unstructured.Unstructured
	Children, Related []*unstructured.Unstructured
	// Namespace is that of objects that name none.
	Namespace string
	Now       time.Time
}

// Output is what the operator answers.
type Output struct {
	// Parent is the parent with defaults, with the fields of its spec that the
	// operator sets, and with the new status.
	Parent *unstructured.Unstructured
	// Children are the desired children as the engine would apply them, sorted.
	Children []*unstructured.Unstructured
}

// Render gives the operator's answer to the input: one round, as if the parent
// had just been created or changed.
func Render(op *operator.Operator, in Input) (Output, error) {
	parent, err := admit(op, in)
	if err != nil {
		return Output{}, err
	}
	if op.Parent.ClusterScoped {
		parent.SetNamespace("")
	}
	seen, err := related(op, observed(in.Related, parent, false), parent)
	if err != nil {
		return Output{}, err
	}
	d, err := op.Decide(operator.Request{
		Parent: parent, Now: in.Now,
		Children: op.Objects(parent.GetNamespace(), observed(in.Children, parent, true)),
		Related:  op.Objects(parent.GetNamespace(), seen),
	})
	if err != nil {
		return Output{}, fmt.Errorf("%s %s: %w", parent.GetKind(), parent.GetName(), err)
	}
	out := Output{Parent: parent}
	for _, f := range d.Parent {
		if err := f.Apply(parent); err != nil {
			return Output{}, fmt.Errorf("set %s: %w", f.Path, err)
		}
	}
	if d.Status != nil {
		parent.Object["status"] = d.Status
	}
	for _, c := range d.Children {
		if !c.Keep {
			c.Object.SetOwnerReferences([]metav1.OwnerReference{*plan.ControllerRef(parent)})
		}
		out.Children = append(out.Children, c.Object)
	}
	return out, nil
}

// admit is the parent as an API server would store it.
func admit(op *operator.Operator, in Input) (*unstructured.Unstructured, error) {
	parent := in.Parent.DeepCopy()
	if parent.GetNamespace() == "" && !op.Parent.ClusterScoped {
		parent.SetNamespace(in.Namespace)
	}
	who := parent.GetKind() + " " + parent.GetName()
	if problems := validation.IsDNS1123Subdomain(parent.GetName()); len(problems) > 0 {
		return nil, fmt.Errorf("%s: metadata.name: %s", who, strings.Join(problems, "; "))
	}
	if op.CRD != nil {
		schema, err := admission.Compile(op.CRD, op.Parent.Version)
		if err != nil {
			return nil, err
		}
		if unknown := schema.Prune(parent.DeepCopy()); len(unknown) > 0 {
			return nil, fmt.Errorf("%s: unknown field %s; remove it or correct its name", who, strings.Join(unknown, ", "))
		}
		if err := schema.Create(parent); err != nil {
			return nil, fmt.Errorf("%s: %w", who, err)
		}
	}
	if parent.GetUID() == "" {
		parent.SetUID(UID(parent))
	}
	return parent, nil
}

// UID is what stands for the UID that a server would give: made of kind,
// namespace and name, and in the form of a UUID (version 8, "vendor specific").
func UID(o *unstructured.Unstructured) types.UID {
	sum := sha256.Sum256([]byte(strings.Join([]string{o.GroupVersionKind().GroupKind().String(), o.GetNamespace(), o.GetName()}, "\x00")))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
}

// observed fills in what a file leaves out: the namespace and, of children, the
// controller.
func observed(items []*unstructured.Unstructured, parent *unstructured.Unstructured, owned bool) []*unstructured.Unstructured {
	out := make([]*unstructured.Unstructured, 0, len(items))
	for _, item := range items {
		o := item.DeepCopy()
		if o.GetNamespace() == "" {
			o.SetNamespace(parent.GetNamespace())
		}
		if o.GetUID() == "" {
			o.SetUID(UID(o))
		}
		if owned && metav1.GetControllerOf(o) == nil {
			o.SetOwnerReferences(append(o.GetOwnerReferences(), *plan.ControllerRef(parent)))
		}
		if !owned || metav1.IsControlledBy(o, parent) {
			out = append(out, o)
		}
	}
	return out
}

// related are the objects that the operator's reads select for the parent.
func related(op *operator.Operator, items []*unstructured.Unstructured, parent *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, r := range op.Reads {
		selector, err := r.Selector(parent)
		if err != nil {
			return nil, fmt.Errorf("select %v for %s: %w", r.Kind, parent.GetName(), err)
		}
		for _, o := range items {
			if r.Kind.GroupVersionKind == o.GroupVersionKind() && selector.Matches(parent.GetNamespace(), o) && !slices.Contains(out, o) {
				out = append(out, o)
			}
		}
	}
	return out, nil
}
