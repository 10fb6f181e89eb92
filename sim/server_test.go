package sim_test

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/homeostat-dev/homeostat/operator"
	"github.com/homeostat-dev/homeostat/sim"
)

//go:embed testdata/pair.yaml
var pairCRD []byte

var (
	start         = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	configMapKind = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	podKind       = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	deployments   = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	pairKind      = schema.GroupVersionKind{Group: "sim.example.com", Version: "v1", Kind: "Pair"}
)

func definition(t testing.TB, data []byte) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		t.Fatal(err)
	}
	return crd
}

func newAPI(t testing.TB, crds ...*apiextensionsv1.CustomResourceDefinition) *sim.API {
	t.Helper()
	api, err := sim.NewAPI(crds...)
	if err != nil {
		t.Fatal(err)
	}
	return api
}

func ref(kind schema.GroupVersionKind, name string) operator.Ref {
	return operator.Ref{Kind: kind, Namespace: "default", Name: name}
}

const (
	configMapA = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}"
	pairA      = "{apiVersion: sim.example.com/v1, kind: Pair, metadata: {name: a}, spec: {keys: [x]}}"
	webA       = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {replicas: 3, selector: {matchLabels: {app: a}},
 template: {metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1000m}}}]}}}}`
	serviceA = "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{name: http, port: 80}]}}"
)

// answer is a response as the golden table has it: a code and a reason, or how
// version and generation moved.
func answer(before, after *unstructured.Unstructured, err error) string {
	if err != nil {
		status, ok := errors.AsType[*apierrors.StatusError](err)
		if !ok {
			return "not a status: " + err.Error()
		}
		return strings.TrimSpace(fmt.Sprintf("%d %s", status.Status().Code, status.Status().Reason))
	}
	if after == nil {
		return "200 nothing"
	}
	if before == nil {
		return fmt.Sprintf("201 generation %d", after.GetGeneration())
	}
	moved := "same version"
	if before.GetResourceVersion() != after.GetResourceVersion() {
		moved = "new version"
	}
	return fmt.Sprintf("200 %s, generation +%d", moved, after.GetGeneration()-before.GetGeneration())
}

// TestGoldenTable holds what was seen on kube-apiserver 1.36.3 against the
// simulated server.
func TestGoldenTable(t *testing.T) {
	api := newAPI(t, definition(t, pairCRD))
	for _, row := range goldenRows() {
		t.Run(row.name, func(t *testing.T) {
			s := sim.NewServer(api)
			user := s.As("user", start)
			var o *unstructured.Unstructured
			if row.given != "" {
				var err error
				if o, err = user.Create(sim.Parse(row.given)); err != nil {
					t.Fatal(err)
				}
			}
			after, err := row.when(user, o)
			if got := answer(o, after, err); got != row.want {
				t.Errorf("simulated answer %q, a real server's %q (%v)", got, row.want, err)
			}
			if row.also != nil {
				row.also(t, s, after, err)
			}
		})
	}
}

type goldenRow struct {
	name, given string
	when        func(c sim.Client, o *unstructured.Unstructured) (*unstructured.Unstructured, error)
	want        string
	also        func(t *testing.T, s *sim.Server, after *unstructured.Unstructured, err error)
}

type request = func(sim.Client, *unstructured.Unstructured) (*unstructured.Unstructured, error)

func creates(text string) request {
	return func(c sim.Client, _ *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		return c.Create(sim.Parse(text))
	}
}

func applies(text string, metadata ...string) request {
	return func(c sim.Client, _ *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		return c.Apply(with(sim.Parse(text), metadata...), "")
	}
}

// puts changes the stored object by a merge patch and sends it whole.
func puts(patch string, subresource string) request {
	return func(c sim.Client, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		o = o.DeepCopy()
		change(o.Object, patch)
		return c.Update(o, subresource)
	}
}

func patches(patch string, subresource string) request {
	return func(c sim.Client, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		return c.Patch(operator.Ref{Kind: o.GroupVersionKind(), Namespace: o.GetNamespace(), Name: o.GetName()}, values(patch), subresource)
	}
}

func with(o *unstructured.Unstructured, metadata ...string) *unstructured.Unstructured {
	for i := 0; i < len(metadata); i += 2 {
		_ = unstructured.SetNestedField(o.Object, metadata[i+1], "metadata", metadata[i])
	}
	return o
}

func values(text string) map[string]any {
	out := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		panic(err)
	}
	return out
}

func change(target map[string]any, patch string) {
	var set func(target, patch map[string]any)
	set = func(target, patch map[string]any) {
		for k, v := range patch {
			if inner, ok := v.(map[string]any); ok {
				if _, ok := target[k].(map[string]any); !ok {
					target[k] = map[string]any{}
				}
				set(target[k].(map[string]any), inner)
				continue
			}
			target[k] = v
		}
	}
	set(target, values(patch))
}

func then(requests ...request) request {
	return func(c sim.Client, o *unstructured.Unstructured) (after *unstructured.Unstructured, err error) {
		for _, r := range requests {
			if after, err = r(c, o); err != nil {
				return nil, err
			}
		}
		return after, nil
	}
}

func deletes(version string) request {
	return func(c sim.Client, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		r := operator.Ref{Kind: o.GroupVersionKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
		return c.Delete(r, "", version, false)
	}
}

func gone(kind schema.GroupVersionKind, name string) func(*testing.T, *sim.Server, *unstructured.Unstructured, error) {
	return func(t *testing.T, s *sim.Server, _ *unstructured.Unstructured, _ error) {
		if o := s.Get(ref(kind, name)); o != nil {
			t.Errorf("%s %s is still there", kind.Kind, name)
		}
		log := s.Log(kind)
		last := log[len(log)-1]
		if last.Type != "DELETED" || last.Object.GetResourceVersion() != fmt.Sprint(s.Revision()) {
			t.Errorf("the last event is %s at %s, want DELETED at the deletion's version %d", last.Type, last.Object.GetResourceVersion(), s.Revision())
		}
	}
}

func has(want string, path ...string) func(*testing.T, *sim.Server, *unstructured.Unstructured, error) {
	return func(t *testing.T, _ *sim.Server, o *unstructured.Unstructured, _ error) {
		got, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
		if diff := cmp.Diff(want, fmt.Sprint(got)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", path, diff)
		}
	}
}

func cause(want metav1.CauseType) func(*testing.T, *sim.Server, *unstructured.Unstructured, error) {
	return func(t *testing.T, _ *sim.Server, _ *unstructured.Unstructured, err error) {
		if !apierrors.HasStatusCause(err, want) {
			t.Errorf("%v has no cause %s", err, want)
		}
	}
}

func terminating(text string) request {
	return func(c sim.Client, _ *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		if _, err := c.Delete(operator.Ref{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Name: "default"}, "", "", false); err != nil {
			return nil, err
		}
		return c.Create(sim.Parse(text))
	}
}
