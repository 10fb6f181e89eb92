package engine_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/homeostat-dev/homeostat/engine/plan"
	"github.com/homeostat-dev/homeostat/operator"
)

func expect(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// none is no operation.
var none []string

func TestAPassCreatesTheChildrenThenWritesOneStatus(t *testing.T) {
	b := newBench(t, func(r operator.Request) (operator.Response, error) {
		return operator.Response{
			Status:   map[string]any{"n": len(operator.List[corev1.ConfigMap](r.Children))},
			Children: []operator.Object{configMap("b", "1"), configMap("a", "1")},
		}, nil
	})
	expect(t, "the first pass", []string{"create ConfigMap a", "create ConfigMap b", "status Web p"}, b.settle())
	n, _, _ := unstructured.NestedInt64(b.objects[refOf(webs, "p")].Object, "status", "n")
	expect(t, "the count that is saved, once", int64(2), n)
	expect(t, "conditions", map[string]string{"Ready": "True Ready", "Reconciling": "False No", "Stalled": "False No"}, b.said())
	expect(t, "the pass after", time.Duration(-1), b.again())

	for _, o := range b.objects {
		b.core.Observe(o.GroupVersionKind(), o, false)
	}
	expect(t, "after the echo of every write", none, b.settle())
	b.restart()
	expect(t, "after a restart", none, b.settle())
}

func TestAnEchoBeforeTheAnswerCausesNoOperation(t *testing.T) {
	b := newBench(t, wants(configMap("a", "1")))
	b.echo = true
	expect(t, "operations", []string{"create ConfigMap a", "status Web p"}, b.settle())
}

func TestSaveFirstActWhenItIsSeenSaved(t *testing.T) {
	b := newBench(t, func(r operator.Request) (operator.Response, error) {
		if phase, _, _ := unstructured.NestedString(r.Parent.Object, "status", "phase"); phase == "Done" {
			return operator.Response{Status: map[string]any{"phase": "Done"}}, nil
		}
		return operator.Response{Status: map[string]any{"phase": "Done"}, Children: []operator.Object{configMap("result", "1")}}, nil
	})
	expect(t, "operations", []string{"create ConfigMap result", "status Web p", "delete ConfigMap result"}, b.settle())
	expect(t, "what stands", none, b.names(configMaps))
}

func TestASyncThatNeverComesToRest(t *testing.T) {
	tests := map[string]sync{
		"in a child": func(r operator.Request) (operator.Response, error) {
			value := "x"
			if c := operator.Get[corev1.ConfigMap](r.Children, "a"); c != nil {
				value = c.Data["k"] + "x"
			}
			return operator.Response{Children: []operator.Object{configMap("a", value)}}, nil
		},
		"in its status": func(r operator.Request) (operator.Response, error) {
			n, _, _ := unstructured.NestedInt64(r.Parent.Object, "status", "n")
			return operator.Response{Status: map[string]any{"n": n + 1}}, nil
		},
	}
	for name, s := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, s)
			did := b.settle()
			if len(did) != 16+2 {
				t.Errorf("%d operations: %v; 16 rounds, a status and an event were wanted", len(did), did)
			}
			expect(t, "the last of them", []string{"status Web p", "tell Unstable"}, did[len(did)-2:])
			expect(t, "conditions", map[string]string{"Ready": "False Unstable", "Reconciling": "False No", "Stalled": "True Unstable"}, b.said())
			if b.again() <= 0 {
				t.Error("it is not looked at again later")
			}
		})
	}
}

func TestAPanicIsConfinedToItsParent(t *testing.T) {
	b := newBench(t, func(r operator.Request) (operator.Response, error) {
		if r.Parent.GetName() == "p" {
			panic("oh")
		}
		return operator.Response{Children: []operator.Object{configMap("of-"+r.Parent.GetName(), "1")}}, nil
	})
	b.others(parent("q"))
	expect(t, "operations", []string{"status Web p", "tell SyncPanicked", "create ConfigMap of-q", "status Web q"}, b.settle())
	expect(t, "conditions", map[string]string{"Ready": "False SyncPanicked", "Reconciling": "False No", "Stalled": "True SyncPanicked"}, b.said())
}

func TestFailuresOfSync(t *testing.T) {
	moving := func(reason string) map[string]string {
		return map[string]string{"Ready": "False " + reason, "Reconciling": "True " + reason, "Stalled": "False No"}
	}
	stuck := func(reason string) map[string]string {
		return map[string]string{"Ready": "False " + reason, "Reconciling": "False No", "Stalled": "True " + reason}
	}
	tests := map[string]struct {
		err      error
		want     map[string]string
		from, to time.Duration // when it is looked at again
	}{
		"a plain error":         {errors.New("x"), moving("SyncFailed"), 800 * time.Millisecond, time.Second},
		"a retry":               {operator.Retry(0, "Busy", "x"), moving("Busy"), 800 * time.Millisecond, time.Second},
		"a retry after a while": {operator.Retry(20*time.Second, "Busy", "x"), moving("Busy"), 20 * time.Second, 20 * time.Second},
		"stalled":               {operator.Stall("Human", "x"), stuck("Human"), 800 * time.Millisecond, time.Second},
		"an invalid field":      {operator.Invalid("spec.x", "no"), stuck("InvalidField"), 800 * time.Millisecond, time.Second},
		"an undeclared kind":    {nil, stuck("UndeclaredKind"), 800 * time.Millisecond, time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			fails := false
			b := newBench(t, func(operator.Request) (operator.Response, error) {
				if fails && tc.err == nil {
					return operator.Response{Children: []operator.Object{&corev1.Secret{}}}, nil
				}
				if fails {
					return operator.Response{}, tc.err
				}
				return operator.Response{Status: map[string]any{"n": 7}, Children: []operator.Object{configMap("a", "1")}}, nil
			})
			b.settle()
			fails = true
			b.others(b.objects[refOf(webs, "p")])
			reason := strings.Fields(tc.want["Ready"])[1]
			expect(t, "operations", []string{"status Web p", "tell " + reason}, b.settle())
			expect(t, "conditions", tc.want, b.said())
			expect(t, "children stay", []string{"a"}, b.names(configMaps))
			n, _, _ := unstructured.NestedInt64(b.objects[refOf(webs, "p")].Object, "status", "n")
			expect(t, "the status stays", int64(7), n)
			if again := b.again(); again < tc.from || again > tc.to {
				t.Errorf("it is looked at again after %v", again)
			}
			b.now = b.now.Add(time.Minute)
			expect(t, "told again", none, b.settle())
		})
	}
}

func TestUntil(t *testing.T) {
	tests := map[string]struct {
		until time.Time
		want  time.Duration
	}{
		"for ever":                     {time.Time{}, -1},
		"until later":                  {start.Add(3 * time.Minute), 3 * time.Minute},
		"until now does not loop":      {start, time.Second},
		"until long ago does not loop": {start.Add(-time.Hour), time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(operator.Request) (operator.Response, error) { return operator.Response{Until: tc.until}, nil })
			b.settle()
			expect(t, "when it is looked at again", tc.want, b.again())
		})
	}
	t.Run("an Until in the past does not shorten a backoff", func(t *testing.T) {
		b := newBench(t, func(operator.Request) (operator.Response, error) {
			return operator.Response{Until: start.Add(-time.Hour), Children: []operator.Object{configMap("a", "1")}}, nil
		})
		b.others(raw(configMaps, "a"))
		for range 8 {
			b.settle()
			b.now = b.now.Add(b.again())
		}
		b.settle()
		if again := b.again(); again < 40*time.Second {
			t.Errorf("after nine failures it is looked at again after %v", again)
		}
	})
	t.Run("at that time Sync is asked with that time", func(t *testing.T) {
		var seen []time.Time
		b := newBench(t, func(r operator.Request) (operator.Response, error) {
			seen = append(seen, r.Now)
			return operator.Response{Until: r.Now.Add(time.Minute).Truncate(time.Minute)}, nil
		})
		b.settle()
		b.now = b.now.Add(b.again())
		seen = nil
		expect(t, "operations", none, b.settle())
		if len(seen) == 0 || !seen[0].Equal(start.Truncate(time.Minute).Add(time.Minute)) {
			t.Errorf("asked at %v", seen)
		}
	})
}

func TestEventsAreToldOnceEach(t *testing.T) {
	events := []operator.Event{{Reason: "A", Message: "m"}, {Reason: "A", Message: "m"}, {Reason: "B", Key: "k", Message: "1"}, {Reason: "B", Key: "k", Message: "2"}}
	b := newBench(t, func(operator.Request) (operator.Response, error) { return operator.Response{Events: events}, nil })
	expect(t, "after the writes", []string{"status Web p", "tell A", "tell B"}, b.settle())
	b.others(b.objects[refOf(webs, "p")])
	expect(t, "while it is true", none, b.settle())
	events = nil
	b.others(b.objects[refOf(webs, "p")])
	b.settle()
	events = []operator.Event{{Reason: "A", Message: "m"}}
	b.others(b.objects[refOf(webs, "p")])
	expect(t, "when it is true again", []string{"tell A"}, b.settle())
}

func TestFieldsOfTheParentsOwnSpec(t *testing.T) {
	flips := func(r operator.Request) (operator.Response, error) {
		p := r.Parent
		if on, _, _ := unstructured.NestedBool(p.Object, "spec", "on"); !on {
			if err := unstructured.SetNestedField(p.Object, true, "spec", "on"); err != nil {
				return operator.Response{}, err
			}
		}
		return operator.Response{Parent: p, Children: []operator.Object{configMap("a", "1")}}, nil
	}
	b := newBench(t, flips, func(op *operator.Operator) { op.ParentSets = []string{"spec.on"} })
	expect(t, "operations", []string{"create ConfigMap a", "set Web p", "status Web p"}, b.settle())

	b = newBench(t, flips, func(op *operator.Operator) { op.ParentSets = []string{"spec.on"} })
	b.fail = func(op plan.Op) error {
		if op.Verb == plan.Set {
			return invalid(op)
		}
		return nil
	}
	expect(t, "operations where it is refused", []string{"create ConfigMap a", "set Web p", "status Web p", "tell Refused"}, b.settle())
	expect(t, "conditions", map[string]string{"Ready": "False Refused", "Reconciling": "False No", "Stalled": "True Refused"}, b.said())
}
