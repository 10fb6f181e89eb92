package engine_test

import (
	"cmp"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/homeostat-dev/homeostat/operator"
)

func syncProbe(p *Probe, r operator.Request) (operator.Response, error) {
	status := p.Status
	status.Children = len(r.Children.Items())
	data := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: p.Name}, Data: p.Spec.Data}
	response := operator.Response{Status: status, Children: []operator.Object{data}}
	switch p.Spec.Behave {
	case "panic":
		var none *Probe
		_ = none.Name
	case "refused":
		bad := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: p.Name + "-bad"}, Data: map[string]string{"not a key!": "x"}}
		response.Children = append(response.Children, bad)
	case "serve":
		response.Children = append(response.Children, probeService(p))
	case "run":
		response.Children = []operator.Object{probeDeployment(p)}
	case "another-name":
		data.Name = operator.Name(p.Name+"-", p.UID, "0")
		if operator.IsTaken[corev1.ConfigMap](r, data.Name) {
			data.Name = operator.Name(p.Name+"-", p.UID, "1")
		}
	case "without-fill":
		data.Data = map[string]string{"v": p.Spec.Data["v"]}
	case "many":
		response.Children = nil
		count, err := strconv.Atoi(p.Spec.Data["count"])
		if err != nil {
			return response, operator.Stall("NoCount", "data.count: %v", err)
		}
		for i := range count {
			response.Children = append(response.Children, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", p.Name, i)}})
		}
	case "unstable":
		status.Children = p.Status.Children + 1
		response.Status = status
	}
	return response, nil
}

func probeService(p *Probe) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeNodePort, Selector: map[string]string{"app": p.Name},
			Ports: []corev1.ServicePort{{Name: "http", Port: 80}},
		},
	}
}

func probeDeployment(p *Probe) *appsv1.Deployment {
	labels := map[string]string{"app": p.Name}
	var none int32
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &none,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "c", Image: "example.com/" + cmp.Or(p.Spec.Data["v"], "none"),
					// A server writes 1000m as 1.
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000m")}},
				}}},
			},
		},
	}
}
