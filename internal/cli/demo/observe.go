package demo

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/homeostat-dev/homeostat/operator"
)

// observer follows objects of one namespace by watching. It sees every event
// one by one, so that a state that lasts a millisecond is not missed.
type observer struct {
	mu    sync.Mutex
	world World
	watch *stopwatch
	clock func() time.Time
}

// stopwatch notes when the conditions of a step first hold, one after the other.
type stopwatch struct {
	conditions []Condition
	at         []time.Time
	seen       string
	done       chan struct{}
}

// observe starts watching and returns when everything that is there was seen.
func observe(ctx context.Context, client dynamic.Interface, namespace string, kinds []operator.Kind, clock func() time.Time) (*observer, error) {
	o := &observer{world: World{}, clock: clock}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil)
	for _, k := range kinds {
		o.world[k.GroupVersionKind] = map[string]Object{}
		informer := factory.ForResource(k.GVR()).Informer()
		if _, err := informer.AddEventHandler(o.handler(k)); err != nil {
			return nil, fmt.Errorf("watch %v: %w", k, err)
		}
	}
	factory.Start(ctx.Done())
	for gvr, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return nil, fmt.Errorf("list %s: %w", gvr.Resource, context.Cause(ctx))
		}
	}
	return o, nil
}

func (o *observer) handler(k operator.Kind) cache.ResourceEventHandler {
	objects := o.world[k.GroupVersionKind]
	set := func(v any) {
		if u, ok := v.(*unstructured.Unstructured); ok {
			o.change(func() { objects[u.GetName()] = u.Object })
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    set,
		UpdateFunc: func(_, v any) { set(v) },
		DeleteFunc: func(v any) {
			if last, ok := v.(cache.DeletedFinalStateUnknown); ok {
				v = last.Obj
			}
			if u, ok := v.(*unstructured.Unstructured); ok {
				o.change(func() { delete(objects, u.GetName()) })
			}
		},
	}
}

func (o *observer) change(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f()
	o.look()
}

// start sets a stopwatch on the conditions. It looks at once, and then at each event.
func (o *observer) start(conditions ...Condition) *stopwatch {
	s := &stopwatch{conditions: conditions, done: make(chan struct{})}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.watch = s
	o.look()
	return s
}

func (o *observer) look() {
	s := o.watch
	for s != nil && len(s.at) < len(s.conditions) {
		holds, seen := s.conditions[len(s.at)](o.world)
		if !holds {
			s.seen = seen
			return
		}
		s.at = append(s.at, o.clock())
		if len(s.at) == len(s.conditions) {
			close(s.done)
		}
	}
}

// instead is what was last seen in place of what a stopwatch waits for.
func (o *observer) instead(s *stopwatch) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return s.seen
}
