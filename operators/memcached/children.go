package memcached

import (
	"cmp"
	"net"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/homeostat-dev/homeostat/operators/memcached/v1alpha1"
)

const (
	defaultImage = "memcached:1.4.36-alpine"
	portName     = "memcached"
	port         = 11211
	// memcacheUser is the user of the official images; a pod that must not run
	// as root needs it as a number.
	memcacheUser = 11211
)

// address is where a client reaches the server with this IP.
func address(ip string) string { return net.JoinHostPort(ip, strconv.Itoa(port)) }

func deployment(m *v1alpha1.Memcached) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: m.Name, Labels: podLabels(m)},
		Spec: appsv1.DeploymentSpec{
			Replicas: &m.Spec.Size,
			Selector: &metav1.LabelSelector{MatchLabels: podLabels(m)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: podLabels(m)},
				Spec: corev1.PodSpec{
					Containers:                   []corev1.Container{container(m)},
					AutomountServiceAccountToken: new(false),
					SecurityContext: &corev1.PodSecurityContext{
						RunAsNonRoot:   new(true),
						RunAsUser:      new(int64(memcacheUser)),
						SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
					},
				},
			},
		},
	}
}

func container(m *v1alpha1.Memcached) corev1.Container {
	return corev1.Container{
		Name:  "memcached",
		Image: cmp.Or(m.Spec.Image, defaultImage),
		// The document's command; 1.6 takes -m=64 for an error, -m 64 both take.
		Command: []string{"memcached", "-m=64", "-o", "modern", "-v"},
		Ports:   []corev1.ContainerPort{{Name: portName, ContainerPort: port, Protocol: corev1.ProtocolTCP}},
		// The cache of 64 MB and what the process needs beside it.
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("50m"),
			corev1.ResourceMemory: resource.MustParse("96Mi"),
		}},
		ReadinessProbe: probe(5),
		LivenessProbe:  probe(20),
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false),
			ReadOnlyRootFilesystem:   new(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}

// probe asks every so many seconds whether the port answers.
func probe(period int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString(portName)}},
		PeriodSeconds: period,
	}
}

// service is headless: a client of memcached spreads keys itself and wants
// every address.
func service(m *v1alpha1.Memcached) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: m.Name, Labels: podLabels(m)},
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone,
			Selector:  podLabels(m),
			Ports: []corev1.ServicePort{{
				Name: portName, Port: port, TargetPort: intstr.FromString(portName), Protocol: corev1.ProtocolTCP,
			}},
		},
	}
}
