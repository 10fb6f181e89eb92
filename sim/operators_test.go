package sim_test

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/homeostat-dev/homeostat/engine/plan"
	"github.com/homeostat-dev/homeostat/operator"
	"github.com/homeostat-dev/homeostat/operators/machine"
	"github.com/homeostat-dev/homeostat/operators/memcached"
	"github.com/homeostat-dev/homeostat/operators/netperf"
	"github.com/homeostat-dev/homeostat/operators/webserver"
	"github.com/homeostat-dev/homeostat/sim"
)

var (
	serviceKind   = schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	memcachedKind = memcached.Operator.Parent.GroupVersionKind
	webserverKind = webserver.Operator.Parent.GroupVersionKind
	netperfKind   = netperf.Operator.Parent.GroupVersionKind
	machineKind   = machine.Machine.Parent.GroupVersionKind
	switchKind    = machine.Switch.Parent.GroupVersionKind
)

// TestMain trades memory for time: the worlds are many, small and short-lived.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}

// quick is a campaign for scenarios of many writes.
func quick(kinds ...schema.GroupVersionKind) sim.Campaign {
	c := sim.Thorough(10, kinds...)
	c.Faults = []sim.FaultKind{sim.CrashBefore, sim.CrashAfter, sim.Lost, sim.Conflict, sim.Internal}
	c.Lists = []sim.Lists{{}, {Back: 3}}
	return c
}

func memcachedScenario(t *testing.T, name string, script ...sim.Action) sim.Scenario {
	create := creating("{apiVersion: cache.example.com/v1alpha1, kind: Memcached, metadata: {name: m}, spec: {size: 2}}")
	return sim.Scenario{
		Name: name, API: newAPI(t, memcached.Operator.CRD), Operators: []*operator.Operator{memcached.Operator},
		Actors: []sim.Actor{sim.Collector(), sim.Deployments(), sim.Kubelet(nil)},
		Script: append([]sim.Action{create}, script...),
	}
}

func TestMemcached(t *testing.T) {
	m, web := ref(memcachedKind, "m"), ref(deployments, "m")
	kinds := []schema.GroupVersionKind{memcachedKind, deployments, serviceKind, podKind}
	for name, script := range map[string][]sim.Action{
		"scaled":             {patching(m, "{spec: {size: 3}}")},
		"replicas by hand":   {patching(web, "{spec: {replicas: 4}}")},
		"deployment deleted": {deleting(web)},
		"service port added": {patching(ref(serviceKind, "m"), "{spec: {ports: [{name: memcached, port: 11211}, {name: odd, port: 1}]}}")},
		"deleted":            {deleting(m)},
	} {
		t.Run(name, func(t *testing.T) { torture(t, memcachedScenario(t, "memcached, "+name, script...), quick(kinds...)) })
	}
}

func webserverScenario(t *testing.T, name string, script ...sim.Action) sim.Scenario {
	create := creating("{apiVersion: my.domain/v1, kind: WebServer, metadata: {name: w}, spec: {image: 'nginx:1', replicas: 3}}")
	return sim.Scenario{
		Name: name, API: newAPI(t, webserver.Operator.CRD), Operators: []*operator.Operator{webserver.Operator},
		Actors:     []sim.Actor{sim.Collector(), sim.Deployments(), sim.Kubelet(nil)},
		Script:     append([]sim.Action{create}, script...),
		Invariants: []sim.Invariant{{Name: "a Service leads to its own pods only", Holds: ownSelector}},
	}
}

// ownSelector looks at the Services of WebServers as our operator applies them.
func ownSelector(r sim.Record, _ *sim.Server) error {
	if r.Op == nil || r.Err != nil || r.Ref.Kind != serviceKind || r.Op.Verb != plan.Create && r.Op.Verb != plan.Apply {
		return nil
	}
	selects, _, _ := unstructured.NestedString(r.After.Object, "spec", "selector", "webserver_cr")
	if selects+"-service" != r.Ref.Name {
		return fmt.Errorf("it selects the pods of %q", selects)
	}
	return nil
}

// once is a campaign for scenarios of very many writes, most of which are those
// of another scenario.
func once(kinds ...schema.GroupVersionKind) sim.Campaign {
	c := quick(kinds...)
	c.Faults, c.Lists = []sim.FaultKind{sim.CrashAfter, sim.Lost}, []sim.Lists{{Back: 3}}
	c.Seeds, c.Pairs = 6, 6
	return c
}

func TestWebServer(t *testing.T) {
	w, deployment, service := ref(webserverKind, "w"), ref(deployments, "w"), ref(serviceKind, "w-service")
	// Pods are the Deployment's affair, and late ones say nothing new.
	kinds := []schema.GroupVersionKind{webserverKind, deployments, serviceKind}
	for name, c := range map[string]struct {
		campaign sim.Campaign
		script   []sim.Action
	}{
		"scaled":             {quick(kinds...), []sim.Action{patching(w, "{spec: {replicas: 4}}")}},
		"image changed":      {once(kinds...), []sim.Action{patching(w, "{spec: {image: 'nginx:2'}}")}},
		"service deleted":    {quick(kinds...), []sim.Action{deleting(service)}},
		"service by hand":    {quick(kinds...), []sim.Action{patching(service, "{spec: {selector: {webserver_cr: other}, ports: [{name: http, port: 8080, targetPort: http}, {name: odd, port: 1}]}}")}},
		"deployment by hand": {once(kinds...), []sim.Action{patching(deployment, `{spec: {replicas: 1, template: {spec: {containers: [{name: webserver, image: 'nginx:0'}, {name: extra, image: other}]}}}}`)}},
		"two instances": {once(kinds...), []sim.Action{
			creating("{apiVersion: my.domain/v1, kind: WebServer, metadata: {name: v}, spec: {image: 'nginx:2', service: {type: ClusterIP}}}"),
			patching(w, "{spec: {replicas: 1}}"),
			deleting(ref(webserverKind, "v")),
		}},
		"deleted": {once(kinds...), []sim.Action{deleting(w)}},
	} {
		t.Run(name, func(t *testing.T) { torture(t, webserverScenario(t, "webserver, "+name, c.script...), c.campaign) })
	}
}

// each patches every object of a kind.
func each(kind schema.GroupVersionKind, patch string) sim.Action {
	return sim.Action{Name: "patch each " + kind.Kind + " with " + patch, Do: func(c sim.Client) error {
		var errs []error
		for _, o := range c.List(kind) {
			_, err := c.Patch(ref(kind, o.GetName()), values(patch), "")
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	}}
}

func machineScenario(t *testing.T, name string, script ...sim.Action) sim.Scenario {
	return sim.Scenario{
		Name: name, API: newAPI(t, machine.Machine.CRD, machine.Switch.CRD),
		Operators:  []*operator.Operator{machine.Machine, machine.Switch},
		Actors:     []sim.Actor{sim.Collector()},
		Script:     script,
		Invariants: []sim.Invariant{{Name: "one flip in five seconds", Holds: oneFlipIn(5 * time.Second)}},
	}
}

// oneFlipIn looks at all flips of a machine so far.
func oneFlipIn(interval time.Duration) func(sim.Record, *sim.Server) error {
	return func(r sim.Record, s *sim.Server) error {
		if !isFlip(r) {
			return nil
		}
		for _, earlier := range s.Records()[:r.Number-1] {
			if isFlip(earlier) && machineOf(earlier) == machineOf(r) && r.At.Sub(earlier.At) < interval {
				return fmt.Errorf("the last flip of machine %s was %v ago", machineOf(r), r.At.Sub(earlier.At))
			}
		}
		return nil
	}
}

func isFlip(r sim.Record) bool {
	return r.Op != nil && r.Changed() && r.Before != nil && r.After != nil && position(r.Before) != position(r.After)
}

func position(o *unstructured.Unstructured) string {
	p, _, _ := unstructured.NestedString(o.Object, "spec", "position")
	own, _, _ := unstructured.NestedString(o.Object, "spec", "switchPosition")
	return p + own
}

func machineOf(r sim.Record) string {
	if r.Ref.Kind == machineKind {
		return r.Ref.Name
	}
	return r.Before.GetLabels()["machine"]
}

func TestMachine(t *testing.T) {
	three := creating("{apiVersion: useless.container.training/v1alpha1, kind: Machine, metadata: {name: m}, spec: {switches: 3}}")
	m := ref(machineKind, "m")
	up := each(switchKind, "{spec: {position: up}}")
	for name, script := range map[string][]sim.Action{
		"three up":    {three, up},
		"scaled down": {three, patching(m, "{spec: {switches: 1}}")},
		"one by hand": {three, creating("{apiVersion: useless.container.training/v1alpha1, kind: Switch, metadata: {name: by-hand, labels: {machine: m}}, spec: {position: up}}")},
		"relabelled": {
			three,
			creating("{apiVersion: useless.container.training/v1alpha1, kind: Machine, metadata: {name: other}, spec: {switches: 1}}"),
			{Name: "relabel one", Do: func(c sim.Client) error {
				_, err := c.Patch(ref(switchKind, c.List(switchKind)[0].GetName()), values("{metadata: {labels: {machine: other}}}"), "")
				return err
			}},
		},
		"its own switch": {creating("{apiVersion: useless.container.training/v1alpha1, kind: Machine, metadata: {name: m}, spec: {switchPosition: up}}"),
			patching(m, "{spec: {switchPosition: sideways}}")},
		"deleted": {three, deleting(m)},
	} {
		t.Run(name, func(t *testing.T) {
			torture(t, machineScenario(t, "machine, "+name, script...), quick(machineKind, switchKind))
		})
	}
}

const netperfOutput = "MIGRATED TCP STREAM TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET\nTHROUGHPUT=941.23\nTHROUGHPUT_UNITS=10^6bits/s\n"

// clients lets client pods finish with a result, or fail.
func clients(message string, code int32) func(*corev1.Pod) (string, int32, bool) {
	return func(p *corev1.Pod) (string, int32, bool) {
		return message, code, p.Labels["netperf-type"] == "client"
	}
}

func netperfScenario(t *testing.T, name string, kubelet sim.Actor, script ...sim.Action) sim.Scenario {
	return sim.Scenario{
		Name: name, API: newAPI(t, netperf.Operator.CRD), Operators: []*operator.Operator{netperf.Operator},
		Actors: []sim.Actor{sim.Collector(), kubelet},
		Script: script,
		Invariants: []sim.Invariant{
			{Name: "no client before the server is ready", Holds: clientAfterServer},
			{Name: "never two pods of one role", Holds: onePodOfARole},
			{Name: "pods go only when the result is saved", Holds: savedBeforeGone},
		},
	}
}

func role(o *unstructured.Unstructured) string { return o.GetLabels()["netperf-type"] }

func clientAfterServer(r sim.Record, s *sim.Server) error {
	if !r.Created() || r.Op == nil || r.Ref.Kind != podKind || role(r.After) != "client" {
		return nil
	}
	for _, o := range s.List(podKind) {
		if ip, _, _ := unstructured.NestedString(o.Object, "status", "podIP"); role(o) == "server" && ip != "" {
			return nil
		}
	}
	return errors.New("there is no server that is ready")
}

func onePodOfARole(r sim.Record, s *sim.Server) error {
	if !r.Created() || r.Ref.Kind != podKind {
		return nil
	}
	count := map[string]int{}
	for _, o := range s.List(podKind) {
		if owners := o.GetOwnerReferences(); len(owners) > 0 {
			if count[role(o)+string(owners[0].UID)]++; count[role(o)+string(owners[0].UID)] > 1 {
				return fmt.Errorf("there are two pods for the role %s", role(o))
			}
		}
	}
	return nil
}

func savedBeforeGone(r sim.Record, s *sim.Server) error {
	if !r.Deleted() || r.Op == nil || r.Ref.Kind != podKind {
		return nil
	}
	for _, o := range s.List(netperfKind) {
		phase, _, _ := unstructured.NestedString(o.Object, "status", "status")
		if owners := r.Before.GetOwnerReferences(); len(owners) > 0 && owners[0].UID == o.GetUID() && phase != "Done" && phase != "Test finished with error" {
			return fmt.Errorf("its test is only at %q", phase)
		}
	}
	return nil
}

func TestNetperf(t *testing.T) {
	for name, scenario := range netperfScenarios(t) {
		t.Run(name, func(t *testing.T) {
			torture(t, scenario, sim.Thorough(20, netperfKind, podKind))
		})
	}
}

func netperfScenarios(t *testing.T) map[string]sim.Scenario {
	create := creating("{apiVersion: app.example.com/v1alpha1, kind: Netperf, metadata: {name: net}}")
	full := sim.Kubelet(clients(netperfOutput, 0))
	foreign := creating(`{apiVersion: v1, kind: Pod, metadata: {name: foreign, labels: {app: netperf-operator, netperf-type: server}},
 spec: {containers: [{name: c, image: i}]}}`)
	return map[string]sim.Scenario{
		"full run":      netperfScenario(t, "netperf, full run", full, create),
		"client fails":  netperfScenario(t, "netperf, client fails", sim.Kubelet(clients("no route", 1)), create),
		"never ends":    netperfScenario(t, "netperf, never ends", sim.Kubelet(nil), create),
		"deleted after": netperfScenario(t, "netperf, deleted after", full, create, deleting(ref(netperfKind, "net"))),
		"a foreign pod": netperfScenario(t, "netperf, a foreign pod", full, foreign, create, deleting(ref(podKind, "foreign"))),
	}
}
