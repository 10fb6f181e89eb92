package engine_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/homeostat-dev/homeostat/engine/plan"
	"github.com/homeostat-dev/homeostat/operator"
)

func invalid(op plan.Op) error {
	return apierrors.NewInvalid(op.Kind.GroupKind(), op.Name, field.ErrorList{field.Invalid(field.NewPath("data"), "x", "no")})
}

var resource = schema.GroupResource{Resource: "configmaps"}

func terminating() error {
	err := apierrors.NewForbidden(resource, "a", errors.New("namespace is being terminated"))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: corev1.NamespaceTerminatingCause})
	return err
}

// bare is an answer with a code and no reason, as for an apply of a field that
// the schema does not have.
func bare(code int32) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: "bare"}}
}

func TestOneRefusedChildDoesNotStopTheOthers(t *testing.T) {
	children := []operator.Object{configMap("a", "1"), configMap("bad", "1"), configMap("old", "1")}
	b := newBench(t, func(operator.Request) (operator.Response, error) { return operator.Response{Children: children}, nil })
	b.fail = func(op plan.Op) error {
		if op.Name == "bad" {
			return invalid(op)
		}
		return nil
	}
	children = []operator.Object{configMap("old", "1")}
	b.settle()
	children = []operator.Object{configMap("a", "1"), configMap("bad", "1"), configMap("z", "1")}
	b.others(b.objects[refOf(webs, "p")])
	expect(t, "operations: nothing is pruned while a child is missing",
		[]string{"create ConfigMap a", "create ConfigMap bad", "create ConfigMap z", "status Web p", "tell Refused"}, b.settle())
	expect(t, "what stands", []string{"a", "old", "z"}, b.names(configMaps))
	expect(t, "conditions", map[string]string{"Ready": "False Refused", "Reconciling": "False No", "Stalled": "True Refused"}, b.said())
	for _, want := range []time.Duration{2, 4} {
		b.now = b.now.Add(b.again())
		expect(t, "each try asks for the one that is missing, and for nothing else", []string{"create ConfigMap bad"}, b.settle())
		if again := b.again(); again > want*time.Second || again < want*800*time.Millisecond {
			t.Errorf("it is tried again after %v, about %v s were wanted", again, want)
		}
	}
	b.fail = nil
	b.now = b.now.Add(b.again())
	expect(t, "when it is taken", []string{"create ConfigMap bad", "delete ConfigMap old", "status Web p"}, b.settle())
}

func TestAnswersOfTheServer(t *testing.T) {
	first := func(n int, err error) func() func(plan.Op) error {
		return func() func(plan.Op) error {
			left := n
			return func(op plan.Op) error {
				if op.Name == "a" && op.Verb != plan.Read && left > 0 {
					left--
					return err
				}
				return nil
			}
		}
	}
	stuck := func(reason string) map[string]string {
		return map[string]string{"Ready": "False " + reason, "Reconciling": "False No", "Stalled": "True " + reason}
	}
	tests := map[string]struct {
		fail     func() func(plan.Op) error
		want     []string // of the first pass
		said     map[string]string
		from, to time.Duration
	}{
		"invalid":          {first(1, invalid(plan.Op{})), []string{"create ConfigMap a", "status Web p", "tell Refused"}, stuck("Refused"), 800 * time.Millisecond, time.Second},
		"forbidden":        {first(1, apierrors.NewForbidden(resource, "a", errors.New("quota"))), []string{"create ConfigMap a", "status Web p", "tell Forbidden"}, stuck("Forbidden"), 800 * time.Millisecond, time.Second},
		"no namespace":     {first(1, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "default")), []string{"create ConfigMap a", "status Web p", "tell NamespaceMissing"}, stuck("NamespaceMissing"), 800 * time.Millisecond, time.Second},
		"no such resource": {first(1, apierrors.NewGenericServerResponse(404, "patch", resource, "a", "", 0, true)), []string{"create ConfigMap a", "status Web p", "tell KindNotServed"}, stuck("KindNotServed"), 800 * time.Millisecond, time.Second},
		"too large":        {first(1, apierrors.NewRequestEntityTooLargeError("x")), []string{"create ConfigMap a", "status Web p", "tell Refused"}, stuck("Refused"), 800 * time.Millisecond, time.Second},
		"a terminating namespace takes no events": {first(1, terminating()), []string{"create ConfigMap a", "status Web p"}, stuck("NamespaceTerminating"), 800 * time.Millisecond, time.Second},
		"too many requests":                       {first(1, apierrors.NewTooManyRequests("x", 7)), []string{"create ConfigMap a"}, map[string]string{}, 7 * time.Second, 7 * time.Second},
		"unavailable":                             {first(1, apierrors.NewServiceUnavailable("x")), []string{"create ConfigMap a"}, map[string]string{}, 800 * time.Millisecond, time.Second},
		"a server timeout":                        {first(1, apierrors.NewServerTimeout(resource, "patch", 9)), []string{"create ConfigMap a"}, map[string]string{}, 9 * time.Second, 9 * time.Second},
		"no answer":                               {first(1, context.DeadlineExceeded), []string{"create ConfigMap a"}, map[string]string{}, 800 * time.Millisecond, time.Second},
		"a defect":                                {first(1, apierrors.NewInternalError(errors.New("x"))), []string{"create ConfigMap a"}, map[string]string{}, 800 * time.Millisecond, time.Second},
		"unauthorized":                            {first(1, apierrors.NewUnauthorized("x")), []string{"create ConfigMap a"}, map[string]string{}, 800 * time.Millisecond, time.Second},
		"a conflict that passes": {first(1, apierrors.NewConflict(resource, "a", errors.New("x"))),
			[]string{"create ConfigMap a", "get ConfigMap a", "create ConfigMap a", "status Web p"}, map[string]string{"Ready": "True Ready", "Reconciling": "False No", "Stalled": "False No"}, -1, -1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, wants(configMap("a", "1")))
			b.fail = tc.fail()
			expect(t, "operations", tc.want, b.settle())
			expect(t, "conditions", tc.said, b.said())
			again := b.again()
			if again < tc.from || again > tc.to {
				t.Errorf("it is looked at again after %v", again)
			}
			b.now = b.now.Add(max(again, 0))
			b.settle()
			expect(t, "in the end", map[string]string{"Ready": "True Ready", "Reconciling": "False No", "Stalled": "False No"}, b.said())
		})
	}
}

func TestADefectThatStaysIsSaidAndDoesNotHoldUpTheRest(t *testing.T) {
	tests := map[string]error{
		"with a reason":    apierrors.NewInternalError(errors.New("failed calling webhook")),
		"without a reason": bare(http.StatusInternalServerError),
	}
	for name, err := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, wants(configMap("a", "1"), configMap("z", "1")))
			b.fail = refuseWith("a", err)
			for range 4 {
				b.settle()
				b.now = b.now.Add(b.again())
			}
			expect(t, "conditions", map[string]string{"Ready": "False Refused", "Reconciling": "False No", "Stalled": "True Refused"}, b.said())
			expect(t, "what stands", []string{"z"}, b.names(configMaps))
		})
	}
}

func TestTooManyConflictsEndThePass(t *testing.T) {
	b := newBench(t, wants(configMap("a", "1")))
	b.fail = refuseWith("a", apierrors.NewConflict(resource, "a", errors.New("x")))
	did := b.settle()
	if len(did) != 8*2+1 {
		t.Errorf("%d operations: %v", len(did), did)
	}
	if again := b.again(); again < 800*time.Millisecond || again > time.Second {
		t.Errorf("it is looked at again after %v", again)
	}
	expect(t, "conditions: it will pass", map[string]string{}, b.said())
}

func TestALostAnswerNeverMeansASecondObject(t *testing.T) {
	b := newBench(t, wants(configMap("a", "1")))
	lost := false
	b.lose = func(op plan.Op) error {
		if op.Verb == plan.Create && !lost {
			lost = true
			return context.DeadlineExceeded
		}
		return nil
	}
	expect(t, "the answer is lost", []string{"create ConfigMap a"}, b.settle())
	b.now = b.now.Add(b.again())
	expect(t, "it finds its own object", []string{"create ConfigMap a", "get ConfigMap a", "status Web p"}, b.settle())
	expect(t, "what stands", []string{"a"}, b.names(configMaps))
}

func TestACacheThatIsBehind(t *testing.T) {
	tests := map[string]struct {
		meanwhile func(b *bench)
		want      []string
	}{
		"the child was changed": {func(b *bench) {
			o := b.objects[refOf(configMaps, "a")].DeepCopy()
			o.SetLabels(map[string]string{"theirs": "x"})
			b.store(o)
		}, []string{"apply ConfigMap a", "status Web p"}},
		"the child was deleted": {func(b *bench) { b.remove(refOf(configMaps, "a")) },
			[]string{"apply ConfigMap a", "get ConfigMap a", "create ConfigMap a", "status Web p"}},
		"another object has the name": {func(b *bench) {
			b.remove(refOf(configMaps, "a"))
			b.store(raw(configMaps, "a"))
		}, []string{"apply ConfigMap a", "get ConfigMap a", "status Web p", "tell ForeignOwner"}},
		"the parent was changed": {func(b *bench) {
			o := b.objects[refOf(webs, "p")].DeepCopy()
			o.SetLabels(map[string]string{"theirs": "x"})
			b.store(o)
		}, []string{"apply ConfigMap a", "status Web p", "get Web p", "status Web p"}},
		"the parent was deleted": {func(b *bench) { b.remove(refOf(webs, "p")) },
			[]string{"apply ConfigMap a", "status Web p", "get Web p"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			value, n := "1", 1
			b := newBench(t, func(operator.Request) (operator.Response, error) {
				return operator.Response{Status: map[string]any{"n": n}, Children: []operator.Object{configMap("a", value)}}, nil
			})
			b.settle()
			value, n = "2", 2
			b.others(b.objects[refOf(webs, "p")])
			tc.meanwhile(b)
			expect(t, "operations", tc.want, b.settle())
		})
	}
}

func TestWhatIsSeenDuringAReadIsNotLostToItsAnswer(t *testing.T) {
	value := "1"
	b := newBench(t, func(operator.Request) (operator.Response, error) {
		return operator.Response{Children: []operator.Object{configMap("a", value)}}, nil
	})
	b.settle()
	old := b.objects[refOf(configMaps, "a")].DeepCopy()
	value = "2"
	b.others(b.objects[refOf(webs, "p")])
	b.remove(refOf(configMaps, "a"))
	b.lose = func(op plan.Op) error { return nil }
	b.fail = func(op plan.Op) error {
		if op.Verb != plan.Read {
			return nil
		}
		b.fail = nil
		next := old.DeepCopy() // Another engine makes it between the server's answer and its arrival.
		next.SetUID("made-by-another-engine")
		b.others(next)
		return apierrors.NewNotFound(resource, "a")
	}
	expect(t, "operations", []string{"apply ConfigMap a", "get ConfigMap a", "apply ConfigMap a"}, b.settle())
}

// TestASecretIsNotQuoted: a server quotes what it does not like about a value.
func TestASecretIsNotQuoted(t *testing.T) {
	b := newBench(t, func(operator.Request) (operator.Response, error) {
		return operator.Response{Children: []operator.Object{
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, StringData: map[string]string{"k": "hunter2"}},
		}}, nil
	}, func(op *operator.Operator) { op.Children = []operator.Child{{Kind: secrets}} })
	b.fail = refuseWith("s", apierrors.NewInvalid(secrets.GroupKind(), "s", field.ErrorList{
		field.Invalid(field.NewPath("stringData"), "hunter2", "too simple")}))
	b.settle()
	for _, o := range b.objects {
		if text := fmt.Sprint(o.Object); strings.Contains(text, "hunter2") {
			t.Errorf("the value stands in %s", text)
		}
	}
	if said := b.said()["Stalled"]; said != "True Refused" {
		t.Errorf("Stalled is %q", said)
	}
}

// TestARefusalSaysWhy: a long value does not push the reason out of the message.
func TestARefusalSaysWhy(t *testing.T) {
	b := newBench(t, func(operator.Request) (operator.Response, error) {
		return operator.Response{Children: []operator.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}}}}, nil
	})
	long := strings.Repeat("m", 253)
	b.fail = refuseWith("c", apierrors.NewInvalid(configMaps.GroupKind(), "c", field.ErrorList{
		field.Invalid(field.NewPath("metadata", "labels"), long, "must be no more than 63 characters"),
		field.Invalid(field.NewPath("data"), map[string]string{"k": long}, "is odd"),
		field.Required(field.NewPath("spec", "x"), "say something"),
	}))
	b.settle()
	text := fmt.Sprint(b.objects[refOf(webs, "p")].Object["status"])
	for _, want := range []string{"metadata.labels: Invalid value: must be no more than 63 characters", "data: Invalid value: is odd", "spec.x: Required value: say something"} {
		if !strings.Contains(text, want) {
			t.Errorf("the status does not say %q: %s", want, text)
		}
	}
	if strings.Contains(text, long) {
		t.Error("the status quotes the value")
	}
}
