package main

import (
	"bytes"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/homeostat-dev/homeostat/operator"
	"github.com/homeostat-dev/homeostat/operator/operatortest"
	"github.com/homeostat-dev/homeostat/sim"
)

func TestFixtures(t *testing.T) {
	operatortest.Run(t, Operator, "testdata/*.txtar")
}

// TestUnderFaults lives the life of a Memcached in a simulated cluster, and once
// more for every write at which the operator may die or lose the answer.
func TestUnderFaults(t *testing.T) {
	api, err := sim.NewAPI(Operator.CRD)
	if err != nil {
		t.Fatal(err)
	}
	kind := Operator.Parent.GroupVersionKind
	memcached := operator.Ref{Kind: kind, Namespace: "default", Name: "m"}
	scenario := sim.Scenario{
		Name: "the example", API: api, Operators: []*operator.Operator{Operator},
		Actors: []sim.Actor{sim.Collector(), sim.Deployments(), sim.Kubelet(nil)},
		Script: []sim.Action{
			{Name: "create", Do: func(c sim.Client) error {
				_, err := c.Create(sim.Parse("{apiVersion: cache.example.com/v1alpha1, kind: Memcached, metadata: {name: m}, spec: {size: 2}}"))
				return err
			}},
			{Name: "scale", Do: func(c sim.Client) error {
				_, err := c.Patch(memcached, map[string]any{"spec": map[string]any{"size": int64(3)}}, "")
				return err
			}},
		},
	}
	report := sim.Torture(scenario, sim.Thorough(0, kind))
	if err := report.Err(scenario); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d simulated schedules", report.Schedules)
	nodes, _, _ := unstructured.NestedStringSlice(report.Reference.End[memcached], "status", "nodes")
	if len(nodes) != 3 {
		t.Errorf("status.nodes is %q at the end, want three", nodes)
	}
}

// TestLines keeps the promise that an operator is small.
func TestLines(t *testing.T) {
	lines := map[string]int{}
	total := 0
	for _, file := range []string{"main.go", "memcached.go"} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines[file] = bytes.Count(source, []byte("\n"))
		total += lines[file]
	}
	if lines["main.go"] > 10 || total > 80 {
		t.Errorf("main.go has %d lines, 10 are promised; with memcached.go %d, 80 are promised", lines["main.go"], total)
	}
}
