package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/homeostat-dev/homeostat"
	"github.com/homeostat-dev/homeostat/internal/manifest"
	"github.com/homeostat-dev/homeostat/operator"
	"github.com/homeostat-dev/homeostat/operators/memcached"
	"github.com/homeostat-dev/homeostat/test/planetest"
)

// TestBothWork runs the manager on a real API server: the operator makes a
// Memcached true, and heals it, while the reconciler counts.
func TestBothWork(t *testing.T) {
	p := planetest.Start(t)
	namespace := p.Namespace(t)
	c, err := client.New(p.Config, client.Options{Scheme: clientscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	install(t, p)
	start(t, p, namespace)

	named := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{countLabel: "true"}}
	}
	parent := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "m", "namespace": namespace}, "spec": map[string]any{"size": int64(2)},
	}}
	parent.SetGroupVersionKind(memcached.Operator.Parent.GroupVersionKind)
	for _, o := range []client.Object{&corev1.ConfigMap{ObjectMeta: named("counted"), Data: map[string]string{"a": "1", "b": "2"}}, parent} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	replicas := func() (*appsv1.Deployment, bool, string) {
		d := &appsv1.Deployment{}
		err := c.Get(t.Context(), client.ObjectKeyFromObject(parent), d)
		return d, err == nil && *d.Spec.Replicas == 2, fmt.Sprint(err)
	}
	until(t, "the Deployment asks for 2", func() (bool, string) { _, ok, seen := replicas(); return ok, seen })
	until(t, "the keys are counted", func() (bool, string) {
		m := &corev1.ConfigMap{}
		err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "counted"}, m)
		return err == nil && m.Annotations[keysAnnotation] == "2", fmt.Sprint(m.Annotations, err)
	})
	d, _, _ := replicas()
	byHand := d.DeepCopy()
	byHand.Spec.Replicas = new(int32(5))
	if err := c.Patch(t.Context(), byHand, client.MergeFrom(d)); err != nil {
		t.Fatal(err)
	}
	until(t, "the replicas are healed", func() (bool, string) {
		after, ok, seen := replicas()
		return ok && after.Generation > byHand.Generation, seen
	})
}

// install applies the operator's definition and waits until it is served.
func install(t *testing.T, p *planetest.Plane) {
	t.Helper()
	var crd bytes.Buffer
	if err := manifest.Write(&crd, manifest.YAML, manifest.Definitions([]*operator.Operator{memcached.Operator})); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "crd.yaml")
	if err := os.WriteFile(file, crd.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Kubectl(t, "apply", "--server-side", "--force-conflicts", "-f", file)
	p.Kubectl(t, "wait", "--for=condition=Established", "crd/"+memcached.Operator.CRD.Name, "--timeout=30s")
}

// start runs the manager of the example, confined to a namespace.
func start(t *testing.T, p *planetest.Plane, namespace string) {
	t.Helper()
	mgr, err := ctrl.NewManager(p.Config, ctrl.Options{
		Scheme: clientscheme.Scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		// A name may come again when the test does, as with -count=2.
		Controller: config.Controller{SkipNameValidation: new(true)},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := setup(mgr, homeostat.Namespace(namespace)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with: %v", err)
		}
	})
}

// until waits for a condition, with a deadline.
func until(t *testing.T, what string, condition func() (ok bool, seen string)) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, seen := condition()
		if ok {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("%s: not within 30 s; last seen: %s", what, seen)
		case <-tick.C:
		}
	}
}
