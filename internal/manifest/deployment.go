package manifest

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/homeostat-dev/homeostat/operator"
)

const (
	// nobody is the user and group of the container: any number that is not 0
	// does, because nothing is written to the file system.
	nobody = 65532
	// healthPort and metricsPort are where the process answers in its pod.
	healthPort  = 8081
	metricsPort = 8080
)

func deployment(ops []*operator.Operator, o Options) *appsv1.Deployment {
	name := Name(ops)
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: o.Namespace, Labels: labels(name)},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(o.Replicas),
			Selector: &metav1.LabelSelector{MatchLabels: labels(name)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels(name)},
				Spec: corev1.PodSpec{
					ServiceAccountName: name,
					SecurityContext: &corev1.PodSecurityContext{
						RunAsNonRoot: new(true), RunAsUser: new(int64(nobody)), RunAsGroup: new(int64(nobody)),
						SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
					},
					Containers:                    []corev1.Container{container(o)},
					TerminationGracePeriodSeconds: new(int64(30)),
				},
			},
		},
	}
}

func container(o Options) corev1.Container {
	// Metrics are open to whoever reaches the port; what was written to children,
	// which why would tell, is more than such a reader needs to know.
	args := []string{"run", "--leader-elect", "--metrics-bind-address=:8080", "--why=false", "--health-probe-bind-address=:8081"}
	if o.Watch != "" {
		args = append(args, "--namespace="+o.Watch)
	}
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("health")},
		}}
	}
	return corev1.Container{
		Name: "operator", Image: o.Image, Args: args,
		Ports: []corev1.ContainerPort{
			{Name: "metrics", ContainerPort: metricsPort}, {Name: "health", ContainerPort: healthPort},
		},
		LivenessProbe: probe("/healthz"), ReadinessProbe: probe("/readyz"),
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
		},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}
