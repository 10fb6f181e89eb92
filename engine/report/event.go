package report

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/homeostat-dev/homeostat/engine/plan"
	"github.com/homeostat-dev/homeostat/operator"
)

// EventKind is the kind of what Tell creates.
var EventKind = operator.KindOf[corev1.Event]("v1")

// Events are what there is to tell: the author's events and, where something is
// wrong, one of the engine's own.
func Events(f Facts) []operator.Event {
	var out []operator.Event
	if f.Decision != nil {
		out = append(out, f.Decision.Events...)
	}
	if f.Failure != nil {
		out = append(out, operator.Event{Type: corev1.EventTypeWarning, Reason: f.Failure.Reason, Message: f.Failure.Message})
	}
	for _, p := range f.Problems {
		out = append(out, operator.Event{Type: corev1.EventTypeWarning, Reason: p.Reason, Message: p.Message})
	}
	return out
}

// EventKey is what tells an event from others of the same parent.
func EventKey(e operator.Event) string { return cmp.Or(e.Key, e.Reason+"\x00"+e.Message) }

// Tell is the operation that records an event about the parent. The name is
// made of the parent's UID and the event's key: told again, also by another
// engine or after a crash, it is the same object.
func Tell(op *operator.Operator, f Facts, e operator.Event) (plan.Op, error) {
	sum := sha256.Sum256([]byte(string(f.Parent.GetUID()) + "\x00" + EventKey(e)))
	namespace := cmp.Or(f.Parent.GetNamespace(), metav1.NamespaceDefault)
	name := f.Parent.GetName()
	if len(name) > 230 {
		name = strings.TrimRight(name[:230], "-.")
	}
	at := metav1.NewTime(f.Now.UTC().Truncate(time.Second))
	event := corev1.Event{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "." + hex.EncodeToString(sum[:8])},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: f.Parent.GetAPIVersion(), Kind: f.Parent.GetKind(), Namespace: f.Parent.GetNamespace(),
			Name: f.Parent.GetName(), UID: f.Parent.GetUID(), ResourceVersion: f.Parent.GetResourceVersion(),
		},
		Reason: e.Reason, Message: bounded(e.Message), Type: cmp.Or(e.Type, corev1.EventTypeNormal),
		Source: corev1.EventSource{Component: op.Manager()}, FirstTimestamp: at, LastTimestamp: at, Count: 1,
	}
	body, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&event)
	if err != nil {
		return plan.Op{}, err
	}
	return plan.Op{
		Verb: plan.Tell, Kind: EventKind, Namespace: namespace, Name: event.Name,
		Manager: op.Manager(), Body: body, Reason: e.Reason,
	}, nil
}

// bounded cuts a message at the 1,024 bytes that the API allows.
func bounded(message string) string {
	const most = 1024
	if len(message) <= most {
		return message
	}
	cut := most - len("…")
	for cut > 0 && message[cut]&0xC0 == 0x80 {
		cut--
	}
	return message[:cut] + "…"
}
