package engine

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/homeostat-dev/homeostat/engine/plan"
	"github.com/homeostat-dev/homeostat/operator"
)

// Selection says which parents to preview.
type Selection struct {
	// Namespace confines the preview, empty for all.
	Namespace string
	// Name is one parent, empty for all.
	Name string
}

// Proposal is what an operator would do for one parent as the cluster is now.
type Proposal struct {
	Parent operator.Ref
	// Ops are the operations of its next round, with a reason on each. What
	// later rounds would do depends on the answers.
	Ops []plan.Op
	// Err is why it would not come to rest, nil when it would.
	Err error
}

// Preview lists what the operator watches, once, and says what it would do. It
// writes nothing. A name that is not there is an error.
func Preview(ctx context.Context, config *rest.Config, op *operator.Operator, selection Selection) ([]Proposal, error) {
	core, err := NewCore(op, CoreOptions{})
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", config.Host, err)
	}
	for _, kind := range core.Kinds() {
		if err := listInto(ctx, client, core, kind, selection.Namespace); err != nil {
			return nil, err
		}
	}
	return core.propose(selection, time.Now())
}

func listInto(ctx context.Context, client dynamic.Interface, core *Core, kind operator.Kind, namespace string) error {
	if kind.ClusterScoped {
		namespace = metav1.NamespaceAll
	}
	list, err := client.Resource(kind.GVR()).Namespace(namespace).List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err) && kind.GroupVersionKind != core.operator.Parent.GroupVersionKind:
		core.Missing(kind.GroupVersionKind, err)
		return nil
	case apierrors.IsNotFound(err):
		return fmt.Errorf("the API server does not serve %v; install its CustomResourceDefinition: %w", kind, err)
	case err != nil:
		return fmt.Errorf("list %v: %w", kind, err)
	}
	objects := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		objects[i] = &list.Items[i]
		objects[i].SetGroupVersionKind(kind.GroupVersionKind)
	}
	core.Replace(kind.GroupVersionKind, objects, list.GetResourceVersion())
	return nil
}

// propose plans the next round of the selected parents and carries out nothing.
func (c *Core) propose(selection Selection, now time.Time) ([]Proposal, error) {
	var out []Proposal
	for _, o := range c.world.All(c.operator.Parent.GroupVersionKind) {
		if selection.Name != "" && o.GetName() != selection.Name || selection.Namespace != "" && o.GetNamespace() != selection.Namespace {
			continue
		}
		out = append(out, newPass(c, c.parents[types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}], now).propose(o))
	}
	if selection.Name != "" && len(out) == 0 {
		return nil, fmt.Errorf("there is no %s %s in %s", c.operator.Parent.Kind, selection.Name, where(selection.Namespace))
	}
	return out, nil
}

func (p *Pass) propose(parent *unstructured.Unstructured) Proposal {
	p.parent, p.live, p.selects = parent, true, p.core.selected(p.memory.name)
	ops := p.members()
	p.decide()
	ops = append(ops, p.ops...)
	ops = append(ops, p.sets()...)
	if op, ok := p.core.shape.Write(p.facts(), &p.memory.memo); ok {
		ops = append(ops, op)
	}
	return Proposal{Parent: plan.RefOf(parent), Ops: ops, Err: p.Err()}
}

func where(namespace string) string {
	if namespace == "" {
		return "any namespace"
	}
	return "namespace " + namespace
}
