package sim

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/homeostat-dev/homeostat/operator"
)

var (
	podKind        = corev1.SchemeGroupVersion.WithKind("Pod")
	deploymentKind = appsv1.SchemeGroupVersion.WithKind("Deployment")
	replicaSetKind = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")
)

// Collector is garbage collection: it deletes what has owners of which none is
// there any more, by UID, one object at a time.
func Collector() Actor {
	return Actor{Name: "collector", Step: func(s *Server, now time.Time) bool {
		for _, o := range s.peekAll() {
			if orphan(s, o) && o.GetDeletionTimestamp() == nil {
				_, err := s.As("collector", now).Because("its owners are gone").Delete(refOf(o), o.GetUID(), "", false)
				return err == nil
			}
		}
		return false
	}}
}

func orphan(s *Server, o *unstructured.Unstructured) bool {
	for _, owner := range o.GetOwnerReferences() {
		if _, alive := s.alive[owner.UID]; alive {
			return false
		}
	}
	return len(o.GetOwnerReferences()) > 0
}

// Namespaces empties namespaces that are being deleted, and then removes them.
func Namespaces() Actor {
	return Actor{Name: "namespaces", Step: func(s *Server, now time.Time) bool {
		c := s.As("namespaces", now)
		for _, namespace := range s.peek(namespaceKind) {
			if namespace.GetDeletionTimestamp() == nil {
				continue
			}
			left := false
			for _, o := range s.peekAll() {
				if o.GetNamespace() != namespace.GetName() {
					continue
				}
				if left = true; o.GetDeletionTimestamp() == nil {
					_, err := c.Because("its namespace is going").Delete(refOf(o), o.GetUID(), "", false)
					return err == nil
				}
			}
			if !left {
				_, err := c.Because("it is empty").Delete(refOf(namespace), "", "", true)
				return err == nil
			}
		}
		return false
	}}
}

// Kubelet runs pods: it binds them to a node, makes them Running and Ready with
// an address, lets those finish for which finish has a termination message, and
// ends those that are being deleted.
func Kubelet(finish func(pod *corev1.Pod) (message string, exitCode int32, done bool)) Actor {
	return Actor{Name: "kubelet", Step: func(s *Server, now time.Time) bool {
		c := s.As("kubelet", now)
		for _, o := range s.peek(podKind) {
			pod := into[corev1.Pod](o)
			switch {
			case pod.DeletionTimestamp != nil:
				_, err := c.Because("it has ended").Delete(refOf(o), o.GetUID(), "", true)
				return err == nil
			case pod.Spec.NodeName == "":
				_, err := c.Because("bound").Patch(refOf(o), map[string]any{"spec": map[string]any{"nodeName": "node-1"}}, "")
				return err == nil
			case pod.Status.Phase == corev1.PodPending:
				return patchStatus(c.Because("started"), o, runningStatus(pod, now))
			case pod.Status.Phase == corev1.PodRunning && finish != nil:
				if message, code, done := finish(pod); done {
					return patchStatus(c.Because("finished"), o, finishedStatus(pod, message, code, now))
				}
			}
		}
		return false
	}}
}

func runningStatus(pod *corev1.Pod, now time.Time) *corev1.PodStatus {
	at := metav1.NewTime(now)
	ip := address("10.244", pod.Namespace+"/"+pod.Name)
	s := &corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}, HostIP: "10.0.0.1", StartTime: &at, QOSClass: pod.Status.QOSClass,
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		s.Conditions = append(s.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: at})
	}
	for _, c := range pod.Spec.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, Started: new(true),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}},
		})
	}
	return s
}

func finishedStatus(pod *corev1.Pod, message string, code int32, now time.Time) *corev1.PodStatus {
	s := pod.Status.DeepCopy()
	s.Phase = corev1.PodSucceeded
	reason := "Completed"
	if code != 0 {
		s.Phase, reason = corev1.PodFailed, "Error"
	}
	for i := range s.Conditions {
		if t := s.Conditions[i].Type; t == corev1.PodReady || t == corev1.ContainersReady {
			s.Conditions[i].Status = corev1.ConditionFalse
		}
	}
	for i := range s.ContainerStatuses {
		s.ContainerStatuses[i].Ready = false
		s.ContainerStatuses[i].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, Reason: reason, Message: message, StartedAt: *s.StartTime, FinishedAt: metav1.NewTime(now),
		}}
	}
	return s
}

// Deployments plays the controllers of Deployments and ReplicaSets at once:
// one ReplicaSet for the current template, pods that are numbered from zero (a
// number comes back when its last pod has ended, so that every run has the same
// names), and a status that says how many are ready.
func Deployments() Actor {
	return Actor{Name: "deployments", Step: func(s *Server, now time.Time) bool {
		c := s.As("deployments", now)
		for _, o := range s.peek(deploymentKind) {
			if o.GetDeletionTimestamp() == nil && rollOut(s, c, into[appsv1.Deployment](o), o) {
				return true
			}
		}
		return false
	}}
}

func rollOut(s *Server, c Client, d *appsv1.Deployment, o *unstructured.Unstructured) bool {
	name := d.Name + "-" + templateHash(d)
	for _, set := range s.peek(replicaSetKind) {
		if owner := controllerOf(set); owner != nil && owner.UID == d.UID && set.GetName() != name {
			_, err := c.Because("of an old template").Delete(refOf(set), set.GetUID(), "", false)
			return err == nil
		}
	}
	set := s.Get(operator.Ref{Kind: replicaSetKind, Namespace: d.Namespace, Name: name})
	if set == nil {
		return made(c, replicaSet(d, name))
	}
	ready, pods, busy := scale(s, c, d, into[appsv1.ReplicaSet](set))
	if busy {
		return true
	}
	status := deploymentStatus(d, pods, ready)
	return patchStatus(c.Because("counted"), o, status)
}

// scale makes or deletes one pod, or counts them.
func scale(s *Server, c Client, d *appsv1.Deployment, set *appsv1.ReplicaSet) (ready, pods int32, busy bool) {
	taken := map[string]bool{}
	var last *unstructured.Unstructured
	for _, o := range s.peek(podKind) {
		taken[o.GetName()] = true
		if owner := controllerOf(o); owner == nil || owner.UID != set.UID || o.GetDeletionTimestamp() != nil {
			continue
		}
		pods++
		if last == nil || len(o.GetName()) >= len(last.GetName()) {
			last = o
		}
		if podReady(into[corev1.Pod](o)) {
			ready++
		}
	}
	switch {
	case pods < *d.Spec.Replicas:
		for i := range int(*d.Spec.Replicas) {
			if name := fmt.Sprintf("%s-%d", set.Name, i); !taken[name] {
				return 0, 0, made(c, podOf(set, name))
			}
		}
	case pods > *d.Spec.Replicas:
		_, err := c.Because("one too many").Delete(refOf(last), last.GetUID(), "", false)
		return 0, 0, err == nil
	}
	return ready, pods, false
}

func podReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func templateHash(d *appsv1.Deployment) string {
	data, err := json.Marshal(d.Spec.Template)
	if err != nil {
		panic(fmt.Sprintf("sim: the template of %s is not JSON: %v", d.Name, err))
	}
	return fmt.Sprintf("%x", sha256.Sum256(data))[:8]
}

func replicaSet(d *appsv1.Deployment, name string) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: d.Namespace, Labels: d.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, deploymentKind)},
		},
		Spec: appsv1.ReplicaSetSpec{Selector: d.Spec.Selector, Template: d.Spec.Template},
	}
}

func podOf(set *appsv1.ReplicaSet, name string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: set.Namespace, Labels: set.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, replicaSetKind)},
		},
		Spec: set.Spec.Template.Spec,
	}
}

func deploymentStatus(d *appsv1.Deployment, pods, ready int32) *appsv1.DeploymentStatus {
	s := &appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: pods, UpdatedReplicas: pods, ReadyReplicas: ready,
		AvailableReplicas: ready, UnavailableReplicas: pods - ready,
	}
	available, reason := corev1.ConditionFalse, "ReplicaSetUpdated"
	if ready == pods {
		available, reason = corev1.ConditionTrue, "NewReplicaSetAvailable"
	}
	s.Conditions = []appsv1.DeploymentCondition{
		{Type: appsv1.DeploymentAvailable, Status: available, Reason: "MinimumReplicas"},
		{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: reason},
	}
	return s
}

func made(c Client, o runtime.Object) bool {
	_, err := c.Because("wanted").Create(from(o))
	return err == nil
}

// patchStatus writes a status and reports whether it was another.
func patchStatus(c Client, o *unstructured.Unstructured, status any) bool {
	values, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		panic(fmt.Sprintf("sim: a status: %v", err))
	}
	next := o.DeepCopy()
	next.Object["status"] = values
	if same(o, next) {
		return false
	}
	after, err := c.Update(next, "status")
	return err == nil && after.GetResourceVersion() != o.GetResourceVersion()
}

// same compares statuses as they look on the wire.
func same(a, b *unstructured.Unstructured) bool {
	x, errX := json.Marshal(a.Object["status"])
	y, errY := json.Marshal(b.Object["status"])
	return errX == nil && errY == nil && string(x) == string(y)
}

func from(o runtime.Object) *unstructured.Unstructured {
	values, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		panic(fmt.Sprintf("sim: a %T: %v", o, err))
	}
	return &unstructured.Unstructured{Object: values}
}

// into reads an object; what comes out may share memory with it and is only read.
func into[T any](o *unstructured.Unstructured) *T {
	out := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, out); err != nil {
		panic(fmt.Sprintf("sim: read %s %s: %v", o.GetKind(), o.GetName(), err))
	}
	return out
}
