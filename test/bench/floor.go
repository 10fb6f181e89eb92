package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// floor is what the writes cost by themselves: requests encoded beforehand, sent
// as many at once as was told, their answers thrown away; and the two watches
// that an operator needs, thrown away too. Children carry the reference to their
// parent as everybody's do, so that the garbage collector has the same to do.
type floor struct {
	entry
	api     *api
	parents []Trio
	bodies  map[string][]byte // of children, by name, and of statuses by the parent's name
	stop    context.CancelFunc
}

func newFloor(ctx context.Context, config *rest.Config, e entry) (*floor, error) {
	a, err := newAPI(config)
	if err != nil {
		return nil, err
	}
	f := &floor{entry: e, api: a, bodies: map[string][]byte{}}
	var list TrioList
	if err := a.get(ctx, &list, trios(e.namespace)...); err != nil {
		return nil, err
	}
	f.parents = list.Items
	for i := range f.parents {
		if err := f.encode(&f.parents[i]); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func (f *floor) encode(t *Trio) error {
	for n := range childrenPerParent {
		c := child(t, n)
		c.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
		c.Namespace = f.namespace
		c.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(t, group.WithKind("Trio"))}
		if f.kind == kindApplies {
			c.ResourceVersion = "1" // An exclusive creation, as the engine's.
		}
		data, err := json.Marshal(c)
		if err != nil {
			return err
		}
		f.bodies[c.Name] = data
	}
	status := TrioStatus{Count: childrenPerParent, ObservedGeneration: t.Generation}
	for kind, is := range map[string]metav1.ConditionStatus{"Ready": metav1.ConditionTrue, "Reconciling": metav1.ConditionFalse, "Stalled": metav1.ConditionFalse} {
		status.Conditions = append(status.Conditions, metav1.Condition{Type: kind, Status: is, Reason: "Ready",
			Message: "everything is as desired", ObservedGeneration: t.Generation, LastTransitionTime: metav1.Now()})
	}
	data, err := json.Marshal(map[string]any{"status": status})
	f.bodies[t.Name] = data
	return err
}

func (f *floor) run(ctx context.Context) error {
	watching, stop := context.WithCancel(ctx)
	f.stop = stop
	for _, path := range [][]string{trios(f.namespace), configMaps(f.namespace)} {
		stream, err := f.api.stream(watching, path...)
		if err != nil {
			return err
		}
		go drain(stream)
	}
	err := each(f.atOnce, len(f.parents), func(i int) error {
		t := &f.parents[i]
		for n := range childrenPerParent {
			if err := f.create(ctx, childName(t.Name, n)); err != nil {
				return err
			}
		}
		return f.api.send(ctx, f.api.client.Patch(types.MergePatchType), f.bodies[t.Name], append(trios(f.namespace), t.Name, "status")...)
	})
	if err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func (f *floor) create(ctx context.Context, name string) error {
	if f.kind == kindApplies {
		return f.api.send(ctx, f.api.client.Patch(types.ApplyYAMLPatchType).Param("force", "true").Param("fieldManager", "bench"),
			f.bodies[name], append(configMaps(f.namespace), name)...)
	}
	return f.api.send(ctx, f.api.client.Post(), f.bodies[name], configMaps(f.namespace)...)
}

// react answers events from here on with nothing but the write that they call
// for: the bare round trip.
func (f *floor) react(ctx context.Context) error {
	f.stop()
	events, err := f.api.watch(ctx, f.namespace)
	if err != nil {
		return err
	}
	go func() {
		for e := range events {
			switch {
			case e.Type == "DELETED" && e.Object.Kind == "ConfigMap":
				_ = f.create(ctx, e.Object.Metadata.Name) // What fails shows as a child that does not return.
			case e.Type == "MODIFIED" && e.Object.Kind == "Trio":
				f.follow(ctx, e)
			}
		}
	}()
	return nil
}

func (f *floor) follow(ctx context.Context, e event) {
	body, err := json.Marshal(corev1.ConfigMap{Data: map[string]string{"value": e.Object.Spec.Value}})
	if err != nil {
		return
	}
	var all sync.WaitGroup
	for n := range childrenPerParent {
		all.Go(func() {
			_ = f.api.send(ctx, f.api.client.Patch(types.MergePatchType), body,
				append(configMaps(f.namespace), childName(e.Object.Metadata.Name, n))...)
		})
	}
	all.Wait()
}

// each does something for the numbers below n, as many at once as told.
func each(atOnce, n int, do func(int) error) error {
	next := make(chan int)
	var workers sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	for range atOnce {
		workers.Go(func() {
			for i := range next {
				if err := do(i); err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	workers.Wait()
	if len(errs) > 3 {
		errs = append(errs[:3], fmt.Errorf("and %d more", len(errs)-3))
	}
	return errors.Join(errs...)
}

// event is what the benchmark reads of a watch event, and when it was seen.
type event struct {
	Type   string
	Object struct {
		Kind     string
		Metadata struct {
			Name, UID string
		}
		Spec   struct{ Value string }
		Status struct{ Count int }
		Data   struct{ Value string }
	}
	seen time.Time
}
