package machine_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/homeostat-dev/homeostat/operator/admission"
	"github.com/homeostat-dev/homeostat/operator/operatortest"
	"github.com/homeostat-dev/homeostat/operators/machine"
)

func TestMachine(t *testing.T) {
	operatortest.Run(t, machine.Machine, "testdata/machine/*.txtar")
}

func TestSwitch(t *testing.T) {
	operatortest.Run(t, machine.Switch, "testdata/switch/*.txtar")
}

func TestRefusedByTheAPIServer(t *testing.T) {
	tests := map[string]struct {
		given  map[string]any
		refuse bool
	}{
		"U14: no switches":         {map[string]any{"switches": int64(0)}, true},
		"U14: fewer than none":     {map[string]any{"switches": int64(-1)}, true},
		"U14: too many":            {map[string]any{"switches": int64(100000)}, true},
		"both kinds of switches":   {map[string]any{"switches": int64(1), "switchPosition": "up"}, true},
		"the document's machine":   {map[string]any{"switchPosition": "up"}, false},
		"the document's switches":  {map[string]any{"switches": int64(3)}, false},
		"a machine without switch": {map[string]any{}, false},
	}
	s, err := admission.Compile(machine.Machine.CRD, "v1alpha1")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := s.Create(&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "useless.container.training/v1alpha1", "kind": "Machine",
				"metadata": map[string]any{"name": "m"}, "spec": tt.given,
			}})
			if (err != nil) != tt.refuse {
				t.Errorf("got error %v", err)
			}
		})
	}
}

// bench is one machine with its switches and both operators, driven through time.
type bench struct {
	t     *testing.T
	world operatortest.World
	start time.Time
	flips []string
}

func newBench(t *testing.T, switches int64) *bench {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	b := &bench{t: t, start: start, world: operatortest.World{Now: start, Parent: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "useless.container.training/v1alpha1", "kind": "Machine",
		"metadata": map[string]any{"name": "m", "namespace": "default", "uid": "uid-m", "resourceVersion": "1", "generation": int64(1)},
		"spec":     map[string]any{"switches": switches},
	}}}}
	return b
}

// settle lets both operators come to rest, and says when one wants to be asked again.
func (b *bench) settle() time.Time {
	b.t.Helper()
	for range 10 {
		var until time.Time
		for i, s := range b.world.Children {
			settled, err := operatortest.Settle(machine.Switch, operatortest.World{Parent: s, Now: b.world.Now})
			if err != nil {
				b.t.Fatal(err)
			}
			b.world.Children[i] = settled.World.Parent
		}
		settled, err := operatortest.Settle(machine.Machine, b.world)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, e := range settled.Decision.Events {
			if said := b.world.Now.Sub(b.start).String() + " " + e.Message; len(b.flips) == 0 || b.flips[len(b.flips)-1] != said {
				b.flips = append(b.flips, said)
			}
		}
		b.world, until = settled.World, settled.Decision.Until
		if settled.Rounds == 1 {
			return until
		}
	}
	b.t.Fatal("the operators do not come to rest")
	return time.Time{}
}

// run lets time pass from one wish to the next until nobody waits any more.
func (b *bench) run() {
	b.t.Helper()
	for range 100 {
		until := b.settle()
		if until.IsZero() {
			return
		}
		b.world.Now = until
	}
	b.t.Fatal("somebody always waits")
}

func (b *bench) putUp(i int) {
	s := b.world.Children[i]
	_ = unstructured.SetNestedField(s.Object, "up", "spec", "position")
	s.SetGeneration(s.GetGeneration() + 1)
}

func (b *bench) positions() string {
	p, _, _ := unstructured.NestedString(b.world.Parent.Object, "status", "positions")
	return p
}

func TestOneFlipInFiveSeconds(t *testing.T) {
	b := newBench(t, 3)
	b.run()
	for i := range 3 {
		b.putUp(i)
	}
	b.settle()
	if got := b.positions(); got != "uuu" {
		t.Errorf("positions are %s, want uuu", got)
	}
	b.run()
	if got := b.positions(); got != "ddd" {
		t.Errorf("positions are %s at the end, want ddd", got)
	}
	first, second, third := b.world.Children[0].GetName(), b.world.Children[1].GetName(), b.world.Children[2].GetName()
	want := []string{
		"5s Put switch " + first + " down",
		"10.000001s Put switch " + second + " down",
		"15.000002s Put switch " + third + " down",
	}
	if diff := cmp.Diff(want, b.flips); diff != "" {
		t.Errorf("flips (-want +got):\n%s", diff)
	}
	if got := len(b.world.Children); got != 3 {
		t.Errorf("there are %d switches at the end, want 3", got)
	}
}

func TestPutUpAgainWaitsAgain(t *testing.T) {
	b := newBench(t, 1)
	b.run()
	b.putUp(0)
	b.world.Now = b.settle() // 5 s
	b.settle()
	b.world.Now = b.world.Now.Add(time.Second)
	b.putUp(0)
	b.run()
	name := b.world.Children[0].GetName()
	want := []string{"5s Put switch " + name + " down", "11s Put switch " + name + " down"}
	if diff := cmp.Diff(want, b.flips); diff != "" {
		t.Errorf("flips (-want +got):\n%s", diff)
	}
}
