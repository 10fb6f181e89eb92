package engine_test

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/homeostat-dev/homeostat/engine/plan"
	"github.com/homeostat-dev/homeostat/operator"
)

func TestSomebodyElsesObjectAtAWantedName(t *testing.T) {
	b := newBench(t, wants(configMap("a", "1"), configMap("z", "1")))
	theirs := raw(configMaps, "a")
	b.others(theirs)
	expect(t, "operations", []string{"create ConfigMap z", "status Web p", "tell ForeignOwner"}, b.settle())
	expect(t, "conditions", map[string]string{"Ready": "False ForeignOwner", "Reconciling": "False No", "Stalled": "True ForeignOwner"}, b.said())
	if b.again() <= 0 {
		t.Error("it is not looked at again")
	}
	b.othersDelete(refOf(configMaps, "a"))
	expect(t, "once it is gone", []string{"create ConfigMap a", "status Web p"}, b.settle())
}

func TestATakenNameIsToldToSyncWhichPicksAnother(t *testing.T) {
	b := newBench(t, func(r operator.Request) (operator.Response, error) {
		name := "first"
		if operator.IsTaken[corev1.ConfigMap](r, name) {
			name = "second"
		}
		return operator.Response{Children: []operator.Object{configMap(name, "1")}}, nil
	})
	b.others(raw(configMaps, "first"))
	expect(t, "operations", []string{"create ConfigMap second", "status Web p"}, b.settle())
	expect(t, "at rest", time.Duration(-1), b.again())
	b.othersDelete(refOf(configMaps, "first"))
	expect(t, "the name is free", []string{"create ConfigMap first", "delete ConfigMap second"}, b.settle())
}

func TestASyncThatPicksTakenNamesForEver(t *testing.T) {
	n := 0
	b := newBench(t, func(r operator.Request) (operator.Response, error) {
		n = len(r.Taken)
		return operator.Response{Children: []operator.Object{configMap("taken-"+string(rune('a'+n%26))+string(rune('a'+n/26)), "1")}}, nil
	})
	for i := range 26 * 10 {
		b.others(raw(configMaps, "taken-"+string(rune('a'+i%26))+string(rune('a'+i/26))))
	}
	expect(t, "operations", []string{"status Web p", "tell ForeignOwner"}, b.settle())
}

func adopting(op *operator.Operator) {
	op.Children[0].Adopt = func(p *unstructured.Unstructured) operator.Selector {
		app, _, _ := unstructured.NestedString(p.Object, "spec", "app")
		if app == "panic" {
			panic(app)
		}
		return operator.Selector{Labels: map[string]string{"app": app}}
	}
}

// keepsAll lists every child there is.
func keepsAll(r operator.Request) (operator.Response, error) {
	var all []operator.Object
	for _, c := range operator.List[corev1.ConfigMap](r.Children) {
		all = append(all, operator.Keep(c))
	}
	return operator.Response{Status: map[string]any{"n": len(all)}, Children: all}, nil
}

func orphan(name, app string) *unstructured.Unstructured {
	o := raw(configMaps, name)
	o.SetLabels(map[string]string{"app": app})
	return o
}

func newAdopter(t *testing.T) *bench {
	b := newBench(t, keepsAll, adopting)
	p := b.objects[refOf(webs, "p")].DeepCopy()
	if err := unstructured.SetNestedField(p.Object, "x", "spec", "app"); err != nil {
		t.Fatal(err)
	}
	b.others(p)
	return b
}

func controller(o *unstructured.Unstructured) string {
	if c := metav1.GetControllerOf(o); c != nil {
		return c.Name
	}
	return ""
}

func TestAdoptionAndRelease(t *testing.T) {
	b := newAdopter(t)
	theirs := orphan("theirs", "x")
	yes := true
	theirs.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "X", Name: "x", UID: "x", Controller: &yes}})
	b.others(theirs)
	b.others(orphan("other", "y"))
	b.others(orphan("mine", "x"))
	b.others(orphan("mine-too", "x"))
	expect(t, "the parent is read live before it adopts, once",
		[]string{"get Web p", "adopt ConfigMap mine", "adopt ConfigMap mine-too", "status Web p"}, b.settle())
	expect(t, "its controller", "p", controller(b.objects[refOf(configMaps, "mine")]))
	expect(t, "somebody else's controller", "x", controller(b.objects[refOf(configMaps, "theirs")]))

	moved := b.objects[refOf(configMaps, "mine")].DeepCopy()
	moved.SetLabels(map[string]string{"app": "y"})
	b.others(moved)
	expect(t, "one that no longer matches is let go, and not deleted", []string{"release ConfigMap mine", "status Web p"}, b.settle())
	expect(t, "its controller", "", controller(b.objects[refOf(configMaps, "mine")]))
}

func TestAdoptionByAParentThatIsGone(t *testing.T) {
	tests := map[string]struct {
		meanwhile func(b *bench)
		want      []string
	}{
		"deleted": {func(b *bench) { b.remove(refOf(webs, "p")) }, []string{"get Web p"}},
		"on its way out": {func(b *bench) {
			p := b.objects[refOf(webs, "p")].DeepCopy()
			now := metav1.NewTime(b.now)
			p.SetDeletionTimestamp(&now)
			b.store(p)
		}, []string{"get Web p", "status Web p"}},
		"another of the same name": {func(b *bench) { b.store(parent("p")) }, []string{"get Web p", "status Web p"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newAdopter(t)
			b.settle()
			b.others(orphan("mine", "x"))
			tc.meanwhile(b)
			did := b.settle()
			if len(did) == 0 || did[0] != tc.want[0] {
				t.Errorf("operations: %v", did)
			}
			expect(t, "its controller", "", controller(b.objects[refOf(configMaps, "mine")]))
		})
	}
}

func TestAnObjectThatChangedIsNotAdoptedBlindly(t *testing.T) {
	b := newAdopter(t)
	b.settle()
	b.others(orphan("mine", "x"))
	b.during = func(op plan.Op) {
		if op.Verb == plan.Adopt {
			b.during = nil
			o := b.objects[refOf(configMaps, "mine")].DeepCopy()
			o.SetLabels(map[string]string{"app": "y"})
			b.store(o)
		}
	}
	expect(t, "operations", []string{"get Web p", "adopt ConfigMap mine", "get ConfigMap mine"}, b.settle())
	expect(t, "its controller", "", controller(b.objects[refOf(configMaps, "mine")]))
}

func TestARefusedAdoptionIsNotRepeatedWithinThePass(t *testing.T) {
	b := newAdopter(t)
	b.others(orphan("mine", "x"))
	b.fail = func(op plan.Op) error {
		if op.Verb == plan.Adopt {
			return apierrors.NewForbidden(resource, op.Name, errors.New("no"))
		}
		return nil
	}
	expect(t, "operations", []string{"get Web p", "adopt ConfigMap mine", "status Web p", "tell Forbidden"}, b.settle())
}

func TestASelectorThatPanicsReleasesNothing(t *testing.T) {
	b := newAdopter(t)
	b.others(orphan("mine", "x"))
	b.settle()
	p := b.objects[refOf(webs, "p")].DeepCopy()
	if err := unstructured.SetNestedField(p.Object, "panic", "spec", "app"); err != nil {
		t.Fatal(err)
	}
	b.others(p)
	expect(t, "operations", []string{"status Web p", "tell SyncPanicked"}, b.settle())
	expect(t, "its controller", "p", controller(b.objects[refOf(configMaps, "mine")]))
}

func TestAnAdoptionThatDoesNotHoldIsGivenUp(t *testing.T) {
	b := newAdopter(t)
	b.others(orphan("mine", "x"))
	b.during = func(op plan.Op) {
		if op.Verb == plan.Adopt { // A webhook takes the reference out again.
			delete(op.Body["metadata"].(map[string]any), "ownerReferences")
			delete(b.objects[op.Ref()].Object, "seen")
			b.objects[op.Ref()].Object["seen"] = op.ResourceVersion
		}
	}
	did := b.settle()
	if len(did) > 40 {
		t.Errorf("%d operations", len(did))
	}
}
