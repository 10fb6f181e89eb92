package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

var (
	quotas   = schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}
	policies = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies"}
	bindings = schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicybindings"}
)

// message is what a condition says, in one string.
func message(c map[string]any) string { return fmt.Sprint(c["message"]) }

// mentions fails the test for each part that a text lacks.
func mentions(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not mention %q", text, part)
		}
	}
}

// TestQuotaDenied: the user reads which child a quota keeps out, and that a
// quota does; nothing has to be done but to raise it.
func TestQuotaDenied(t *testing.T) {
	w := newWorld(t)
	w.until("the namespace's own ConfigMap is there", func() (bool, string) { return w.get(configMaps, "kube-root-ca.crt") != nil, "" })
	w.create(quotas, "{apiVersion: v1, kind: ResourceQuota, metadata: {name: few}, spec: {hard: {count/configmaps: '1'}}}")
	w.until("the quota counts", func() (bool, string) {
		used, _, _ := unstructured.NestedString(w.get(quotas, "few").Object, "status", "used", "count/configmaps")
		return used == "1", used
	})
	w.start(probeOperator(), "probe-engine", nil)
	w.probe("p", "serve")
	mentions(t, message(w.untilCondition("p", "Stalled", "True", "Forbidden")), "ConfigMap", "/p", "quota", "few", "tried again")
	w.untilEvent("p", "Forbidden")
	w.until("the other child stands", func() (bool, string) { return w.get(services, "p") != nil, "" })
	w.patch(quotas, "few", "{spec: {hard: {count/configmaps: '9'}}}")
	w.ready("p")
}

// TestPolicyDenies: what a validating admission policy says reaches the user,
// and a spec that it allows heals.
func TestPolicyDenies(t *testing.T) {
	w := newWorld(t)
	w.deny("object.data.v != 'forbidden'", "value v is not for this shop")
	w.start(probeOperator(), "probe-engine", nil)
	w.create(probes, "{apiVersion: test.homeostat.dev/v1, kind: Probe, metadata: {name: p}, spec: {behave: data, data: {v: forbidden}}}")
	mentions(t, message(w.untilCondition("p", "Stalled", "True", "Refused")), "ConfigMap", "/p", "value v is not for this shop", "change the parent's spec")
	w.untilEvent("p", "Refused")
	w.patch(probes, "p", "{spec: {data: {v: allowed}}}")
	w.ready("p")
}

// deny makes a policy for the ConfigMaps of the test's namespace, and waits
// until it is in force.
func (w *world) deny(unless, says string) {
	w.t.Helper()
	name := w.namespace
	for _, o := range []struct {
		resource schema.GroupVersionResource
		text     string
	}{
		{policies, fmt.Sprintf(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: %s}, spec: {
 matchConstraints: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}},
  resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]},
 validations: [{expression: %q, message: %q}]}}`, name, w.namespace, unless, says)},
		{bindings, fmt.Sprintf(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: %s},
 spec: {policyName: %s, validationActions: [Deny]}}`, name, name)},
	} {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(o.text), &u.Object); err != nil {
			w.t.Fatal(err)
		}
		if _, err := w.client.Resource(o.resource).Create(w.t.Context(), u, metav1.CreateOptions{}); err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() {
			_ = w.client.Resource(o.resource).Delete(context.WithoutCancel(w.t.Context()), name, metav1.DeleteOptions{})
		})
	}
	w.until("the policy is in force", func() (bool, string) {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "try"}, "data": map[string]any{"v": "forbidden"}}}
		_, err := w.client.Resource(configMaps).Namespace(w.namespace).Create(w.t.Context(), u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return apierrors.IsInvalid(err), fmt.Sprint(err)
	})
}

// TestBigParent: 1.2 MiB is near what etcd takes. The parent works; a child that
// has all of it is refused, and the user reads why, in a condition that fits.
func TestBigParent(t *testing.T) {
	w := newWorld(t)
	w.start(probeOperator(), "probe-engine", nil)
	const big = 1_200_000
	create := func(name, behave string) {
		values, err := json.Marshal(map[string]any{
			"apiVersion": "test.homeostat.dev/v1", "kind": "Probe", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"behave": behave, "data": map[string]any{"v": "one", "fill": strings.Repeat("x", big)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		w.create(probes, string(values))
	}
	create("small-child", "without-fill")
	create("big-child", "data")
	w.ready("small-child")
	w.patch(probes, "small-child", "{spec: {data: {v: two}}}")
	w.untilData("small-child", "v", "two")
	c := message(w.untilCondition("big-child", "Stalled", "True", "Refused"))
	mentions(t, c, "ConfigMap", "big-child", "Too long")
	if len(c) > 1024 {
		t.Errorf("the condition has %d characters", len(c))
	}
}

func (w *world) untilData(configMap, key, want string) {
	w.t.Helper()
	w.until(fmt.Sprintf("ConfigMap %s has %s = %s", configMap, key, want), func() (bool, string) {
		o := w.get(configMaps, configMap)
		if o == nil {
			return false, "none"
		}
		got, _, _ := unstructured.NestedString(o.Object, "data", key)
		return got == want, got
	})
}

// TestManyChildren: 500 children of one parent come, heal and go.
func TestManyChildren(t *testing.T) {
	w := newWorld(t)
	w.start(probeOperator(), "probe-engine", nil)
	count := func() int {
		list, err := w.client.Resource(configMaps).Namespace(w.namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return -1
		}
		return len(slices.DeleteFunc(list.Items, func(o unstructured.Unstructured) bool { return !strings.HasPrefix(o.GetName(), "many") }))
	}
	const many = 500
	w.create(probes, fmt.Sprintf("{apiVersion: test.homeostat.dev/v1, kind: Probe, metadata: {name: many}, spec: {behave: many, data: {count: '%d'}}}", many))
	w.ready("many")
	if n := count(); n != many {
		t.Errorf("there are %d children, want %d", n, many)
	}
	w.remove(configMaps, "many-250")
	w.until("the child is back", func() (bool, string) { return w.get(configMaps, "many-250") != nil, "" })
	w.patch(probes, "many", "{spec: {data: {count: '3'}}}")
	w.until("three are left", func() (bool, string) { n := count(); return n == 3, fmt.Sprint(n) })
}

// TestEditedInALoop: a parent that changes faster than anybody can follow ends
// with the child of its last version, and a status about that.
func TestEditedInALoop(t *testing.T) {
	w := newWorld(t)
	w.start(probeOperator(), "probe-engine", nil)
	w.probe("p", "data")
	const edits = 100
	for i := range edits {
		w.patch(probes, "p", fmt.Sprintf("{spec: {data: {v: 'edit %d'}}}", i+1))
	}
	w.untilData("p", "v", fmt.Sprintf("edit %d", edits))
	w.until("the status is about the last edit", func() (bool, string) {
		o := w.get(probes, "p")
		about, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
		return about == o.GetGeneration(), fmt.Sprintf("%d of %d", about, o.GetGeneration())
	})
	w.ready("p")
	w.untilData("p", "v", fmt.Sprintf("edit %d", edits))
}

// storm answers requests, watches and events apart, as an API server in trouble.
type storm struct {
	mu      sync.Mutex
	raging  bool
	answers map[int]int
	count   int
}

func (s *storm) wrap(next http.RoundTripper) http.RoundTripper {
	troubles := []*apierrors.StatusError{
		apierrors.NewTooManyRequests("simulated: too many", 1), apierrors.NewInternalError(fmt.Errorf("simulated: a defect")),
		apierrors.NewServiceUnavailable("simulated: no etcd"), apierrors.NewTimeoutError("simulated: slow", 0),
	}
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		s.mu.Lock()
		raging := s.raging && r.Method != http.MethodGet
		trouble := troubles[s.count%len(troubles)].Status()
		if raging {
			s.count++
			s.answers[int(trouble.Code)]++
		}
		s.mu.Unlock()
		if !raging {
			return next.RoundTrip(r)
		}
		trouble.APIVersion, trouble.Kind = "v1", "Status"
		body, err := json.Marshal(trouble)
		if err != nil {
			return nil, err
		}
		header := http.Header{"Content-Type": {"application/json"}}
		if trouble.Details != nil && trouble.Details.RetryAfterSeconds > 0 {
			header.Set("Retry-After", strconv.Itoa(int(trouble.Details.RetryAfterSeconds)))
		}
		return &http.Response{StatusCode: int(trouble.Code), Header: header, Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body))}, nil
	})
}

func (s *storm) set(raging bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raging = raging
}

// TestStorm: an API server that answers every write with 429, 500, 503 or 504
// for some seconds costs time and nothing else.
func TestStorm(t *testing.T) {
	w := newWorld(t)
	s := &storm{answers: map[int]int{}}
	w.start(probeOperator(), "probe-engine", s.wrap)
	w.probe("before", "data")
	w.ready("before")
	s.set(true)
	const parents, enough = 20, 120
	for i := range parents {
		w.probe(fmt.Sprintf("p%d", i), "serve")
	}
	w.patch(probes, "before", "{spec: {data: {v: two}}}")
	w.until("the storm has hit often enough", func() (bool, string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.count >= enough && len(s.answers) == 4, fmt.Sprint(s.answers)
	})
	s.set(false)
	for i := range parents {
		w.ready(fmt.Sprintf("p%d", i))
	}
	w.untilData("before", "v", "two")
	w.ready("before")
}

// TestPoisonedAmongMany: parents for which Sync panics, or whose children are
// refused, say so; the others notice nothing.
func TestPoisonedAmongMany(t *testing.T) {
	w := newWorld(t)
	w.start(probeOperator(), "probe-engine", nil)
	const parents = 50
	poison := map[int]string{3: "panic", 13: "refused", 23: "panic", 33: "refused", 43: "panic"}
	behaves := func(i int) string {
		if b := poison[i]; b != "" {
			return b
		}
		return "serve"
	}
	for i := range parents {
		w.probe(fmt.Sprintf("p%d", i), behaves(i))
	}
	for i := range parents {
		name := fmt.Sprintf("p%d", i)
		switch behaves(i) {
		case "panic":
			w.untilCondition(name, "Stalled", "True", "SyncPanicked")
		case "refused":
			w.untilCondition(name, "Stalled", "True", "Refused")
		default:
			w.ready(name)
		}
	}
	w.remove(services, "p49")
	w.until("a healthy parent still heals", func() (bool, string) { return w.get(services, "p49") != nil, "" })
}
