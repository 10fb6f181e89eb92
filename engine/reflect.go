package engine

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/homeostat-dev/homeostat/operator"
)

// reflect keeps the core's world in step with one kind until the context ends.
// client-go's Reflector lists, watches, and starts again after a break; the
// core stands where an informer's store would, so that there is one copy of each
// object and its version is known.
func (e *engine) reflect(ctx context.Context, kind operator.Kind) {
	resource := e.client.Resource(kind.GVR())
	namespace := e.settings.namespace
	if kind.ClusterScoped {
		namespace = metav1.NamespaceAll
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			if o.ResourceVersion == "0" {
				// Any age of cache would do for a Reflector. Not for an engine that has
				// just started and remembers nothing: its own last writes must be in it.
				o.ResourceVersion = ""
			}
			list, err := resource.Namespace(namespace).List(ctx, o)
			return list, e.seen(ctx, kind, err)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := resource.Namespace(namespace).Watch(ctx, o)
			return w, e.seen(ctx, kind, err)
		},
	}
	expected := &unstructured.Unstructured{}
	expected.SetGroupVersionKind(kind.GroupVersionKind)
	reflector := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(source, e.client), expected,
		&shelf{engine: e, kind: kind}, cache.ReflectorOptions{Name: e.core.operator.Name + "/" + kind.String(), Logger: &e.log})
	reflector.RunWithContext(ctx)
}

// seen tells the core about a kind that the API server does not know or does not
// let it see, and the log about every other trouble. It returns the error it was given.
func (e *engine) seen(ctx context.Context, kind operator.Kind, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		e.core.Missing(kind.GroupVersionKind, err)
		e.notify()
	}
	e.log.Info("Cannot watch", "kind", kind.String(), "why", err.Error(), "do", advice(err))
	return err
}

func advice(err error) string {
	switch {
	case apierrors.IsNotFound(err):
		return "install the CustomResourceDefinition of the kind; this goes on by itself then"
	case apierrors.IsForbidden(err):
		return "apply the role that the manifests command prints"
	}
	return "it is tried again"
}

// shelf is the core as the store of a Reflector for one kind.
type shelf struct {
	engine *engine
	kind   operator.Kind
}

func (s *shelf) Add(o any) error    { return s.observe(o, false) }
func (s *shelf) Update(o any) error { return s.observe(o, false) }
func (s *shelf) Delete(o any) error { return s.observe(o, true) }
func (s *shelf) Resync() error      { return nil }

func (s *shelf) Replace(list []any, version string) error {
	objects := make([]*unstructured.Unstructured, 0, len(list))
	for _, o := range list {
		u, ok := o.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("list of %v has a %T", s.kind, o)
		}
		u.SetGroupVersionKind(s.kind.GroupVersionKind) // Items of a list need not say it.
		objects = append(objects, u)
	}
	s.engine.core.Replace(s.kind.GroupVersionKind, objects, version)
	s.engine.notify()
	return nil
}

func (s *shelf) observe(o any, deleted bool) error {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("watch of %v saw a %T", s.kind, o)
	}
	s.engine.core.Observe(s.kind.GroupVersionKind, u, deleted)
	s.engine.notify()
	return nil
}
