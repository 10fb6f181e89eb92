package engine_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/homeostat-dev/homeostat/operator"
)

// requests records what an engine sends, lists, watches and events apart.
type requests struct {
	mu   sync.Mutex
	seen []string
}

func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(q *http.Request) (*http.Response, error) {
		single := q.Method != http.MethodGet || strings.Count(q.URL.Path, "/") > 6
		if single && !strings.Contains(q.URL.Path, "/events") {
			r.mu.Lock()
			r.seen = append(r.seen, q.Method+" "+q.URL.Path)
			r.mu.Unlock()
		}
		return next.RoundTrip(q)
	})
}

// take returns what was seen since the last time.
func (r *requests) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.seen
	r.seen = nil
	return seen
}

// about are the requests that do not concern one probe.
func without(seen []string, probe string) []string {
	var out []string
	for _, s := range seen {
		if !strings.Contains(s, "/"+probe) {
			out = append(out, s)
		}
	}
	return out
}

// TestConvergingCostsTheFloor: one creation per child, one status per parent.
func TestConvergingCostsTheFloor(t *testing.T) {
	w := newWorld(t)
	var sent requests
	w.start(probeOperator(), "probe-engine", sent.wrap)
	w.probe("p", "serve")
	w.ready("p")
	if seen := sent.take(); len(seen) != 3 {
		t.Errorf("a parent with two children took %d requests, want 3: %q", len(seen), seen)
	}
}

// TestForeignChangesCostNothing: what others own is neither compared nor written.
func TestForeignChangesCostNothing(t *testing.T) {
	w := newWorld(t)
	var sent requests
	w.start(probeOperator(), "probe-engine", sent.wrap)
	w.probe("web", "serve")
	w.probe("app", "run") // Its quantity of 1000m is stored as 1.
	w.ready("web")
	w.until("the Deployment stands", func() (bool, string) { return w.get(deployments, "app") != nil, "" })
	w.untilQuiet(&sent)
	sent.take()
	w.patch(services, "web", "{metadata: {labels: {theirs: 'yes'}}}")
	w.patch(deployments, "app", "{metadata: {annotations: {theirs: 'yes'}}, spec: {template: {spec: {terminationGracePeriodSeconds: 7}}}}")
	w.probe("marker", "data") // Events come in the order of versions within a kind; this one comes after.
	w.ready("marker")
	for _, s := range without(sent.take(), "marker") {
		if !strings.HasSuffix(s, "/status") {
			t.Errorf("a foreign change caused %s", s)
		}
	}
}

// TestRestartIsQuiet: a new engine that finds everything in place writes nothing,
// but for one apply per child whose text the server normalises.
func TestRestartIsQuiet(t *testing.T) {
	w := newWorld(t)
	var first requests
	stop := w.start(probeOperator(), "probe-engine", first.wrap)
	for _, name := range []string{"a", "b", "c"} {
		w.probe(name, "serve")
		w.ready(name)
	}
	w.probe("app", "run")
	w.until("the Deployment stands", func() (bool, string) { return w.get(deployments, "app") != nil, "" })
	w.untilQuiet(&first)
	stop()
	var second requests
	w.start(probeOperator(), "probe-engine", second.wrap)
	w.probe("marker", "data")
	w.ready("marker")
	w.untilQuiet(&second)
	var applies int
	for _, s := range without(second.take(), "marker") {
		if strings.Contains(s, "/deployments/app") {
			applies++
			continue
		}
		t.Errorf("the restart caused %s", s)
	}
	if applies > 1 {
		t.Errorf("the restart applied the normalised Deployment %d times, want at most once", applies)
	}
}

// untilQuiet waits until an engine has sent nothing for a while of looking, and
// forgets nothing of what it sent.
func (w *world) untilQuiet(r *requests) {
	w.t.Helper()
	same, last := 0, -1
	w.until("the engine is quiet", func() (bool, string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if same++; len(r.seen) != last {
			same, last = 0, len(r.seen)
		}
		return same > 15, "still writing"
	})
}

// TestMissingKind: parents do without a kind that is not served, and use it as
// soon as it is.
func TestMissingKind(t *testing.T) {
	w := newWorld(t)
	group := "late" + strings.ReplaceAll(w.namespace, "-", "") + ".homeostat.dev"
	late := operator.Kind{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Late"}, Resource: "lates"}
	op := probeOperator()
	op.Children = append(op.Children, operator.Child{Kind: late})
	inner := op.Sync
	op.Sync = func(r operator.Request) (operator.Response, error) {
		response, err := inner(r)
		if r.Parent.GetName() == "wants" {
			child := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "late"}}}
			child.SetGroupVersionKind(late.GroupVersionKind)
			response.Children = append(response.Children, child)
		}
		return response, err
	}
	w.start(op, "probe-engine", nil)
	w.probe("other", "data")
	w.probe("wants", "data")
	w.ready("other")
	w.untilCondition("wants", "Stalled", "True", "KindNotServed")
	gvr := late.GVR()
	w.install([]byte(strings.ReplaceAll(lateCRD, "GROUP", group)), gvr)
	t.Cleanup(func() {
		_ = w.client.Resource(crds).Delete(context.WithoutCancel(t.Context()), "lates."+group, metav1.DeleteOptions{})
	})
	w.ready("wants")
	if w.get(gvr, "late") == nil {
		t.Error("the child of the late kind was not made")
	}
}

const lateCRD = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: lates.GROUP}, spec: {
  group: GROUP, names: {kind: Late, listKind: LateList, plural: lates, singular: late}, scope: Namespaced, versions: [
    {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`
