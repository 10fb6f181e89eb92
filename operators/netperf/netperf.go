// Package netperf is the Netperf operator: it measures the network between two
// pods, once, and keeps the result. It is a state machine whose state is
// status.status; every step is saved before what follows from it is done, so it
// may be killed anywhere. It never reads logs, never touches pods of others and
// never waits without a deadline.
//
// The invariant: a result is saved before the pods that made it go.
package netperf

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/homeostat-dev/homeostat/operator"
	"github.com/homeostat-dev/homeostat/operators/netperf/v1alpha1"
)

// timeout is how long the server may take to become ready, and then how long
// the client may take to be scheduled, start and finish its ten seconds.
const timeout = 5 * time.Minute

// grace is how long a pod that ought to be there must not be seen before it
// counts as deleted. A cache of pods may be behind the status that speaks of
// them, after a restart or beside a second engine.
const grace = 5 * time.Second

// Operator makes Netperfs of app.example.com/v1alpha1 run.
var Operator = operator.Declare(operator.Declaration[v1alpha1.Netperf]{
	Name: "netperf",
	Doc:  "Measures the network between two pods, once for each Netperf.",
	CRD:  v1alpha1.CRD,
	// A pod that is there is left as it is: a change would spoil the measurement.
	Children: []operator.Child{{Kind: operator.KindOf[corev1.Pod]("v1"), Update: operator.UpdateOnDelete}},
	Sync:     sync,
})

func sync(n *v1alpha1.Netperf, r operator.Request) (operator.Response, error) {
	t := &test{netperf: n, now: r.Now, server: operator.Get[corev1.Pod](r.Children, serverName(n)),
		client: operator.Get[corev1.Pod](r.Children, clientName(n))}
	if r.Deleting {
		return operator.Response{Children: t.observed()}, nil
	}
	for _, name := range []string{serverName(n), clientName(n)} {
		if running(n) && operator.IsTaken[corev1.Pod](r, name) {
			return t.fail("NameTaken", "pod %s is there and belongs to somebody else; delete it, then make this Netperf anew", name), nil
		}
	}
	switch n.Status.Status {
	case v1alpha1.PhaseInitial:
		return t.begin(), nil
	case v1alpha1.PhaseServer:
		return t.awaitServer(), nil
	case v1alpha1.PhaseTest:
		return t.awaitClient(), nil
	}
	return t.finished(), nil
}

func running(n *v1alpha1.Netperf) bool {
	return n.Status.Status != v1alpha1.PhaseDone && n.Status.Status != v1alpha1.PhaseError
}

// test is one question: a Netperf, its pods as they are (nil where there is
// none) and the time.
type test struct {
	netperf        *v1alpha1.Netperf
	now            time.Time
	server, client *corev1.Pod
}

// begin makes the server pod. Its name is fixed, so that a crash before the
// phase is saved makes no second one.
func (t *test) begin() operator.Response {
	status := t.netperf.Status
	status.Status, status.ServerPod, status.StartTime = v1alpha1.PhaseServer, serverName(t.netperf), t.stamp()
	children := []operator.Object{t.theServer()}
	if t.client != nil { // This Netperf is older than its pods: whoever saved more will be heard of.
		children = append(children, operator.Keep(t.client))
	}
	return t.answer(status, "StartingServer", children...)
}

// awaitServer makes the client pod once the server pod is ready, and a new
// server pod as long as there is none.
func (t *test) awaitServer() operator.Response {
	status := t.netperf.Status
	deadline := t.deadline(&status.StartTime)
	switch {
	case t.client != nil:
		status.Status, status.ClientPod, status.TestStartTime = v1alpha1.PhaseTest, t.client.Name, t.stamp()
		return t.answer(status, "Testing", t.observed()...)
	case t.server != nil && ended(t.server):
		return t.fail("ServerFailed", "%s", whyEnded(t.server))
	case !t.now.Before(deadline):
		return t.late(t.server, "the server pod was not ready")
	}
	response := t.answer(status, "StartingServer", t.theServer())
	response.Until = deadline
	if ready(t.server) {
		response.Children = append(response.Children, clientPod(t.netperf, t.server.Status.PodIP))
	}
	return response
}

// awaitClient turns what becomes of the client pod into a result. The client is
// never made anew: half a measurement is none.
func (t *test) awaitClient() operator.Response {
	status := t.netperf.Status
	deadline := t.deadline(&status.TestStartTime)
	switch {
	case t.client == nil:
		return t.missing("ClientDeleted", "pod %s was deleted before it had a result", clientName(t.netperf))
	case t.client.Status.Phase == corev1.PodSucceeded:
		return t.result()
	case t.client.Status.Phase == corev1.PodFailed:
		return t.fail("ClientFailed", "%s", whyEnded(t.client))
	case t.client.DeletionTimestamp != nil:
		return t.fail("ClientDeleted", "pod %s was deleted before it had a result", t.client.Name)
	case t.server == nil:
		return t.missing("ServerLost", "pod %s went away during the test", serverName(t.netperf))
	case t.server.DeletionTimestamp != nil || ended(t.server):
		return t.fail("ServerLost", "pod %s went away during the test", serverName(t.netperf))
	case !t.now.Before(deadline):
		return t.late(t.client, "the client pod did not finish")
	}
	status.MissingSince = nil
	response := t.answer(status, "Testing", t.observed()...)
	response.Until = deadline
	return response
}

// missing ends the test for want of a pod, once it has not been seen for grace.
func (t *test) missing(reason, format string, args ...any) operator.Response {
	status := t.netperf.Status
	if status.MissingSince == nil {
		status.MissingSince = t.stamp()
	}
	until := status.MissingSince.Add(grace)
	if !t.now.Before(until) {
		return t.fail(reason, format, args...)
	}
	response := t.answer(status, "Testing", t.observed()...)
	response.Until = until
	return response
}

// result saves what the client measured. The pods stay until it is saved.
func (t *test) result() operator.Response {
	m, err := parse(output(t.client))
	if err != nil {
		return t.fail("UnreadableResult", "netperf's output: %v", err)
	}
	status := t.netperf.Status
	status.Status, status.CompletionTime, status.MissingSince = v1alpha1.PhaseDone, t.stamp(), nil
	status.SpeedBitsPerSec, status.LowConfidence = m.bitsPerSecond, m.lowConfidence
	return t.answer(status, v1alpha1.PhaseDone, t.observed()...)
}

// finished is a test that is over: no pods, and word of how it ended.
func (t *test) finished() operator.Response {
	status := t.netperf.Status
	event := operator.Event{Reason: "Done", Message: fmt.Sprintf("Measured %.0f bits per second", status.SpeedBitsPerSec)}
	if status.Status == v1alpha1.PhaseError {
		event = operator.Event{Type: corev1.EventTypeWarning, Reason: status.Reason, Message: status.Message}
	}
	response := t.answer(status, event.Reason)
	response.Events = []operator.Event{event}
	return response
}

// fail ends the test without a result. The pods go when that is saved.
func (t *test) fail(reason, format string, args ...any) operator.Response {
	status := t.netperf.Status
	status.Status, status.CompletionTime = v1alpha1.PhaseError, t.stamp()
	status.Reason, status.Message, status.MissingSince = reason, bounded(fmt.Sprintf(format, args...)), nil
	return t.answer(status, reason, t.observed()...)
}

// late is the end of a test whose deadline has passed; what the scheduler says
// about the pod is the better reason where it says something.
func (t *test) late(pod *corev1.Pod, what string) operator.Response {
	if message := unschedulable(pod); message != "" {
		return t.fail("Unschedulable", "%s within %v: %s", what, timeout, message)
	}
	return t.fail("DeadlineExceeded", "%s within %v", what, timeout)
}

// answer is a status with its conditions, and children. A test on its way is
// reconciling; one that failed is stalled, because nothing will change it.
func (t *test) answer(status v1alpha1.NetperfStatus, reason string, children ...operator.Object) operator.Response {
	say := func(kind string, is bool) metav1.Condition {
		c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: status.Message}
		if is {
			c.Status = metav1.ConditionTrue
		}
		return c
	}
	done, failed := status.Status == v1alpha1.PhaseDone, status.Status == v1alpha1.PhaseError
	if done {
		reason = "Done"
	}
	return operator.Response{Status: status, Children: children, Conditions: []metav1.Condition{
		say("Ready", done), say("Reconciling", !done && !failed), say("Stalled", failed),
	}}
}

// theServer is the server pod: as it is, or to be made.
func (t *test) theServer() operator.Object {
	if t.server != nil {
		return operator.Keep(t.server)
	}
	return serverPod(t.netperf)
}

// observed are the pods that are there, and none that are not.
func (t *test) observed() []operator.Object {
	var out []operator.Object
	for _, pod := range []*corev1.Pod{t.server, t.client} {
		if pod != nil {
			out = append(out, operator.Keep(pod))
		}
	}
	return out
}

// stamp is now, in whole seconds, as a status keeps it.
func (t *test) stamp() *metav1.Time { return &metav1.Time{Time: t.now.Truncate(time.Second)} }

// deadline counts from a stamp in the status; one that somebody removed is set anew.
func (t *test) deadline(start **metav1.Time) time.Time {
	if *start == nil {
		*start = t.stamp()
	}
	return (*start).Add(timeout)
}
