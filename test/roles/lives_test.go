package roles_test

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/homeostat-dev/homeostat/operators/machine"
	"github.com/homeostat-dev/homeostat/operators/memcached"
	"github.com/homeostat-dev/homeostat/operators/netperf"
	"github.com/homeostat-dev/homeostat/operators/webserver"
)

var (
	memcacheds  = memcached.Operator.Parent.GVR()
	webservers  = webserver.Operator.Parent.GVR()
	netperfs    = netperf.Operator.Parent.GVR()
	machines    = machine.Machine.Parent.GVR()
	switches    = machine.Switch.Parent.GVR()
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	services    = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	pods        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	events      = schema.GroupVersionResource{Version: "v1", Resource: "events"}
)

func memcachedLife(w *world) {
	replicas := func(n int64) { w.untilField(deployments, "m", n, "spec", "replicas") }
	w.create(memcacheds, "{apiVersion: cache.example.com/v1alpha1, kind: Memcached, metadata: {name: m}, spec: {size: 2}}")
	w.ready(memcacheds, "m")
	w.patch(memcacheds, "m", "{spec: {size: 3}}")
	replicas(3)
	w.patch(deployments, "m", "{spec: {replicas: 1}}")
	replicas(3)
	w.untilNew(services, "m")
	w.leftovers(memcacheds, "m")
	w.foreign(memcacheds, "{apiVersion: cache.example.com/v1alpha1, kind: Memcached, metadata: {name: taken}, spec: {size: 1}}", "taken")
	w.goingWhileWritten(memcacheds, "{apiVersion: cache.example.com/v1alpha1, kind: Memcached, metadata: {name: going}, spec: {size: 1}}")
	w.remove(memcacheds, "m")
}

func webserverLife(w *world) {
	w.create(webservers, "{apiVersion: my.domain/v1, kind: WebServer, metadata: {name: w}, spec: {image: 'nginx:1'}}")
	w.ready(webservers, "w")
	w.patch(webservers, "w", "{spec: {replicas: 2}}")
	w.untilField(deployments, "w", int64(2), "spec", "replicas")
	w.patch(deployments, "w", "{spec: {replicas: 1}}")
	w.untilField(deployments, "w", int64(2), "spec", "replicas")
	w.untilNew(services, "w-service")
	w.leftovers(webservers, "w")
	w.foreign(webservers, "{apiVersion: my.domain/v1, kind: WebServer, metadata: {name: taken}, spec: {image: 'nginx:1'}}", "taken-service")
	w.goingWhileWritten(webservers, "{apiVersion: my.domain/v1, kind: WebServer, metadata: {name: going}, spec: {image: 'nginx:1'}}")
	w.remove(webservers, "w")
}

// untilNew deletes a child and waits until there is another.
func (w *world) untilNew(resource schema.GroupVersionResource, name string) {
	w.t.Helper()
	old := w.get(resource, name).GetUID()
	w.remove(resource, name)
	w.until(name+" is there again", func() (bool, string) {
		o := w.get(resource, name)
		return o != nil && o.GetUID() != old, "the old one, or none"
	})
}

// leftovers are children of an earlier version of the operator, which this one
// does not list: they go.
func (w *world) leftovers(parents schema.GroupVersionResource, parent string) {
	w.t.Helper()
	p := w.get(parents, parent)
	meta := fmt.Sprintf("metadata: {name: leftover, ownerReferences: [{apiVersion: %s, kind: %s, name: %s, uid: %s, controller: true}]}",
		p.GetAPIVersion(), p.GetKind(), p.GetName(), p.GetUID())
	w.create(services, "{apiVersion: v1, kind: Service, "+meta+", spec: {ports: [{port: 1}]}}")
	w.create(deployments, "{apiVersion: apps/v1, kind: Deployment, "+meta+`,
 spec: {replicas: 0, selector: {matchLabels: {l: o}}, template: {metadata: {labels: {l: o}}, spec: {containers: [{name: c, image: i}]}}}}`)
	w.gone(services, "leftover")
	w.gone(deployments, "leftover")
}

// foreign makes a parent whose Service's name is taken, which is told in an event.
func (w *world) foreign(parents schema.GroupVersionResource, manifest, service string) {
	w.t.Helper()
	w.create(services, "{apiVersion: v1, kind: Service, metadata: {name: "+service+"}, spec: {ports: [{port: 1}]}}")
	parent := w.create(parents, manifest)
	w.untilEvent(parent.GetName(), "ForeignOwner")
	w.remove(parents, parent.GetName())
}

// going is the name of a parent that goes.
const going = "going"

// goingWhileWritten makes a parent, named going, that the proxy deletes just before its
// status arrives. The engine then looks at what is there.
func (w *world) goingWhileWritten(parents schema.GroupVersionResource, manifest string) {
	w.t.Helper()
	w.proxy.deleteBeforeStatus(parents.Resource, going)
	w.create(parents, manifest)
	w.gone(parents, going)
	w.until("the engine has looked for the parent that went", func() (bool, string) {
		return w.proxy.sawGet(parents.Resource, going), "no get"
	})
}

func netperfLife(w *world) {
	w.create(netperfs, "{apiVersion: app.example.com/v1alpha1, kind: Netperf, metadata: {name: net}}")
	// The simulated node runs no netperf: the client's result is put there.
	client := ""
	w.until("the client pod runs", func() (bool, string) {
		client, _, _ = unstructured.NestedString(w.get(netperfs, "net").Object, "status", "clientPod")
		if client == "" {
			return false, fmt.Sprint(w.get(netperfs, "net").Object["status"])
		}
		pod := w.get(pods, client)
		phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
		return phase == "Running", phase
	})
	w.patch(pods, client, fmt.Sprintf(`{status: {phase: Succeeded, containerStatuses: [{name: %s, image: i, imageID: i, ready: false, restartCount: 0,
 state: {terminated: {exitCode: 0, message: "THROUGHPUT=941.23\nTHROUGHPUT_UNITS=10^6bits/s\n"}}}]}}`, client), "status")
	w.untilField(netperfs, "net", "Done", "status", "status")
	w.untilEvent("net", "Done")
	w.gone(pods, client)
	w.goingWhileWritten(netperfs, "{apiVersion: app.example.com/v1alpha1, kind: Netperf, metadata: {name: going}}")
	w.remove(netperfs, "net")
}

func machineLife(w *world) {
	const apiVersion = "apiVersion: useless.container.training/v1alpha1, "
	w.create(machines, "{"+apiVersion+"kind: Machine, metadata: {name: m}, spec: {switches: 2}}")
	w.create(machines, "{"+apiVersion+"kind: Machine, metadata: {name: own}, spec: {switchPosition: up}}")
	w.untilField(machines, "m", "dd", "status", "positions")
	w.create(switches, "{"+apiVersion+"kind: Switch, metadata: {name: by-hand, labels: {machine: m}}, spec: {position: up}}")
	w.until("the switch made by hand is adopted, and one goes", func() (bool, string) {
		positions, _, _ := unstructured.NestedString(w.get(machines, "m").Object, "status", "positions")
		return len(positions) == 2 && len(w.list(switches)) == 2, positions
	})
	made := w.list(switches)
	for _, s := range made {
		w.patch(switches, s, "{spec: {position: up}}")
	}
	w.untilEvent("own", "Flipped")
	w.untilEvent("m", "Flipped")
	w.until("the first switch is down again", func() (bool, string) {
		positions, _, _ := unstructured.NestedString(w.get(machines, "m").Object, "status", "positions")
		return strings.Contains(positions, "d"), positions
	})
	w.patch(machines, "m", "{spec: {switches: 1}}")
	w.until("one switch is left", func() (bool, string) { return len(w.list(switches)) == 1, fmt.Sprint(w.list(switches)) })
	last := w.list(switches)[0]
	w.remove(switches, last)
	w.until("a new switch is down", func() (bool, string) {
		names := w.list(switches)
		return len(names) == 1, fmt.Sprint(names)
	})
	w.remove(machines, "m")
	w.goingWhileWritten(switches, "{"+apiVersion+"kind: Switch, metadata: {name: going}, spec: {position: up}}")
}
