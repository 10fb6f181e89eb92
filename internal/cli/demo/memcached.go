package demo

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/homeostat-dev/homeostat/operator"
	"github.com/homeostat-dev/homeostat/operators/memcached"
)

var (
	deployments = operator.KindOf[appsv1.Deployment]("apps/v1")
	replicaSets = operator.KindOf[appsv1.ReplicaSet]("apps/v1")
	pods        = operator.KindOf[corev1.Pod]("v1")
	services    = operator.KindOf[corev1.Service]("v1")
	memcacheds  = memcached.Operator.Parent
)

const (
	memcachedName   = "memcached-sample"
	memcachedFile   = "cache_v1alpha1_memcached.yaml"
	memcachedSample = `apiVersion: cache.example.com/v1alpha1
kind: Memcached
metadata:
  name: memcached-sample
spec:
  size: 3
`
	memcachedWithoutSize = `apiVersion: cache.example.com/v1alpha1
kind: Memcached
metadata:
  name: memcached-bad
spec: {}
`
)

// Memcached is the story of the Memcached operator.
func Memcached() Story {
	return Story{
		Name:      "memcached",
		Title:     "Memcached: a Deployment of as many servers as the Memcached says",
		Operators: []*operator.Operator{memcached.Operator},
		Watch:     []operator.Kind{memcacheds, deployments, replicaSets, services, pods},
		Files:     map[string]string{memcachedFile: memcachedSample},
		Steps:     memcachedSteps(),
		Encore:    []Command{Kubectl("apply", "-f", memcachedFile)},
	}
}

func memcachedSteps() []Step {
	const three, five = int64(3), int64(5)
	return []Step{
		{
			Name:   "sample applied: 3 of 3 ready",
			Run:    Kubectl("apply", "-f", memcachedFile),
			Begins: field(memcacheds, memcachedName, three, "spec", "size"),
			Heals:  memcachedReplicas(three), Settles: memcachedReady(three),
			Show: []Command{Kubectl("get", "memcached,deployment,pod")},
		},
		{
			Name:   "size patched to 5",
			Run:    Kubectl("patch", "memcached", memcachedName, "-p", `{"spec":{"size": 5}}`, "--type", "merge"),
			Begins: field(memcacheds, memcachedName, five, "spec", "size"),
			Heals:  memcachedReplicas(five), Settles: memcachedReady(five),
			Show: []Command{Kubectl("get", "deployment", memcachedName)},
		},
		{
			Name: "status.nodes names the 5 pods",
			Run:  Kubectl("get", "memcached", memcachedName, "-o", `jsonpath={range .status.nodes[*]}{@}{"\n"}{end}`),
			Settles: func(w World) (bool, string) {
				return namesPods(w, 5)
			},
		},
		{
			Name:   "replicas set to 1 by hand: healed",
			Run:    Kubectl("scale", "deployment", memcachedName, "--replicas", "1"),
			Begins: field(deployments, memcachedName, int64(1), "spec", "replicas"),
			Heals:  memcachedReplicas(five), Settles: memcachedReady(five),
			Show: []Command{Kubectl("get", "deployment", memcachedName)},
		},
		{
			Name:   "Deployment deleted: recreated",
			Run:    Kubectl("delete", "deployment", memcachedName),
			Begins: absent(deployments, memcachedName),
			Heals:  memcachedReplicas(five), Settles: memcachedReady(five),
			Show: []Command{Kubectl("get", "deployment,pod")},
		},
		{
			Name:    "size -1: refused",
			Run:     Kubectl("patch", "memcached", memcachedName, "-p", `{"spec":{"size": -1}}`, "--type", "merge"),
			Refused: true, Says: "spec.size",
			Settles: field(memcacheds, memcachedName, five, "spec", "size"),
		},
		{
			Name:    "size missing: refused",
			Run:     Command{Args: []string{"apply", "-f", "-"}, Stdin: memcachedWithoutSize},
			Refused: true, Says: "spec.size",
			Settles: absent(memcacheds, "memcached-bad"),
		},
		{
			Name:   "Memcached deleted: everything gone",
			Note:   collectorNote,
			Run:    Kubectl("delete", "memcached", memcachedName),
			Begins: absent(memcacheds, memcachedName), Settles: gone(deployments, replicaSets, services, pods),
			Show: []Command{Kubectl("get", "memcached,deployment,replicaset,service,pod")},
		},
	}
}

// memcachedReplicas holds when the Deployment asks for n servers.
func memcachedReplicas(n int64) Condition {
	return field(deployments, memcachedName, n, "spec", "replicas")
}

// memcachedReady holds when n servers are ready, no other pod is left, and the
// Memcached's status says so.
func memcachedReady(n int64) Condition {
	return all(memcachedReplicas(n),
		func(w World) (bool, string) {
			d := w.at(deployments, memcachedName)
			seen := fmt.Sprintf("the Deployment has %d replicas, %d of them ready; %d are wanted",
				d.number("status", "replicas"), d.number("status", "readyReplicas"), n)
			return d.number("status", "replicas") == n && d.number("status", "readyReplicas") == n, seen
		},
		func(w World) (bool, string) { return namesPods(w, int(n)) })
}

// namesPods holds when status.nodes names exactly the pods that are there.
func namesPods(w World, n int) (bool, string) {
	var names, nodes []string
	for name, pod := range w[pods.GroupVersionKind] {
		if pod.get("metadata", "deletionTimestamp") == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	list, _ := w.at(memcacheds, memcachedName).get("status", "nodes").([]any)
	for _, node := range list {
		nodes = append(nodes, fmt.Sprint(node))
	}
	return len(names) == n && slices.Equal(names, nodes),
		fmt.Sprintf("status.nodes is %v; the pods are %v; %d are wanted", nodes, names, n)
}
