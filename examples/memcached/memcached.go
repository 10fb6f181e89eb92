package main

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/homeostat-dev/homeostat/examples/memcached/v1alpha1"
	"github.com/homeostat-dev/homeostat/operator"
)

// Operator says what it looks after, what it makes and what it reads.
var Operator = operator.Declare(operator.Declaration[v1alpha1.Memcached]{
	Name:     "memcached-example",
	Doc:      "Runs memcached servers: a Deployment for each Memcached.",
	CRD:      v1alpha1.CRD,
	Children: []operator.Child{{Kind: operator.KindOf[appsv1.Deployment]("apps/v1")}},
	Reads: []operator.Read{{
		Kind: operator.KindOf[corev1.Pod]("v1"),
		Select: operator.SelectBy(func(m *v1alpha1.Memcached) operator.Selector {
			return operator.Selector{Labels: labels(m)}
		}),
	}},
	Sync: sync,
})

// sync says what ought to be: one Deployment, and a status that names its pods.
func sync(m *v1alpha1.Memcached, r operator.Request) (operator.Response, error) {
	status := v1alpha1.MemcachedStatus{Nodes: []string{}}
	for _, pod := range operator.List[corev1.Pod](r.Related) {
		if pod.DeletionTimestamp == nil {
			status.Nodes = append(status.Nodes, pod.Name)
		}
	}
	return operator.Response{Status: status, Children: []operator.Object{deployment(m)}}, nil
}

func labels(m *v1alpha1.Memcached) map[string]string {
	return map[string]string{"app": "memcached", "memcached_cr": m.Name}
}

func deployment(m *v1alpha1.Memcached) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: m.Name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &m.Spec.Size,
			Selector: &metav1.LabelSelector{MatchLabels: labels(m)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels(m)},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name:    "memcached",
					Image:   "memcached:1.4.36-alpine",
					Command: []string{"memcached", "-m=64", "-o", "modern", "-v"},
					Ports:   []corev1.ContainerPort{{Name: "memcached", ContainerPort: 11211}},
				}}},
			},
		},
	}
}
