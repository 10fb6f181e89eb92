package engine_test

import (
	"strconv"
	gosync "sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/homeostat-dev/homeostat/engine/plan"
	"github.com/homeostat-dev/homeostat/operator"
)

func TestADeletionIsSentOnceWhateverItsAnswer(t *testing.T) {
	tests := map[string]struct {
		returns, finalizer bool
	}{
		"a status":                       {},
		"the object as it was":           {returns: true},
		"the object, which is going out": {finalizer: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			children := []operator.Object{configMap("a", "1")}
			b := newBench(t, func(operator.Request) (operator.Response, error) { return operator.Response{Children: children}, nil })
			b.settle()
			if tc.finalizer {
				o := b.objects[refOf(configMaps, "a")].DeepCopy()
				o.SetFinalizers([]string{"example.com/x"})
				b.others(o)
				b.settle()
			}
			b.returns = tc.returns
			children = nil
			b.others(b.objects[refOf(webs, "p")])
			expect(t, "operations", []string{"delete ConfigMap a"}, b.settle())
		})
	}
}

func TestAChildThatCannotChangeIsMadeAnew(t *testing.T) {
	value := "1"
	b := newBench(t, func(operator.Request) (operator.Response, error) {
		return operator.Response{Children: []operator.Object{configMap("a", value)}}, nil
	}, func(op *operator.Operator) { op.Children[0].Update = operator.UpdateRecreate })
	b.settle()
	value = "2"
	b.others(b.objects[refOf(webs, "p")])
	expect(t, "operations", []string{"delete ConfigMap a", "create ConfigMap a"}, b.settle())

	held := b.objects[refOf(configMaps, "a")].DeepCopy()
	held.SetFinalizers([]string{"example.com/x"})
	b.others(held)
	b.settle()
	value = "3"
	b.others(b.objects[refOf(webs, "p")])
	expect(t, "one that is held", []string{"delete ConfigMap a", "status Web p"}, b.settle())
	expect(t, "conditions", map[string]string{"Ready": "False Recreating", "Reconciling": "True Recreating", "Stalled": "False No"}, b.said())
	b.othersDelete(refOf(configMaps, "a"))
	expect(t, "once it is gone", []string{"create ConfigMap a", "status Web p"}, b.settle())
}

func TestAnObjectThatTwoReadsSelectIsThereOnce(t *testing.T) {
	n := 0
	b := newBench(t, func(r operator.Request) (operator.Response, error) {
		n = len(operator.List[corev1.Secret](r.Related))
		return operator.Response{}, nil
	}, reading, func(op *operator.Operator) {
		op.Reads = append(op.Reads, operator.Read{Kind: secrets, Select: func(*unstructured.Unstructured) operator.Selector {
			return operator.Selector{Names: []string{"s"}}
		}})
	})
	b.others(secretOf("p"))
	b.settle()
	expect(t, "how often Sync sees it", 1, n)
}

func TestAParentMayReadOthersOfItsKind(t *testing.T) {
	var names []string
	b := newBench(t, asked(&names), func(op *operator.Operator) {
		op.Reads = []operator.Read{{Kind: webs, Select: func(p *unstructured.Unstructured) operator.Selector {
			if p.GetName() == "p" {
				return operator.Selector{Names: []string{"q"}}
			}
			return operator.Selector{}
		}}}
	})
	b.others(parent("q"))
	b.settle()
	names = nil
	b.others(b.objects[refOf(webs, "q")])
	b.settle()
	expect(t, "asked about", []string{"q", "p"}, names)
	names = nil
	b.othersDelete(refOf(webs, "q"))
	b.settle()
	expect(t, "asked about when it is gone", []string{"p"}, names)
}

// Passes run while events come: this test is for the race detector.
func TestEventsDuringPasses(t *testing.T) {
	b := newBench(t, wants(configMap("a", "1")), reading)
	var events gosync.WaitGroup
	stop := make(chan struct{})
	events.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			s := secretOf("p")
			s.SetResourceVersion(strconv.Itoa(1000 + i))
			s.SetUID("s")
			b.core.Observe(secrets.GroupVersionKind, s, false)
			b.core.OldestUnsynced(b.now)
		}
	})
	for range 200 {
		pass, _ := b.core.Next(b.now)
		if pass == nil {
			continue
		}
		_ = pass.Woken()
		for op, more := pass.Step(); more; op, more = pass.Step() {
			if op.Verb != plan.Tell {
				_ = pass.Woken()
			}
			pass.Done(b.do(op))
		}
		_ = pass.Err()
		b.core.Finish(pass, b.now)
	}
	close(stop)
	events.Wait()
}
