// Package memcached is the Memcached operator: a Memcached of size n becomes a
// Deployment of n servers and a headless Service of the same name, and its
// status lists the pods that are there. It never touches pods, and never a
// Deployment or Service that is not its own.
//
// The invariant: two Memcacheds in one namespace share no pod, because each
// selects by its own name.
package memcached

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/homeostat-dev/homeostat/operator"
	"github.com/homeostat-dev/homeostat/operators/memcached/v1alpha1"
)

// Operator makes Memcacheds of cache.example.com/v1alpha1 true.
var Operator = operator.Declare(operator.Declaration[v1alpha1.Memcached]{
	Name: "memcached",
	Doc:  "Runs memcached servers: a Deployment and a headless Service for each Memcached.",
	CRD:  v1alpha1.CRD,
	Children: []operator.Child{
		{Kind: operator.KindOf[appsv1.Deployment]("apps/v1"), OwnedLists: []string{"spec.template.spec.containers"}},
		{Kind: operator.KindOf[corev1.Service]("v1"), OwnedLists: []string{"spec.ports"}},
	},
	Reads: []operator.Read{
		{Kind: operator.KindOf[corev1.Pod]("v1"), Select: operator.SelectBy(func(m *v1alpha1.Memcached) operator.Selector {
			return operator.Selector{Labels: podLabels(m)}
		})},
	},
	Sync: sync,
})

func sync(m *v1alpha1.Memcached, r operator.Request) (operator.Response, error) {
	return operator.Response{
		Status:   status(m, r),
		Children: []operator.Object{deployment(m), service(m)},
	}, nil
}

// podLabels are the labels by which the pods of one Memcached are known.
func podLabels(m *v1alpha1.Memcached) map[string]string {
	return map[string]string{"app": "memcached", "memcached_cr": m.Name}
}

// status is what the pods and the Deployment say. Pods come sorted by name, so
// the lists have one order.
func status(m *v1alpha1.Memcached, r operator.Request) v1alpha1.MemcachedStatus {
	s := v1alpha1.MemcachedStatus{
		Nodes:    []string{},
		Selector: labels.SelectorFromSet(podLabels(m)).String(),
	}
	for _, pod := range operator.List[corev1.Pod](r.Related) {
		if !live(pod) {
			continue
		}
		s.Nodes = append(s.Nodes, pod.Name)
		if ready(pod) && pod.Status.PodIP != "" {
			s.ServerList = append(s.ServerList, address(pod.Status.PodIP))
		}
	}
	if d := operator.Get[appsv1.Deployment](r.Children, m.Name); d != nil {
		s.Replicas, s.ReadyReplicas = d.Status.Replicas, d.Status.ReadyReplicas
	}
	return s
}

// live is true for a pod that serves or is about to: one of a ReplicaSet, not
// going away and not finished. A pod that somebody made by hand with the same
// labels is not a node.
func live(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "ReplicaSet" && pod.DeletionTimestamp == nil &&
		pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
