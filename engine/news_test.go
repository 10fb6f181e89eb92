package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/homeostat-dev/homeostat/engine"
	"github.com/homeostat-dev/homeostat/engine/plan"
	"github.com/homeostat-dev/homeostat/operator"
)

func TestChangesAreTold(t *testing.T) {
	two := []operator.Object{configMap("a", "1"), configMap("b", "1")}
	byHand := func(b *bench) {
		b.others(changed(b.objects[refOf(configMaps, "a")], "by hand", "data", "k"))
	}
	tests := map[string]struct {
		before []operator.Object // made and told
		after  []operator.Object
		edit   func(*operator.Operator)
		event  func(b *bench)
		want   []string
	}{
		"a child is made":              {after: two[:1], want: []string{"Created: made ConfigMap a"}},
		"two children, in one event":   {after: two, want: []string{"Created: made ConfigMap a, b"}},
		"many children, by number":     {after: append(slices.Clone(two), configMap("c", "1"), configMap("d", "1")), want: []string{"Created: made 4 children"}},
		"a child changed by hand":      {before: two, after: two, event: byHand, want: []string{"Changed: changed ConfigMap a (data.k)"}},
		"a child no longer listed":     {before: two, after: two[:1], want: []string{"Deleted: deleted ConfigMap b"}},
		"one goes and another comes":   {before: two[:1], after: two[1:], want: []string{"Changed: made ConfigMap b; deleted ConfigMap a"}},
		"nothing, when nothing is due": {before: two, after: two},
		"nothing, when a child is as it was": {before: two, after: two, event: func(b *bench) {
			b.others(changed(b.objects[refOf(configMaps, "a")], "theirs", "metadata", "annotations", "x"))
		}},
		"a child made anew": {before: two[:1], after: two[:1], event: byHand, edit: func(op *operator.Operator) {
			op.Children[0].Update = operator.UpdateRecreate
		}, want: []string{"Changed: made ConfigMap a; deleted, to be made anew, ConfigMap a (data.k)"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			children := tc.before
			edits := []func(*operator.Operator){}
			if tc.edit != nil {
				edits = append(edits, tc.edit)
			}
			b := newBench(t, func(operator.Request) (operator.Response, error) { return operator.Response{Children: children}, nil }, edits...)
			b.settle()
			b.news = nil
			children = tc.after
			b.others(b.objects[refOf(webs, "p")])
			if tc.event != nil {
				tc.event(b)
			}
			b.settle()
			expect(t, "what is told", tc.want, b.news)
			b.others(b.objects[refOf(webs, "p")])
			b.settle()
			expect(t, "what is told after it", tc.want, b.news)
		})
	}
}

func TestTheSameChangeAgainIsAnotherEvent(t *testing.T) {
	b := newBench(t, wants(configMap("a", "1")))
	b.settle()
	for range 2 {
		b.others(changed(b.objects[refOf(configMaps, "a")], "by hand", "data", "k"))
		b.settle()
	}
	expect(t, "events", 3, len(b.named))
	if b.named[1] == b.named[2] {
		t.Errorf("both are named %s", b.named[1])
	}
}

// TestNewsDoNotDelayWork: they are told when no parent is due, and work that
// comes meanwhile is done by the next pass.
func TestNewsDoNotDelayWork(t *testing.T) {
	until := start.Add(time.Hour)
	b := newBench(t, func(r operator.Request) (operator.Response, error) {
		return operator.Response{Children: []operator.Object{configMap("of-"+r.Parent.GetName(), "1")}, Until: until}, nil
	})
	for _, name := range []string{"q", "r"} {
		b.others(parent(name))
	}
	var order []bool
	var telling *engine.Pass
	for range 4 {
		pass, _ := b.core.Next(b.now)
		if order = append(order, pass.Tells()); pass.Tells() {
			telling = pass
			break
		}
		b.run(pass)
	}
	expect(t, "which passes tell", []bool{false, false, false, true}, order)
	b.others(b.objects[refOf(webs, telling.Parent().Name)])
	b.run(telling)
	b.settle()
	expect(t, "when the parents are looked at again", time.Hour, b.again())
	expect(t, "events", 3, len(b.news))
	b.now = until
	for range 3 {
		pass, _ := b.core.Next(b.now)
		if pass == nil || pass.Tells() {
			t.Fatal("a parent lost its time to news")
		}
		b.run(pass)
	}
}

func TestNewsAreBounded(t *testing.T) {
	value := 0
	b := newBench(t, func(operator.Request) (operator.Response, error) {
		value++
		return operator.Response{Children: []operator.Object{configMap("a", fmt.Sprint(value/2))}}, nil
	})
	for range 50 {
		b.now = b.now.Add(time.Second)
		b.others(b.objects[refOf(webs, "p")])
		b.settle()
	}
	expect(t, "events in a minute", 10, len(b.news))
	b.now = b.now.Add(10 * time.Minute)
	b.others(b.objects[refOf(webs, "p")])
	b.settle()
	if last := b.news[len(b.news)-1]; len(b.news) != 11 || !strings.Contains(last, "changes before that were not told") {
		t.Errorf("%d events, the last is %q", len(b.news), last)
	}
}

// TestNoNewsOfWhatChangedNothing: a server may call equal what looks different.
func TestNoNewsOfWhatChangedNothing(t *testing.T) {
	b := newBench(t, wants(configMap("a", "1")))
	b.settle()
	b.news = nil
	a := b.objects[refOf(configMaps, "a")]
	a = a.DeepCopy()
	a.SetResourceVersion(a.GetResourceVersion() + "0")
	b.objects[refOf(configMaps, "a")] = a
	b.core.Observe(a.GroupVersionKind(), changed(a, "looks different", "data", "k"), false)
	if did := b.settle(); !slices.Contains(did, "apply ConfigMap a") {
		t.Fatalf("nothing was applied: %v", did)
	}
	if len(b.news) > 0 {
		t.Errorf("told: %v", b.news)
	}
}

func TestNewsOfWhatWasDoneBeforeAFailure(t *testing.T) {
	b := newBench(t, wants(configMap("a", "1"), configMap("b", "1")))
	b.fail = refuseWith("b", errors.New("connection refused"))
	b.settle()
	expect(t, "what is told", []string{"Created: made ConfigMap a"}, b.news)
}

func TestSecretsAreNotInTheNews(t *testing.T) {
	secret := &corev1.Secret{Data: map[string][]byte{"k": []byte("geheim")}}
	secret.Name = "s"
	b := newBench(t, wants(secret), func(op *operator.Operator) { op.Children = []operator.Child{{Kind: secrets}} })
	b.settle()
	b.others(changed(b.objects[refOf(secrets, "s")], "Z2VoZWlt", "data", "k"))
	b.during = func(op plan.Op) {
		if strings.Contains(fmt.Sprint(op.Changes), "Z2Vo") {
			t.Errorf("%v", op.Changes)
		}
	}
	b.settle()
	for _, n := range b.news {
		if strings.Contains(n, "Z2Vo") || strings.Contains(n, "geheim") {
			t.Error(n)
		}
	}
}
