// Package engine_test runs the shipped engine against a real API server: what
// it does about bad input and foreign hands, and what users see of it.
package engine_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestPanicStaysWithItsParent(t *testing.T) {
	w := newWorld(t)
	w.start(probeOperator(), "probe-engine", nil)
	w.probe("bad", "panic")
	w.probe("good", "data")
	c := w.untilCondition("bad", "Stalled", "True", "SyncPanicked")
	if m := c["message"].(string); !strings.Contains(m, "operator probe") {
		t.Errorf("the message does not say whose defect it is: %s", m)
	}
	w.untilEvent("bad", "SyncPanicked")
	w.ready("good")
	if w.get(configMaps, "bad") != nil {
		t.Error("a child was made although Sync has no answer")
	}
}

func TestRefusedChild(t *testing.T) {
	w := newWorld(t)
	w.start(probeOperator(), "probe-engine", nil)
	w.probe("half", "refused")
	w.probe("good", "data")
	c := w.untilCondition("half", "Stalled", "True", "Refused")
	if m := c["message"].(string); !strings.Contains(m, "half-bad") || !strings.Contains(m, "not a key!") {
		t.Errorf("the message does not say which child and why: %s", m)
	}
	w.untilEvent("half", "Refused")
	w.ready("good")
	if w.get(configMaps, "half") == nil {
		t.Error("the child that is fine was not made")
	}
	w.patch(probes, "half", "{spec: {behave: data}}")
	w.ready("half")
}

func TestForeignOwner(t *testing.T) {
	w := newWorld(t)
	w.create(configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: taken}, data: {mine: 'yes'}}")
	w.start(probeOperator(), "probe-engine", nil)
	w.probe("taken", "data")
	w.untilCondition("taken", "Stalled", "True", "ForeignOwner")
	w.untilEvent("taken", "ForeignOwner")
	if mine, _, _ := unstructured.NestedString(w.get(configMaps, "taken").Object, "data", "mine"); mine != "yes" {
		t.Error("the foreign object was changed")
	}
	w.remove(configMaps, "taken")
	w.ready("taken")
}

func TestTakenNameIsVisibleToSync(t *testing.T) {
	w := newWorld(t)
	w.probe("p", "another-name")
	uid := w.get(probes, "p").GetUID()
	first := operatorName("p-", uid, "0")
	w.create(configMaps, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %q}}", first))
	w.start(probeOperator(), "probe-engine", nil)
	w.ready("p")
	if w.get(configMaps, operatorName("p-", uid, "1")) == nil {
		t.Error("the child does not stand under the other name")
	}
}

func TestUnstableSyncIsStopped(t *testing.T) {
	w := newWorld(t)
	w.start(probeOperator(), "probe-engine", nil)
	w.probe("dizzy", "unstable")
	w.probe("good", "data")
	w.untilCondition("dizzy", "Stalled", "True", "Unstable")
	w.ready("good")
}

func TestHandEditedPortKeepsItsNodePort(t *testing.T) {
	w := newWorld(t)
	w.start(probeOperator(), "probe-engine", nil)
	w.probe("web", "serve")
	w.ready("web")
	port := func() (number, node int64, count int) {
		ports, _, _ := unstructured.NestedSlice(w.get(services, "web").Object, "spec", "ports")
		p := ports[0].(map[string]any)
		return p["port"].(int64), p["nodePort"].(int64), len(ports)
	}
	_, allocated, _ := port()
	w.patch(services, "web", fmt.Sprintf("{spec: {ports: [{name: http, port: 8080, protocol: TCP, nodePort: %d}]}}", allocated))
	w.until("port 80 is back", func() (bool, string) {
		number, node, count := port()
		return number == 80 && node == allocated && count == 1, fmt.Sprint(number, node, count)
	})
	w.patch(services, "web", fmt.Sprintf("{spec: {ports: [{name: http, port: 80, nodePort: %d}, {name: other, port: 81}]}}", allocated))
	w.until("the foreign port is gone", func() (bool, string) {
		number, node, count := port()
		return number == 80 && node == allocated && count == 1, fmt.Sprint(number, node, count)
	})
}

func TestCreateOnlyFieldBelongsToOthers(t *testing.T) {
	w := newWorld(t)
	w.start(probeOperator(), "probe-engine", nil)
	w.probe("app", "run")
	w.until("the Deployment stands", func() (bool, string) { return w.get(deployments, "app") != nil, "" })
	w.patch(deployments, "app", "{spec: {replicas: 2}}")
	w.patch(probes, "app", "{spec: {data: {v: two}}}")
	w.until("the image changed and the replicas did not", func() (bool, string) {
		d := w.get(deployments, "app")
		replicas, _, _ := unstructured.NestedInt64(d.Object, "spec", "replicas")
		containers, _, _ := unstructured.NestedSlice(d.Object, "spec", "template", "spec", "containers")
		image := containers[0].(map[string]any)["image"]
		if replicas != 2 {
			t.Fatalf("replicas is %d: the apply took it back or reset it", replicas)
		}
		return image == "example.com/two", fmt.Sprint(replicas, image)
	})
}

func TestDroppedFieldVanishes(t *testing.T) {
	w := newWorld(t)
	w.start(probeOperator(), "probe-engine", nil)
	w.create(probes, "{apiVersion: test.homeostat.dev/v1, kind: Probe, metadata: {name: p}, spec: {behave: data, data: {a: '1', b: '2'}}}")
	w.ready("p")
	w.patch(probes, "p", "{spec: {data: {b: null}}}")
	w.until("data.b is gone", func() (bool, string) {
		data, _, _ := unstructured.NestedStringMap(w.get(configMaps, "p").Object, "data")
		_, has := data["b"]
		return !has && data["a"] == "1", fmt.Sprint(data)
	})
}

// TestLostResponses loses the answer to every other write after the API server
// has carried it out.
func TestLostResponses(t *testing.T) {
	w := newWorld(t)
	var writes atomic.Int64
	w.start(probeOperator(), "probe-engine", func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if r.Method == http.MethodPatch && err == nil && writes.Add(1)%2 == 1 {
				_ = response.Body.Close()
				return nil, fmt.Errorf("simulated: the answer to %s %s is lost", r.Method, r.URL.Path)
			}
			return response, err
		})
	})
	for i := range 5 {
		w.probe(fmt.Sprintf("p%d", i), "serve")
	}
	for i := range 5 {
		w.ready(fmt.Sprintf("p%d", i))
	}
	if writes.Load() == 0 {
		t.Error("no write was seen: the test shows nothing")
	}
}

func TestTwoEnginesAtOnce(t *testing.T) {
	w := newWorld(t)
	w.start(probeOperator(), "probe-engine-1", nil)
	w.start(probeOperator(), "probe-engine-2", nil)
	for i := range 10 {
		w.probe(fmt.Sprintf("p%d", i), "serve")
	}
	for i := range 10 {
		w.ready(fmt.Sprintf("p%d", i))
		w.remove(services, fmt.Sprintf("p%d", i))
	}
	for i := range 10 {
		w.until("the Service is back", func() (bool, string) { return w.get(services, fmt.Sprintf("p%d", i)) != nil, "" })
	}
}

// TestFightNamesTheOtherWriter: a controller that insists is named, and left
// alone before it costs anything.
func TestFightNamesTheOtherWriter(t *testing.T) {
	w := newWorld(t)
	w.start(probeOperator(), "probe-engine", nil)
	w.probe("p", "data")
	w.ready("p")
	w.until("the engine gives up", func() (bool, string) {
		w.patch(configMaps, "p", "{data: {v: theirs}}")
		list, _, _ := unstructured.NestedSlice(w.get(probes, "p").Object, "status", "conditions")
		return strings.Contains(fmt.Sprint(list), "Fighting"), fmt.Sprint(list)
	})
	c := w.untilCondition("p", "Stalled", "True", "Fighting")
	if m := c["message"].(string); !strings.Contains(m, "data.v") || !strings.Contains(m, "user") {
		t.Errorf("the message names neither the field nor the writer: %s", m)
	}
}
