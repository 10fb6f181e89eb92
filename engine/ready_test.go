package engine

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/homeostat-dev/homeostat/operator"
)

// TestReadiness: an engine is ready once it sees what it needs to see.
func TestReadiness(t *testing.T) {
	parents, children := operator.KindOf[corev1.Service]("v1"), operator.KindOf[corev1.ConfigMap]("v1")
	op := &operator.Operator{
		Name: "o", Parent: parents, Children: []operator.Child{{Kind: children}},
		Sync: func(operator.Request) (operator.Response, error) { return operator.Response{}, nil },
	}
	notServed := apierrors.NewNotFound(schema.GroupResource{}, "")
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", nil)
	listed := func(c *Core, kinds ...operator.Kind) {
		for _, k := range kinds {
			c.Replace(k.GroupVersionKind, nil, "1")
		}
	}
	for name, tc := range map[string]struct {
		given func(e *engine, c *Core)
		want  bool
	}{
		"one that stands by":                 {func(*engine, *Core) {}, true},
		"one that has seen nothing":          {func(e *engine, _ *Core) { e.started.Store(true) }, false},
		"one that has seen the parents only": {func(e *engine, c *Core) { e.started.Store(true); listed(c, parents) }, false},
		"one that has seen everything":       {func(e *engine, c *Core) { e.started.Store(true); listed(c, parents, children) }, true},
		"a child kind that is not served": {func(e *engine, c *Core) {
			e.started.Store(true)
			listed(c, parents)
			c.Missing(children.GroupVersionKind, notServed)
		}, true},
		"a parent kind that is not served": {func(e *engine, c *Core) {
			e.started.Store(true)
			listed(c, children)
			c.Missing(parents.GroupVersionKind, notServed)
		}, false},
		"a kind that may not be seen": {func(e *engine, c *Core) {
			e.started.Store(true)
			listed(c, parents, children)
			c.Missing(children.GroupVersionKind, forbidden)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			core, err := NewCore(op, CoreOptions{})
			if err != nil {
				t.Fatal(err)
			}
			e := &engine{core: core}
			tc.given(e, core)
			if got := e.ready(nil); (got == nil) != tc.want {
				t.Errorf("ready is %v, want ready: %v", got, tc.want)
			}
		})
	}
}
