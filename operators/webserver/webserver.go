// Package webserver is the WebServer operator: a WebServer becomes a Deployment
// of the same name and a Service, <name>-service, that leads to its pods. It
// never touches pods, and never a Deployment or Service that is not its own.
//
// The invariant: nothing of two WebServers in one namespace meets, neither pods,
// because each selects by its own name, nor node ports, because none is fixed
// unless the owner says so.
package webserver

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/homeostat-dev/homeostat/operator"
	v1 "github.com/homeostat-dev/homeostat/operators/webserver/v1"
)

// Operator makes WebServers of my.domain/v1 true.
var Operator = operator.Declare(operator.Declaration[v1.WebServer]{
	Name: "webserver",
	Doc:  "Runs web servers: a Deployment and a Service for each WebServer.",
	CRD:  v1.CRD,
	Children: []operator.Child{
		{Kind: operator.KindOf[appsv1.Deployment]("apps/v1"), OwnedLists: []string{"spec.template.spec.containers"}},
		{Kind: operator.KindOf[corev1.Service]("v1"), OwnedLists: []string{"spec.ports"}},
	},
	Sync: sync,
})

func sync(w *v1.WebServer, r operator.Request) (operator.Response, error) {
	return operator.Response{
		Status:   status(w, operator.Get[appsv1.Deployment](r.Children, w.Name)),
		Children: []operator.Object{deployment(w), service(w)},
	}, nil
}

// podLabels are the labels by which the pods of one WebServer are known.
func podLabels(w *v1.WebServer) map[string]string {
	return map[string]string{"app": "webserver", "webserver_cr": w.Name}
}

func serviceName(w *v1.WebServer) string { return w.Name + "-service" }

// status is what the Deployment says; d is nil while there is none.
func status(w *v1.WebServer, d *appsv1.Deployment) v1.WebServerStatus {
	s := v1.WebServerStatus{
		Image:    w.Status.Image,
		URL:      "http://" + serviceName(w) + "." + w.Namespace + ".svc",
		Selector: labels.SelectorFromSet(podLabels(w)).String(),
	}
	if d == nil {
		return s
	}
	s.Replicas, s.ReadyReplicas, s.UpdatedReplicas = d.Status.Replicas, d.Status.ReadyReplicas, d.Status.UpdatedReplicas
	if image := imageOf(d); image == w.Spec.Image && rolledOut(d) {
		s.Image = image
	}
	return s
}

// imageOf is the image that the Deployment was last seen to ask for.
func imageOf(d *appsv1.Deployment) string {
	for _, c := range d.Spec.Template.Spec.Containers {
		if c.Name == containerName {
			return c.Image
		}
	}
	return ""
}

// rolledOut is true when the Deployment's status is about its present spec, and
// every pod is as that says and available. Where there is no pod nothing is shown.
func rolledOut(d *appsv1.Deployment) bool {
	if d.Spec.Replicas == nil || d.Status.ObservedGeneration < d.Generation {
		return false
	}
	want := *d.Spec.Replicas
	return want > 0 && d.Status.Replicas == want && d.Status.UpdatedReplicas == want && d.Status.AvailableReplicas == want
}
