package engine_test

import (
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/homeostat-dev/homeostat/engine"
	"github.com/homeostat-dev/homeostat/operator"
	"github.com/homeostat-dev/homeostat/test/planetest"
)

//go:embed probe.yaml
var probeCRD []byte

// Probe is a parent whose spec says how its Sync behaves.
type Probe struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Behave string            `json:"behave"`
		Data   map[string]string `json:"data,omitempty"`
	} `json:"spec"`
	Status struct {
		Children int `json:"children"`
	} `json:"status,omitempty"`
}

var (
	probes      = schema.GroupVersionResource{Group: "test.homeostat.dev", Version: "v1", Resource: "probes"}
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	services    = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	events      = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	crds        = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// probeOperator has one child kind of each sort; Sync does what spec.behave says.
func probeOperator() *operator.Operator {
	return operator.Declare(operator.Declaration[Probe]{
		Name: "probe", CRD: probeCRD, Sync: syncProbe,
		Children: []operator.Child{
			{Kind: operator.KindOf[corev1.ConfigMap]("v1")},
			{Kind: operator.KindOf[corev1.Service]("v1"), OwnedLists: []string{"spec.ports"}},
			{Kind: operator.KindOf[appsv1.Deployment]("apps/v1"), CreateOnly: []string{"spec.replicas"}},
		},
	})
}

// world is a namespace of a real cluster with a client of the user's.
type world struct {
	t         *testing.T
	plane     *planetest.Plane
	namespace string
	client    dynamic.Interface
}

func newWorld(t *testing.T) *world {
	t.Helper()
	plane := planetest.Start(t)
	client, err := dynamic.NewForConfig(plane.Config)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, plane: plane, client: client, namespace: plane.Namespace(t)}
	w.install(probeCRD, probes)
	return w
}

// install applies a CRD and waits until it is served.
func (w *world) install(manifest []byte, resource schema.GroupVersionResource) {
	w.t.Helper()
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(manifest, &crd.Object); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.client.Resource(crds).Apply(w.t.Context(), crd.GetName(), crd, metav1.ApplyOptions{FieldManager: "test", Force: true}); err != nil {
		w.t.Fatal(err)
	}
	w.until("the CRD is served", func() (bool, string) {
		_, err := w.client.Resource(resource).Namespace(w.namespace).List(w.t.Context(), metav1.ListOptions{Limit: 1})
		return err == nil, fmt.Sprint(err)
	})
}

// until waits for a condition of the cluster, with a deadline, and says what
// was seen last when it does not come.
func (w *world) until(what string, condition func() (ok bool, seen string)) {
	w.t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, seen := condition()
		if ok {
			return
		}
		select {
		case <-deadline:
			w.t.Fatalf("%s: not within 30 s; last seen: %s", what, seen)
		case <-tick.C:
		}
	}
}

// start runs an engine for the operator until the test ends or stop is called.
func (w *world) start(op *operator.Operator, agent string, wrap func(http.RoundTripper) http.RoundTripper) (stop func()) {
	w.t.Helper()
	config := rest.CopyConfig(w.plane.Config)
	config.UserAgent = agent
	if wrap != nil {
		config.Wrap(wrap)
	}
	mgr, err := manager.New(config, manager.Options{Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := engine.Add(mgr, op, engine.Namespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctrl.LoggerInto(context.Background(), logr.Discard()))
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			if err := <-done; err != nil {
				w.t.Errorf("the manager ended with: %v", err)
			}
		}
	}
	w.t.Cleanup(stop)
	return stop
}

func (w *world) create(resource schema.GroupVersionResource, manifest string) *unstructured.Unstructured {
	w.t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &o.Object); err != nil {
		w.t.Fatal(err)
	}
	created, err := w.client.Resource(resource).Namespace(w.namespace).Create(w.t.Context(), o, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return created
}

func (w *world) probe(name, behave string) {
	w.t.Helper()
	w.create(probes, fmt.Sprintf("{apiVersion: test.homeostat.dev/v1, kind: Probe, metadata: {name: %s}, spec: {behave: %s, data: {v: one}}}", name, behave))
}

// get is an object, nil when it is not there.
func (w *world) get(resource schema.GroupVersionResource, name string) *unstructured.Unstructured {
	o, err := w.client.Resource(resource).Namespace(w.namespace).Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return o
}

func (w *world) patch(resource schema.GroupVersionResource, name, patch string) {
	w.t.Helper()
	data, err := yaml.YAMLToJSON([]byte(patch))
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.client.Resource(resource).Namespace(w.namespace).Patch(w.t.Context(), name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: "user"}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) remove(resource schema.GroupVersionResource, name string) {
	w.t.Helper()
	if err := w.client.Resource(resource).Namespace(w.namespace).Delete(w.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// untilCondition waits until a probe has a condition of a type with a status
// and a reason.
func (w *world) untilCondition(name, conditionType, status, reason string) map[string]any {
	w.t.Helper()
	var found map[string]any
	w.until(fmt.Sprintf("%s of %s is %s with reason %s", conditionType, name, status, reason), func() (bool, string) {
		o := w.get(probes, name)
		if o == nil {
			return false, "no such probe"
		}
		list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		for _, e := range list {
			c := e.(map[string]any)
			if c["type"] == conditionType && c["status"] == status && c["reason"] == reason {
				found = c
				return true, ""
			}
		}
		return false, fmt.Sprint(list)
	})
	return found
}

func (w *world) ready(name string) { w.t.Helper(); w.untilCondition(name, "Ready", "True", "Ready") }

func (w *world) untilEvent(probe, reason string) {
	w.t.Helper()
	w.until(fmt.Sprintf("an event %s about %s", reason, probe), func() (bool, string) {
		list, err := w.client.Resource(events).Namespace(w.namespace).List(w.t.Context(), metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		for _, e := range list.Items {
			about, _, _ := unstructured.NestedString(e.Object, "involvedObject", "name")
			if about == probe && e.Object["reason"] == reason {
				return true, ""
			}
		}
		return false, fmt.Sprintf("%d events", len(list.Items))
	})
}
