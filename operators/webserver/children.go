package webserver

import (
	"cmp"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "github.com/homeostat-dev/homeostat/operators/webserver/v1"
)

const (
	containerName = "webserver"
	portName      = "http"
	port          = 80
	// drainSeconds are how long a pod that goes still serves: until nobody
	// sends to it any more. What is then left of the grace period is nginx's.
	drainSeconds = 5
)

func deployment(w *v1.WebServer) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: w.Name, Labels: podLabels(w)},
		Spec: appsv1.DeploymentSpec{
			Replicas: w.Spec.Replicas,
			Selector: &metav1.LabelSelector{MatchLabels: podLabels(w)},
			// A roll never has fewer pods than asked for.
			Strategy: appsv1.DeploymentStrategy{
				Type: appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{
					MaxUnavailable: new(intstr.FromInt32(0)),
					MaxSurge:       new(intstr.FromString("25%")),
				},
			},
			MinReadySeconds: 2,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: podLabels(w)},
				Spec: corev1.PodSpec{
					Containers:                    []corev1.Container{container(w)},
					AutomountServiceAccountToken:  new(false),
					TerminationGracePeriodSeconds: new(int64(30)),
					SecurityContext: &corev1.PodSecurityContext{
						SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
					},
				},
			},
		},
	}
}

func container(w *v1.WebServer) corev1.Container {
	return corev1.Container{
		Name:  containerName,
		Image: w.Spec.Image,
		Ports: []corev1.ContainerPort{{Name: portName, ContainerPort: port, Protocol: corev1.ProtocolTCP}},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("50m"),
			corev1.ResourceMemory: resource.MustParse("32Mi"),
		}},
		// Out of the Service after 15 seconds without an answer, started anew
		// only after a minute: a slow server is not helped by a restart.
		ReadinessProbe: probe(5, 3),
		LivenessProbe:  probe(10, 6),
		Lifecycle: &corev1.Lifecycle{
			PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: drainSeconds}},
		},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false),
			// The official image starts as root: its master binds port 80 and
			// gives the cache to the user as which its workers then run.
			Capabilities: &corev1.Capabilities{
				Drop: []corev1.Capability{"ALL"},
				Add:  []corev1.Capability{"CHOWN", "NET_BIND_SERVICE", "SETGID", "SETUID"},
			},
		},
	}
}

// probe asks for / every so many seconds and gives up after so many failures.
func probe(period, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: "/", Port: intstr.FromString(portName), Scheme: corev1.URISchemeHTTP,
		}},
		PeriodSeconds: period, TimeoutSeconds: 3, FailureThreshold: failures,
	}
}

// service has no node port unless the owner names one: what Kubernetes
// allocates is not ours and stays.
func service(w *v1.WebServer) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: serviceName(w), Labels: podLabels(w)},
		Spec: corev1.ServiceSpec{
			Type:     cmp.Or(w.Spec.Service.Type, corev1.ServiceTypeNodePort),
			Selector: podLabels(w),
			Ports: []corev1.ServicePort{{
				Name: portName, Port: port, TargetPort: intstr.FromString(portName), Protocol: corev1.ProtocolTCP,
				NodePort: w.Spec.Service.NodePort,
			}},
		},
	}
}
