package sim

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
)

// admitBuiltin gives an object of a built-in kind the form in which a server
// stores it: read into its Go type, which drops unknown fields and writes
// quantities their own way, and defaulted.
func admitBuiltin(u *unstructured.Unstructured) error {
	typed, err := typedOf(u)
	if err != nil {
		return err
	}
	switch o := typed.(type) {
	case *appsv1.Deployment:
		defaultDeployment(&o.Spec)
	case *appsv1.ReplicaSet:
		fill(&o.Spec.Replicas, 1)
		defaultPod(&o.Spec.Template.Spec)
	case *corev1.Pod:
		defaultPod(&o.Spec)
		if o.Spec.EnableServiceLinks == nil {
			fill(&o.Spec.EnableServiceLinks, true)
		}
	case *corev1.Service:
		defaultService(o)
	}
	values, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return fmt.Errorf("store %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	values["apiVersion"], values["kind"] = u.GetAPIVersion(), u.GetKind()
	u.Object = values
	return nil
}

func typedOf(u *unstructured.Unstructured) (runtime.Object, error) {
	typed, err := scheme.Scheme.New(u.GroupVersionKind())
	if err != nil {
		return nil, fmt.Errorf("read %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, typed); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	return typed, nil
}

func fill[T any](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}

func orElse[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}

func defaultDeployment(s *appsv1.DeploymentSpec) {
	fill(&s.Replicas, 1)
	fill(&s.RevisionHistoryLimit, 10)
	fill(&s.ProgressDeadlineSeconds, 600)
	orElse(&s.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if s.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		fill(&s.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		fill(&s.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
		fill(&s.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
	}
	defaultPod(&s.Template.Spec)
}

func defaultPod(s *corev1.PodSpec) {
	orElse(&s.RestartPolicy, corev1.RestartPolicyAlways)
	orElse(&s.DNSPolicy, corev1.DNSClusterFirst)
	orElse(&s.SchedulerName, corev1.DefaultSchedulerName)
	fill(&s.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	fill(&s.SecurityContext, corev1.PodSecurityContext{})
	for _, list := range [][]corev1.Container{s.InitContainers, s.Containers} {
		for i := range list {
			defaultContainer(&list[i])
		}
	}
}

func defaultContainer(c *corev1.Container) {
	orElse(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	orElse(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	orElse(&c.ImagePullPolicy, corev1.PullIfNotPresent)
	for i := range c.Ports {
		orElse(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for _, p := range []*corev1.Probe{c.ReadinessProbe, c.LivenessProbe, c.StartupProbe} {
		if p == nil {
			continue
		}
		orElse(&p.TimeoutSeconds, 1)
		orElse(&p.PeriodSeconds, 10)
		orElse(&p.SuccessThreshold, 1)
		orElse(&p.FailureThreshold, 3)
		if p.HTTPGet != nil {
			orElse(&p.HTTPGet.Path, "/")
			orElse(&p.HTTPGet.Scheme, corev1.URISchemeHTTP)
		}
	}
}

func defaultService(o *corev1.Service) {
	s := &o.Spec
	orElse(&s.Type, corev1.ServiceTypeClusterIP)
	orElse(&s.SessionAffinity, corev1.ServiceAffinityNone)
	fill(&s.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
	fill(&s.IPFamilyPolicy, corev1.IPFamilyPolicySingleStack)
	if s.IPFamilies == nil {
		s.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	}
	if s.ClusterIP == "" {
		s.ClusterIP = address("10.96", o.Namespace+"/"+o.Name)
	}
	s.ClusterIPs = []string{s.ClusterIP}
	for i := range s.Ports {
		p := &s.Ports[i]
		orElse(&p.Protocol, corev1.ProtocolTCP)
		if p.TargetPort == (intstr.IntOrString{}) {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
}

// validateBuiltin is the part of validation that operators meet: what cannot
// change, and lists whose entries clash.
func validateBuiltin(u, old *unstructured.Unstructured) (field.ErrorList, error) {
	typed, err := typedOf(u)
	if err != nil {
		return nil, err
	}
	var before runtime.Object
	if old != nil {
		if before, err = typedOf(old); err != nil {
			return nil, err
		}
	}
	switch o := typed.(type) {
	case *appsv1.Deployment:
		was, _ := before.(*appsv1.Deployment)
		return validateDeployment(o, was), nil
	case *corev1.Pod:
		was, _ := before.(*corev1.Pod)
		return validatePod(o, was), nil
	case *corev1.Service:
		return validatePorts(o.Spec.Ports), nil
	}
	return nil, nil
}

func validateDeployment(o, was *appsv1.Deployment) (errs field.ErrorList) {
	spec := field.NewPath("spec")
	if was != nil && !equality.Semantic.DeepEqual(o.Spec.Selector, was.Spec.Selector) {
		errs = append(errs, field.Invalid(spec.Child("selector"), o.Spec.Selector, "field is immutable"))
	}
	if o.Spec.Selector == nil {
		return append(errs, field.Required(spec.Child("selector"), ""))
	}
	for k, v := range o.Spec.Selector.MatchLabels {
		if o.Spec.Template.Labels[k] != v {
			errs = append(errs, field.Invalid(spec.Child("template", "metadata", "labels"), o.Spec.Template.Labels, "`selector` does not match template `labels`"))
		}
	}
	return append(errs, validateContainers(spec.Child("template", "spec"), o.Spec.Template.Spec.Containers)...)
}

func validatePod(o, was *corev1.Pod) (errs field.ErrorList) {
	spec := field.NewPath("spec")
	errs = validateContainers(spec, o.Spec.Containers)
	if was == nil {
		return errs
	}
	same := o.Spec.DeepCopy()
	for i := range same.Containers {
		if i < len(was.Spec.Containers) {
			same.Containers[i].Image = was.Spec.Containers[i].Image
		}
	}
	same.NodeName, same.Tolerations = was.Spec.NodeName, was.Spec.Tolerations
	if !equality.Semantic.DeepEqual(*same, was.Spec) {
		errs = append(errs, field.Forbidden(spec, "pod updates may not change fields other than images and tolerations"))
	}
	return errs
}

func validateContainers(path *field.Path, containers []corev1.Container) (errs field.ErrorList) {
	if len(containers) == 0 {
		errs = append(errs, field.Required(path.Child("containers"), ""))
	}
	var names []string
	for i, c := range containers {
		at := path.Child("containers").Index(i)
		if c.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
		}
		if slices.Contains(names, c.Name) {
			errs = append(errs, field.Duplicate(at.Child("name"), c.Name))
		}
		names = append(names, c.Name)
	}
	return errs
}

func validatePorts(ports []corev1.ServicePort) (errs field.ErrorList) {
	var names []string
	for i, p := range ports {
		at := field.NewPath("spec", "ports").Index(i).Child("name")
		switch {
		case p.Name == "" && len(ports) > 1:
			errs = append(errs, field.Required(at, ""))
		case slices.Contains(names, p.Name):
			errs = append(errs, field.Duplicate(at, p.Name))
		}
		names = append(names, p.Name)
	}
	return errs
}
