package sim_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/homeostat-dev/homeostat/sim"
)

// TestTwoEnginesAtOnce runs every operator twice at the same time, as after a
// leader that does not know yet that it is none. The lease is for efficiency:
// the end is that of one engine, and no invariant is ever broken.
func TestTwoEnginesAtOnce(t *testing.T) {
	m, web := ref(memcachedKind, "m"), ref(deployments, "m")
	scenarios := map[string]sim.Scenario{
		"pair":              pairScenario(t, pairOperator(syncPair)),
		"memcached scaled":  memcachedScenario(t, "memcached, scaled", patching(m, "{spec: {size: 3}}")),
		"memcached damaged": memcachedScenario(t, "memcached, damaged", patching(web, "{spec: {replicas: 4}}"), deleting(web)),
		"machine": machineScenario(t, "machine, three up",
			creating("{apiVersion: useless.container.training/v1alpha1, kind: Machine, metadata: {name: m}, spec: {switches: 3}}"),
			each(switchKind, "{spec: {position: up}}")),
	}
	for name, s := range netperfScenarios(t) {
		scenarios["netperf "+name] = s
	}
	for name, scenario := range scenarios {
		t.Run(name, func(t *testing.T) {
			reference := sim.Run(scenario, sim.Schedule{})
			if reference.Err != nil {
				t.Fatal(reference.Err)
			}
			twice := scenario
			twice.Operators = append(append(twice.Operators[:0:0], scenario.Operators...), scenario.Operators...)
			more := 0 // writes that only a second engine attempts
			for seed := range uint64(20) {
				t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
					schedule := sim.Schedule{Seed: seed}
					outcome := sim.Run(twice, schedule)
					more += outcome.Writes - reference.Writes
					if outcome.Err != nil {
						t.Fatalf("%v\n%s", outcome.Err, sim.Story(twice, schedule))
					}
					if diff := cmp.Diff(reference.End, outcome.End); diff != "" {
						t.Errorf("another end (-one engine +two):\n%s\n%s", diff, sim.Story(twice, schedule))
					}
				})
			}
			if more == 0 {
				t.Error("the second engine did nothing: the test shows nothing")
			}
		})
	}
}
