package engine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/homeostat-dev/homeostat/engine"
	"github.com/homeostat-dev/homeostat/engine/plan"
	"github.com/homeostat-dev/homeostat/operator"
)

// reading makes the operator read Secrets by the label web=<name of the parent>.
func reading(op *operator.Operator) {
	op.Reads = []operator.Read{{Kind: secrets, Select: func(p *unstructured.Unstructured) operator.Selector {
		return operator.Selector{Labels: map[string]string{"web": p.GetName()}}
	}}}
}

func secretOf(web string) *unstructured.Unstructured {
	s := raw(secrets, "s")
	s.SetLabels(map[string]string{"web": web})
	return s
}

// asked makes a Sync that writes down whom it was asked about.
func asked(names *[]string) sync {
	return func(r operator.Request) (operator.Response, error) {
		if l := len(*names); l == 0 || (*names)[l-1] != r.Parent.GetName() {
			*names = append(*names, r.Parent.GetName())
		}
		return operator.Response{}, nil
	}
}

func TestBackoffDoublesIsBoundedAndNeverEnds(t *testing.T) {
	b := newBench(t, func(operator.Request) (operator.Response, error) { return operator.Response{}, errors.New("x") })
	b.settle()
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60} {
		again := b.again()
		if want *= time.Second; again > want || again < want*4/5 {
			t.Errorf("after %d failures it waits %v, about %v were wanted", i+1, again, want)
		}
		b.now = b.now.Add(again)
		b.settle()
	}
	for range 50 {
		b.now = b.now.Add(b.again())
		b.settle()
	}
	if again := b.again(); again < 48*time.Second || again > time.Minute {
		t.Errorf("after many failures it waits %v", again)
	}
}

func TestARetryIsAskedAgainWhenItSaid(t *testing.T) {
	tests := map[string]struct{ after, want time.Duration }{
		"every time after what it said": {20 * time.Second, 20 * time.Second},
		"but not in a hot loop":         {time.Nanosecond, time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(operator.Request) (operator.Response, error) {
				return operator.Response{}, operator.Retry(tc.after, "Busy", "x")
			})
			for range 12 {
				b.settle()
				expect(t, "when it is asked again", tc.want, b.again())
				b.now = b.now.Add(b.again())
			}
		})
	}
}

func TestBackoffStartsAnewAfterSuccess(t *testing.T) {
	var err error
	b := newBench(t, func(operator.Request) (operator.Response, error) { return operator.Response{}, err })
	err = errors.New("x")
	for range 5 {
		b.settle()
		b.now = b.now.Add(b.again())
	}
	err = nil
	b.settle()
	expect(t, "at rest", time.Duration(-1), b.again())
	err = errors.New("x")
	b.others(b.objects[refOf(webs, "p")])
	b.settle()
	if again := b.again(); again > time.Second {
		t.Errorf("it waits %v", again)
	}
}

func TestParentsThatFailTogetherDoNotComeBackTogether(t *testing.T) {
	b := newBench(t, func(operator.Request) (operator.Response, error) { return operator.Response{}, errors.New("x") })
	for i := range 50 {
		b.others(parent(fmt.Sprint("q", i)))
	}
	b.settle()
	times := map[time.Time]bool{}
	for b.now.Sub(start) < time.Second {
		b.now = b.now.Add(b.again())
		times[b.now] = true
		b.settle()
	}
	if len(times) < 10 {
		t.Errorf("51 parents come back at %d different times", len(times))
	}
}

var (
	notServed = apierrors.NewGenericServerResponse(404, "list", schema.GroupResource{}, "", "not served", 0, false)
	forbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("no role"))
)

// TestAKindThatMayNotBeSeen: what the operator cannot see is not absent.
func TestAKindThatMayNotBeSeen(t *testing.T) {
	asked := 0
	b := newBench(t, func(operator.Request) (operator.Response, error) { asked++; return operator.Response{}, nil }, reading)
	b.settle()
	asked = 0
	b.core.Missing(secrets.GroupVersionKind, forbidden)
	b.settle()
	if asked != 0 {
		t.Errorf("Sync was asked %d times about a world that cannot be seen", asked)
	}
	if said := b.said()["Stalled"]; !strings.HasPrefix(said, "True CannotWatch") {
		t.Errorf("Stalled is %q", said)
	}
	b.core.Replace(secrets.GroupVersionKind, nil, "100")
	b.settle()
	if asked == 0 {
		t.Error("Sync was not asked once the kind could be listed")
	}
}

func TestWhatWakesAParent(t *testing.T) {
	tests := map[string]struct {
		given func(b *bench) // before
		event func(b *bench)
		want  []string // the parents asked about
	}{
		"its own change":             {event: func(b *bench) { b.others(b.objects[refOf(webs, "p")]) }, want: []string{"p"}},
		"a change of its child":      {event: func(b *bench) { b.others(childOf(b, "p")) }, want: []string{"p"}},
		"the deletion of its child":  {given: func(b *bench) { b.others(childOf(b, "p")) }, event: func(b *bench) { b.othersDelete(refOf(configMaps, "c")) }, want: []string{"p"}},
		"a child that changes hands": {given: func(b *bench) { b.others(childOf(b, "p")) }, event: func(b *bench) { b.others(childOf(b, "q")) }, want: []string{"p", "q"}},
		"an object that it selects":  {event: func(b *bench) { b.others(secretOf("p")) }, want: []string{"p"}},
		"an object that it selects goes": {given: func(b *bench) { b.others(secretOf("p")) },
			event: func(b *bench) { b.othersDelete(refOf(secrets, "s")) }, want: []string{"p"}},
		"an object relabelled from one to another": {given: func(b *bench) { b.others(secretOf("p")) },
			event: func(b *bench) { b.others(secretOf("q")) }, want: []string{"p", "q"}},
		"an object that nobody selects": {event: func(b *bench) { b.others(secretOf("nobody")) }},
		"an object in another namespace": {event: func(b *bench) {
			s := secretOf("p")
			s.SetNamespace("elsewhere")
			b.others(s)
		}},
		"somebody else's object of a child kind": {event: func(b *bench) { b.others(raw(configMaps, "x")) }},
		"an event that tells nothing new": {given: func(b *bench) { b.others(secretOf("p")) },
			event: func(b *bench) { o := b.objects[refOf(secrets, "s")]; b.core.Observe(o.GroupVersionKind(), o, false) }},
		"a kind that is not served any more":  {event: func(b *bench) { b.core.Missing(secrets.GroupVersionKind, notServed) }, want: []string{"p", "q"}},
		"an object of another kind than said": {event: func(b *bench) { b.core.Observe(secrets.GroupVersionKind, raw(configMaps, "x"), false) }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var names []string
			b := newBench(t, asked(&names), reading)
			b.others(parent("q"))
			if tc.given != nil {
				tc.given(b)
			}
			b.settle()
			for ref := range b.objects { // What Sync does not list was pruned.
				if ref.Kind == configMaps.GroupVersionKind {
					t.Fatalf("%v is left", ref)
				}
			}
			if tc.given != nil {
				tc.given(b) // Once more, and settled without a pass over it.
				names = nil
				for pass, _ := b.core.Next(b.now); pass != nil; pass, _ = b.core.Next(b.now) {
					b.core.Finish(pass, b.now)
				}
			}
			names = nil
			tc.event(b)
			b.settle()
			for i := range names {
				if i > 0 && names[i] < names[i-1] {
					names[i], names[i-1] = names[i-1], names[i]
				}
			}
			expect(t, "asked about", tc.want, names)
		})
	}
}

func childOf(b *bench, name string) *unstructured.Unstructured {
	c := raw(configMaps, "c")
	if old := b.objects[refOf(configMaps, "c")]; old != nil {
		c.SetUID(old.GetUID())
	}
	c.SetOwnerReferences([]metav1.OwnerReference{*plan.ControllerRef(b.objects[refOf(webs, name)])})
	return c
}

func TestAnEventWakesAParentInBackoff(t *testing.T) {
	fails := true
	b := newBench(t, func(operator.Request) (operator.Response, error) {
		if fails {
			return operator.Response{}, operator.Retry(time.Hour, "X", "x")
		}
		return operator.Response{}, nil
	}, reading)
	b.settle()
	expect(t, "before", time.Hour, b.again())
	fails = false
	b.others(secretOf("p"))
	b.now = b.now.Add(5 * time.Second)
	expect(t, "operations", []string{"status Web p"}, b.settle())
	expect(t, "after", time.Duration(-1), b.again())
}

// TestManyEventsDoNotMakeAFailingParentHurry: what belongs to it may change as
// often as it likes; its own change is heard at once.
func TestManyEventsDoNotMakeAFailingParentHurry(t *testing.T) {
	asked := 0
	b := newBench(t, func(operator.Request) (operator.Response, error) {
		asked++
		return operator.Response{}, operator.Stall("X", "x")
	}, reading)
	b.settle()
	for range 10 { // The wait grows.
		b.now = b.now.Add(b.again())
		b.settle()
	}
	asked = 0
	for range 100 {
		b.others(secretOf("p"))
		b.now = b.now.Add(100 * time.Millisecond)
		b.settle()
	}
	if asked == 0 || asked > 3 {
		t.Errorf("100 events in 10 s made it ask %d times, want once in 5 s", asked)
	}
	asked = 0
	web := b.objects[refOf(webs, "p")].DeepCopy()
	web.SetLabels(map[string]string{"touched": "yes"})
	b.others(web)
	b.settle()
	if asked == 0 {
		t.Error("a change of the parent itself had to wait")
	}
}

func TestAnEventDuringAPassCausesOneMore(t *testing.T) {
	seen := 0
	b := newBench(t, func(r operator.Request) (operator.Response, error) {
		seen = len(operator.List[corev1.Secret](r.Related))
		return operator.Response{}, nil
	}, reading)
	pass, _ := b.core.Next(b.now)
	b.during = func(plan.Op) {
		if b.during = nil; seen == 0 {
			b.others(secretOf("p"))
		}
	}
	b.run(pass)
	if next, _ := b.core.Next(b.now); next == nil {
		t.Error("what was seen during the pass is not looked at")
	}
}

func TestAParentHasOnePassAtATime(t *testing.T) {
	b := newBench(t, wants())
	first, _ := b.core.Next(b.now)
	b.others(b.objects[refOf(webs, "p")])
	if second, at := b.core.Next(b.now); second != nil || !at.IsZero() {
		t.Error("a second pass while one runs")
	}
	b.run(first)
	if second, _ := b.core.Next(b.now); second == nil {
		t.Error("no pass after the first, which did not see the event")
	}
}

func TestParentsComeInTheOrderTheyWereWoken(t *testing.T) {
	var names []string
	b := newBench(t, asked(&names))
	for _, n := range []string{"z", "a", "m"} {
		b.others(parent(n))
	}
	b.others(b.objects[refOf(webs, "p")]) // Woken again it keeps its place.
	b.settle()
	expect(t, "asked about", []string{"p", "z", "a", "m"}, names)
}

func TestOneEventWakesParentsInOneOrder(t *testing.T) {
	want := []string{"a", "b", "c", "d", "e", "p"}
	for range 5 {
		var names []string
		b := newBench(t, asked(&names), func(op *operator.Operator) {
			op.Reads = []operator.Read{{Kind: secrets, Select: func(*unstructured.Unstructured) operator.Selector {
				return operator.Selector{Names: []string{"s"}}
			}}}
		})
		for _, n := range []string{"e", "c", "a", "d", "b"} {
			b.others(parent(n))
		}
		b.settle()
		names = nil
		b.others(secretOf("all"))
		b.settle()
		expect(t, "asked about", want, names)
	}
}

func TestNothingIsHandedOutBeforeEverythingIsKnown(t *testing.T) {
	b := newBench(t, wants(), reading)
	core, err := engine.NewCore(b.op, engine.CoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	core.Replace(webs.GroupVersionKind, []*unstructured.Unstructured{b.objects[refOf(webs, "p")]}, "1")
	core.Replace(configMaps.GroupVersionKind, nil, "1")
	if pass, _ := core.Next(b.now); pass != nil {
		t.Error("a pass before Secrets were listed: it would decide on a world it does not know")
	}
	core.Missing(secrets.GroupVersionKind, notServed)
	if pass, _ := core.Next(b.now); pass == nil {
		t.Error("no pass although Secrets are known not to be served")
	}
}

func TestAChildKindThatIsNotServed(t *testing.T) {
	b := newBench(t, wants(configMap("a", "1")))
	b.core.Missing(configMaps.GroupVersionKind, notServed)
	expect(t, "operations", []string{"status Web p", "tell KindNotServed"}, b.settle())
	b.core.Replace(configMaps.GroupVersionKind, nil, fmt.Sprint(b.version))
	expect(t, "once it is served", []string{"create ConfigMap a", "status Web p"}, b.settle())
}

func TestAParentRecreatedUnderItsNameStartsFresh(t *testing.T) {
	tests := map[string]struct {
		recreate func(b *bench)
		want     []string
	}{
		"seen as two events": {func(b *bench) {
			b.othersDelete(refOf(webs, "p"))
			b.others(parent("p"))
		}, []string{"status Web p", "tell X"}},
		"seen as one event": {func(b *bench) { b.others(parent("p")) }, []string{"status Web p", "tell X"}},
		"seen only by the answer to our own write": {func(b *bench) {
			b.others(b.objects[refOf(webs, "p")])
			b.store(parent("p"))
		}, []string{"status Web p", "get Web p", "status Web p", "tell X"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			n := 0
			b := newBench(t, func(operator.Request) (operator.Response, error) {
				return operator.Response{Status: map[string]any{"n": n}}, operator.Retry(time.Hour, "X", "x")
			})
			b.op.Sync = func(r operator.Request) (operator.Response, error) {
				return operator.Response{Status: map[string]any{"n": n}, Events: []operator.Event{{Reason: "X"}}, Until: r.Now.Add(time.Hour)}, nil
			}
			b.settle()
			n++
			tc.recreate(b)
			expect(t, "operations", tc.want, b.settle())
		})
	}
}

func TestADeletedParentIsForgotten(t *testing.T) {
	b := newBench(t, func(operator.Request) (operator.Response, error) { return operator.Response{}, errors.New("x") })
	b.settle()
	b.othersDelete(refOf(webs, "p"))
	expect(t, "when it is looked at again", time.Duration(-1), b.again())
	expect(t, "oldest unsynced", time.Duration(0), b.core.OldestUnsynced(b.now.Add(time.Hour)))
}

func TestADeletedParentIsForgottenDuringItsPass(t *testing.T) {
	b := newBench(t, wants(configMap("a", "1"), configMap("b", "1")))
	b.during = func(op plan.Op) {
		if op.Name == "b" {
			b.othersDelete(refOf(webs, "p"))
		}
	}
	expect(t, "operations", []string{"create ConfigMap a", "create ConfigMap b"}, b.settle())
	expect(t, "when it is looked at again", time.Duration(-1), b.again())
}

func TestAParentOnItsWayOutMakesNothing(t *testing.T) {
	b := newBench(t, wants(configMap("a", "1")))
	b.settle()
	b.othersDelete(refOf(configMaps, "a"))
	going := b.objects[refOf(webs, "p")].DeepCopy()
	now := metav1.NewTime(b.now)
	going.SetDeletionTimestamp(&now)
	b.others(going)
	for _, line := range b.settle() {
		if line != "status Web p" {
			t.Errorf("it does %s", line)
		}
	}
}

func TestOldestUnsynced(t *testing.T) {
	b := newBench(t, func(r operator.Request) (operator.Response, error) {
		if r.Parent.GetName() == "p" {
			return operator.Response{}, errors.New("x")
		}
		return operator.Response{}, nil
	})
	b.others(parent("q"))
	b.settle()
	expect(t, "at once", time.Duration(0), b.core.OldestUnsynced(b.now))
	for range 3 {
		b.now = b.now.Add(b.again())
		b.settle()
	}
	expect(t, "since the first failure", b.now.Sub(start), b.core.OldestUnsynced(b.now))
	b.op.Sync = wants()
	b.others(b.objects[refOf(webs, "p")])
	b.settle()
	expect(t, "when all is well", time.Duration(0), b.core.OldestUnsynced(b.now.Add(time.Hour)))
}
