package netperf

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/homeostat-dev/homeostat/operators/netperf/v1alpha1"
)

const (
	defaultImage = "tailoredcloud/netperf:v2.7"
	// controlPort is where netserver listens.
	controlPort = 12865
	// user is any user but root; neither program needs a name for it.
	user = 65532
	// maxMessage bounds what becomes of foreign text in a status.
	maxMessage = 512
)

// keepOutput runs its arguments and leaves their output in the log and in the
// termination message, from which the result is read.
const keepOutput = `"$@" >/dev/termination-log 2>&1; code=$?; cat /dev/termination-log; exit $code`

func serverName(n *v1alpha1.Netperf) string { return "netperf-server-" + suffix(n) }
func clientName(n *v1alpha1.Netperf) string { return "netperf-client-" + suffix(n) }

// suffix is the last twelve digits of the UID, the document's choice.
func suffix(n *v1alpha1.Netperf) string {
	uid := strings.ToLower(string(n.UID))
	return uid[max(0, len(uid)-12):]
}

func serverPod(n *v1alpha1.Netperf) *corev1.Pod {
	p := pod(n, serverName(n), "server", n.Spec.ServerNode)
	p.Spec.RestartPolicy = corev1.RestartPolicyAlways
	c := &p.Spec.Containers[0]
	c.Ports = []corev1.ContainerPort{{Name: "control", ContainerPort: controlPort, Protocol: corev1.ProtocolTCP}}
	c.ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromString("control")}},
		PeriodSeconds: 2,
	}
	return p
}

func clientPod(n *v1alpha1.Netperf, serverIP string) *corev1.Pod {
	p := pod(n, clientName(n), "client", n.Spec.ClientNode)
	// One attempt: the server is ready, and a second result would be another test.
	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	c := &p.Spec.Containers[0]
	c.Command = []string{"sh", "-c", keepOutput, "sh"}
	c.Args = []string{"netperf", "-H", serverIP, "--", "-k", "THROUGHPUT,THROUGHPUT_UNITS"}
	return p
}

func pod(n *v1alpha1.Netperf, name, role, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:   name,
			Labels: map[string]string{"app": "netperf-operator", "netperf-type": role},
		},
		Spec: corev1.PodSpec{
			Affinity:                     onNode(node),
			AutomountServiceAccountToken: new(false),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot:   new(true),
				RunAsUser:      new(int64(user)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name:  name,
				Image: cmp.Or(n.Spec.Image, defaultImage),
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false),
					Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}

// onNode ties a pod to a node, nil where none is named. It is an affinity and
// not nodeName, so that the scheduler still says why it does not fit.
func onNode(node string) *corev1.Affinity {
	if node == "" {
		return nil
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
			}},
		}}},
	}}
}

// ready is true for a pod that a client can reach.
func ready(pod *corev1.Pod) bool {
	return pod != nil && pod.DeletionTimestamp == nil && pod.Status.PodIP != "" &&
		condition(pod, corev1.PodReady).Status == corev1.ConditionTrue
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// unschedulable is what the scheduler says about a pod that fits nowhere.
func unschedulable(pod *corev1.Pod) string {
	if pod == nil {
		return ""
	}
	c := condition(pod, corev1.PodScheduled)
	if c.Status != corev1.ConditionFalse {
		return ""
	}
	return cmp.Or(c.Message, c.Reason)
}

func condition(pod *corev1.Pod, t corev1.PodConditionType) corev1.PodCondition {
	for _, c := range pod.Status.Conditions {
		if c.Type == t {
			return c
		}
	}
	return corev1.PodCondition{}
}

// terminated is how the pod's one container ended; nil while it did not.
func terminated(pod *corev1.Pod) *corev1.ContainerStateTerminated {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == pod.Name {
			return c.State.Terminated
		}
	}
	return nil
}

// output is what the container left in its termination message.
func output(pod *corev1.Pod) string {
	if t := terminated(pod); t != nil {
		return t.Message
	}
	return ""
}

// whyEnded is a sentence about a pod that ended and should not have.
func whyEnded(pod *corev1.Pod) string {
	why := "it ended"
	switch t := terminated(pod); {
	case pod.Status.Reason != "" || pod.Status.Message != "":
		why = strings.TrimSpace(pod.Status.Reason + " " + pod.Status.Message)
	case t != nil:
		why = fmt.Sprintf("exit code %d: %s", t.ExitCode, lastLine(t.Message))
	}
	return fmt.Sprintf("pod %s: %s", pod.Name, why)
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return cmp.Or(strings.TrimSpace(lines[len(lines)-1]), "it said nothing")
}

// bounded cuts a text at a whole character.
func bounded(text string) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage], "") + "…"
}
