package sim_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/homeostat-dev/homeostat/operator"
	"github.com/homeostat-dev/homeostat/sim"
)

// Pair is the smallest parent: a ConfigMap for each key, and a count of them.
type Pair struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              PairSpec   `json:"spec"`
	Status            PairStatus `json:"status,omitempty"`
}

type PairSpec struct {
	Keys  []string `json:"keys"`
	Color string   `json:"color,omitempty"`
}

type PairStatus struct {
	Made  int    `json:"made"`
	Since string `json:"since,omitempty"`
}

func pairOperator(sync func(*Pair, operator.Request) (operator.Response, error)) *operator.Operator {
	return operator.Declare(operator.Declaration[Pair]{
		Name: "pair", Doc: "Makes a ConfigMap for each key of a Pair.", CRD: pairCRD,
		Children: []operator.Child{{Kind: operator.KindOf[corev1.ConfigMap]("v1")}},
		Sync:     sync,
	})
}

func syncPair(p *Pair, r operator.Request) (operator.Response, error) {
	response := operator.Response{Status: PairStatus{Made: len(operator.List[corev1.ConfigMap](r.Children))}}
	for _, key := range p.Spec.Keys {
		response.Children = append(response.Children, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: p.Name + "-" + key},
			Data:       map[string]string{"color": p.Spec.Color},
		})
	}
	return response, nil
}

func pairScenario(t testing.TB, op *operator.Operator) sim.Scenario {
	return sim.Scenario{
		Name: "pair", API: newAPI(t, definition(t, pairCRD)), Operators: []*operator.Operator{op},
		Actors: []sim.Actor{sim.Collector()},
		Script: []sim.Action{
			creating("{apiVersion: sim.example.com/v1, kind: Pair, metadata: {name: a}, spec: {keys: [x, y0]}}"),
			patching(ref(pairKind, "a"), "{spec: {color: red}}"),
			patching(ref(configMapKind, "a-x"), "{data: {color: pink}}"),
			deleting(ref(configMapKind, "a-x")),
			patching(ref(pairKind, "a"), "{spec: {keys: [y0]}}"),
			patching(ref(pairKind, "a"), "{spec: {keys: [y0, x]}}"),
			deleting(ref(pairKind, "a")),
			creating("{apiVersion: sim.example.com/v1, kind: Pair, metadata: {name: a}, spec: {keys: [x]}}"),
		},
	}
}

func creating(text string) sim.Action {
	o := sim.Parse(text)
	return sim.Action{Name: "create " + o.GetKind() + " " + o.GetName(), Do: func(c sim.Client) error {
		_, err := c.Create(o)
		return err
	}}
}

func patching(r operator.Ref, patch string) sim.Action {
	return sim.Action{Name: fmt.Sprintf("patch %v with %s", r, patch), Do: func(c sim.Client) error {
		_, err := c.Patch(r, values(patch), "")
		return err
	}}
}

func deleting(r operator.Ref) sim.Action {
	return sim.Action{Name: fmt.Sprintf("delete %v", r), Do: func(c sim.Client) error {
		_, err := c.Delete(r, "", "", false)
		return err
	}}
}

// torture runs a campaign and says how long it took; the time is printed and
// never asserted.
func torture(t *testing.T, scenario sim.Scenario, campaign sim.Campaign) {
	t.Helper()
	began := time.Now()
	report := sim.Torture(scenario, campaign)
	t.Logf("simulated: %d schedules, reference %d steps, %d writes and %d reads of the cores, %v",
		report.Schedules, report.Reference.Steps, report.Reference.Writes, report.Reference.Reads, time.Since(began).Round(time.Millisecond))
	if err := report.Err(scenario); err != nil {
		t.Fatal(err)
	}
}

func TestPair(t *testing.T) {
	torture(t, pairScenario(t, pairOperator(syncPair)), sim.Thorough(100, pairKind, configMapKind))
}

// TestDeterministic runs the same schedule twice.
func TestDeterministic(t *testing.T) {
	scenario := pairScenario(t, pairOperator(syncPair))
	schedule := sim.Schedule{Seed: 7, Faults: []sim.Fault{{Kind: sim.CrashAfter, Write: 3, Lists: sim.Lists{Back: 2}}}}
	if first, second := sim.Story(scenario, schedule), sim.Story(scenario, schedule); first != second {
		t.Errorf("two simulated runs of one schedule differ:\n%s\n%s", first, second)
	}
}

// mustFail expects a torture to find a seeded bug.
func mustFail(t *testing.T, scenario sim.Scenario, campaign sim.Campaign) {
	t.Helper()
	report := sim.Torture(scenario, campaign)
	if len(report.Failures) == 0 {
		t.Fatalf("%d simulated schedules did not find the seeded bug", report.Schedules)
	}
	t.Logf("simulated: found after %d schedules, under %v: %.300v", report.Schedules, report.Failures[0].Schedule, report.Failures[0].Err)
}

// TestSeededBugs shows that the rules can be broken. The operators among the
// bugs are right as long as nothing goes wrong.
func TestSeededBugs(t *testing.T) {
	campaign := sim.Thorough(20, pairKind, configMapKind)
	once := func(op *operator.Operator) sim.Scenario {
		scenario := pairScenario(t, op)
		scenario.Script, scenario.MaxSteps = scenario.Script[:1], 300
		return scenario
	}
	t.Run("a new name at every call", func(t *testing.T) {
		calls := 0
		mustFail(t, once(pairOperator(func(p *Pair, r operator.Request) (operator.Response, error) {
			children := asObjects(operator.List[corev1.ConfigMap](r.Children))
			made := len(children)
			for len(children) < len(p.Spec.Keys) {
				calls++
				children = append(children, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", p.Name, calls)}})
			}
			return operator.Response{Status: PairStatus{Made: made}, Children: children}, nil
		})), campaign)
	})
	t.Run("remembers only after it acted", func(t *testing.T) {
		mustFail(t, once(pairOperator(func(p *Pair, r operator.Request) (operator.Response, error) {
			if p.Status.Made > 0 {
				return operator.Response{Status: p.Status, Children: asObjects(operator.List[corev1.ConfigMap](r.Children))}, nil
			}
			name := fmt.Sprintf("%s-%d", p.Name, r.Now.Unix())
			return operator.Response{Status: PairStatus{Made: 1}, Children: []operator.Object{
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}},
			}}, nil
		})), campaign)
	})
	t.Run("writes the time into its status", func(t *testing.T) {
		mustFail(t, once(pairOperator(func(p *Pair, r operator.Request) (operator.Response, error) {
			response, err := syncPair(p, r)
			response.Status = PairStatus{Made: 1, Since: "at " + r.Now.Format(time.RFC3339)}
			response.Until = r.Now.Add(time.Second)
			return response, err
		})), campaign)
	})
	t.Run("a server that forgets fences", func(t *testing.T) {
		scenario := pairScenario(t, pairOperator(syncPair))
		scenario.Prepare = func(s *sim.Server) { s.IgnoreFences = true }
		campaign.Faults = []sim.FaultKind{sim.CrashAfter}
		mustFail(t, scenario, campaign)
	})
}

func asObjects(list []*corev1.ConfigMap) (out []operator.Object) {
	for _, c := range list {
		out = append(out, operator.Keep(c))
	}
	return out
}

func (p *Pair) DeepCopyObject() runtime.Object { q := *p; return &q }
