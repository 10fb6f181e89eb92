package engine_test

import (
	"fmt"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/homeostat-dev/homeostat/engine/apply"
	"github.com/homeostat-dev/homeostat/engine/plan"
	"github.com/homeostat-dev/homeostat/operator"
)

// The tests in this file hold a real API server to the facts on which the
// engine relies. One that fails means that the engine must change.

var configMapKind = operator.KindOf[corev1.ConfigMap]("v1")

func newApplier(t *testing.T, w *world) *apply.Applier {
	t.Helper()
	client, err := rest.HTTPClientFor(w.plane.Config)
	if err != nil {
		t.Fatal(err)
	}
	applier, err := apply.New(w.plane.Config, client)
	if err != nil {
		t.Fatal(err)
	}
	return applier
}

// configMapOp is an apply of a ConfigMap with metadata of the caller's.
func configMapOp(w *world, verb plan.Verb, manager, name string, meta map[string]any, data map[string]any) plan.Op {
	metadata := map[string]any{"name": name, "namespace": w.namespace}
	for k, v := range meta {
		metadata[k] = v
	}
	return plan.Op{Verb: verb, Kind: configMapKind, Namespace: w.namespace, Name: name, Manager: manager,
		Body: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}}
}

var exclusive = map[string]any{"resourceVersion": "1"}

func TestFactExclusiveCreate(t *testing.T) {
	w := newWorld(t)
	applier := newApplier(t, w)
	var mu sync.Mutex
	outcomes := map[string]int{}
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			result := applier.Do(t.Context(), configMapOp(w, plan.Create, fmt.Sprintf("m%d", i), "one", exclusive, map[string]any{"by": fmt.Sprint(i)}))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case result.Err == nil:
				outcomes["created"]++
			case apierrors.IsConflict(result.Err):
				outcomes["conflict"]++
			default:
				outcomes[result.Err.Error()]++
			}
		})
	}
	all.Wait()
	if outcomes["created"] != 1 || outcomes["conflict"] != 11 {
		t.Errorf("twelve exclusive creations at once: %v, want one created and eleven conflicts", outcomes)
	}
}

func TestFactUIDFence(t *testing.T) {
	w := newWorld(t)
	applier := newApplier(t, w)
	fenced := configMapOp(w, plan.Apply, "m", "o", map[string]any{"uid": "11111111-2222-3333-4444-555555555555"}, map[string]any{"a": "1"})
	if err := applier.Do(t.Context(), fenced).Err; !apierrors.IsConflict(err) {
		t.Errorf("an apply with a UID where nothing is: %v, want a conflict", err)
	}
	if w.get(configMaps, "o") != nil {
		t.Error("it created the object")
	}
	created := applier.Do(t.Context(), configMapOp(w, plan.Create, "m", "o", exclusive, map[string]any{"a": "1"}))
	if created.Err != nil {
		t.Fatal(created.Err)
	}
	err := applier.Do(t.Context(), fenced).Err
	if !apierrors.IsInvalid(err) {
		t.Errorf("an apply with another object's UID: %v, want invalid", err)
	}
	status, _ := err.(apierrors.APIStatus)
	if status == nil || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 || status.Status().Details.Causes[0].Field != "metadata.uid" {
		t.Errorf("its cause does not name metadata.uid: %v", err)
	}
	deletion := plan.Op{Verb: plan.Delete, Kind: configMapKind, Namespace: w.namespace, Name: "o", UID: "11111111-2222-3333-4444-555555555555"}
	if err := applier.Do(t.Context(), deletion).Err; !apierrors.IsConflict(err) {
		t.Errorf("a deletion with another object's UID: %v, want a conflict", err)
	}
	deletion.UID = created.Object.GetUID()
	if result := applier.Do(t.Context(), deletion); result.Err != nil || result.Object != nil {
		t.Errorf("a deletion answered %v, %v; want no object and no error", result.Object, result.Err)
	}
}

func TestFactApplyThatChangesNothing(t *testing.T) {
	w := newWorld(t)
	applier := newApplier(t, w)
	op := configMapOp(w, plan.Create, "m", "o", exclusive, map[string]any{"a": "1"})
	created := applier.Do(t.Context(), op)
	if created.Err != nil {
		t.Fatal(created.Err)
	}
	again := applier.Do(t.Context(), configMapOp(w, plan.Apply, "m", "o", map[string]any{"uid": string(created.Object.GetUID())}, map[string]any{"a": "1"}))
	if again.Err != nil || again.Object.GetResourceVersion() != created.Object.GetResourceVersion() {
		t.Errorf("the same apply again: version %s after %s, %v; want the same", again.Object.GetResourceVersion(), created.Object.GetResourceVersion(), again.Err)
	}
}

func TestFactDroppedFieldIsRemoved(t *testing.T) {
	w := newWorld(t)
	applier := newApplier(t, w)
	created := applier.Do(t.Context(), configMapOp(w, plan.Create, "m", "o", exclusive, map[string]any{"a": "1", "b": "2"}))
	if created.Err != nil {
		t.Fatal(created.Err)
	}
	if plan.Owned(created.Object, "m", "") == nil {
		t.Error("an exclusive creation by apply has no Apply entry of its manager")
	}
	less := applier.Do(t.Context(), configMapOp(w, plan.Apply, "m", "o", map[string]any{"uid": string(created.Object.GetUID())}, map[string]any{"a": "1"}))
	if less.Err != nil {
		t.Fatal(less.Err)
	}
	if data, _, _ := unstructured.NestedStringMap(less.Object.Object, "data"); data["b"] != "" || data["a"] != "1" {
		t.Errorf("data is %v after b was dropped", data)
	}
}

func TestFactStaleMergePatch(t *testing.T) {
	w := newWorld(t)
	applier := newApplier(t, w)
	created := applier.Do(t.Context(), configMapOp(w, plan.Create, "m", "o", exclusive, map[string]any{"a": "1"}))
	if created.Err != nil {
		t.Fatal(created.Err)
	}
	w.patch(configMaps, "o", "{data: {c: '3'}}")
	stale := plan.Op{Verb: plan.Strip, Kind: configMapKind, Namespace: w.namespace, Name: "o", Body: map[string]any{
		"metadata": map[string]any{"uid": string(created.Object.GetUID()), "resourceVersion": created.Object.GetResourceVersion()},
		"data":     map[string]any{"a": "2"},
	}}
	if err := applier.Do(t.Context(), stale).Err; !apierrors.IsConflict(err) {
		t.Errorf("a merge patch with an old version: %v, want a conflict", err)
	}
}

func TestFactTerminatingNamespace(t *testing.T) {
	w := newWorld(t)
	applier := newApplier(t, w)
	w.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: holds, finalizers: [test.homeostat.dev/hold]}}")
	if err := w.client.Resource(namespaces).Delete(t.Context(), w.namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	err := applier.Do(t.Context(), configMapOp(w, plan.Create, "m", "late", exclusive, nil)).Err
	if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("a creation in a terminating namespace: %v, want the cause NamespaceTerminating", err)
	}
	w.patch(configMaps, "holds", "{metadata: {finalizers: null}}")
}

func TestFactGracefulDeletionAnswersWithTheObject(t *testing.T) {
	w := newWorld(t)
	applier := newApplier(t, w)
	held := w.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: held, finalizers: [test.homeostat.dev/hold]}}")
	result := applier.Do(t.Context(), plan.Op{Verb: plan.Delete, Kind: configMapKind, Namespace: w.namespace, Name: "held", UID: held.GetUID()})
	if result.Err != nil || result.Object == nil || result.Object.GetDeletionTimestamp() == nil {
		t.Errorf("the deletion of an object that is held answered %v, %v; want the object on its way out", result.Object, result.Err)
	}
	w.patch(configMaps, "held", "{metadata: {finalizers: null}}")
}
