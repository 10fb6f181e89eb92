// Package machine is the useless machine: a Machine puts every switch that goes
// up down again, five seconds after it was seen, and no more than one in five
// seconds. There are two operators: [Switch] notes when a switch was seen to be
// up; [Machine] makes Switches, shows their positions and flips them. Neither
// ever sleeps or holds anything in memory: all waiting is a time in a status.
//
// The invariant: a flip is saved before it is made, is made only in the pass
// that saved it, and is over before the next one is saved.
package machine

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/homeostat-dev/homeostat/operator"
	"github.com/homeostat-dev/homeostat/operators/machine/v1alpha1"
)

const (
	down = "down"
	// interval is how long a switch stays up after it was seen, and how long a
	// machine rests between two flips.
	interval = 5 * time.Second
	// machineLabel is the label of a Switch that names its machine.
	machineLabel = "machine"
	position     = "spec.position"
)

// Switch keeps status.seenAt of every Switch. It has no children.
var Switch = operator.Declare(operator.Declaration[v1alpha1.Switch]{
	Name: "useless-switch",
	Doc:  "Notes when a Switch was seen to be up.",
	CRD:  v1alpha1.SwitchCRD,
	Sync: syncSwitch,
})

// Machine makes the Switches of every Machine and flips them.
var Machine = operator.Declare(operator.Declaration[v1alpha1.Machine]{
	Name: "useless-machine",
	Doc:  "Puts every switch of a Machine down again, one in five seconds.",
	CRD:  v1alpha1.MachineCRD,
	Children: []operator.Child{{
		Kind:       Switch.Parent,
		CreateOnly: []string{position},
		Adopt: operator.SelectBy(func(m *v1alpha1.Machine) operator.Selector {
			return operator.Selector{Labels: map[string]string{machineLabel: m.Name}}
		}),
	}},
	ParentSets: []string{"spec.switchPosition"},
	Sync:       syncMachine,
})

func syncSwitch(s *v1alpha1.Switch, r operator.Request) (operator.Response, error) {
	return operator.Response{Status: v1alpha1.SwitchStatus{
		Sighting: sight(s.Status.Sighting, s.Spec.Position, s.Generation, r.Now),
	}}, nil
}

// sight is the sighting of a switch: none when it is down, the saved one when it
// has not moved since, a new one otherwise.
func sight(saved v1alpha1.Sighting, position string, generation int64, now time.Time) v1alpha1.Sighting {
	if position == down {
		return v1alpha1.Sighting{}
	}
	if saved.SeenAt != nil && saved.SeenGeneration == generation {
		return saved
	}
	return v1alpha1.Sighting{SeenAt: micro(now), SeenGeneration: generation}
}

func syncMachine(m *v1alpha1.Machine, r operator.Request) (operator.Response, error) {
	switches := operator.List[v1alpha1.Switch](r.Children)
	if r.Deleting {
		return operator.Response{Children: keepAll(switches)}, nil
	}
	if m.Spec.Switches > 0 {
		return syncSwitches(m, r, switches), nil
	}
	return syncOwnSwitch(m, r, switches), nil
}

// syncOwnSwitch is a machine with one switch of its own, or with none at all.
func syncOwnSwitch(m *v1alpha1.Machine, r operator.Request, switches []*v1alpha1.Switch) operator.Response {
	var levers []lever
	status := v1alpha1.MachineStatus{}
	if m.Spec.SwitchPosition != "" {
		status.Sighting = sight(m.Status.Sighting, m.Spec.SwitchPosition, m.Generation, r.Now)
		levers = []lever{{uid: m.UID, generation: m.Generation, position: m.Spec.SwitchPosition, seen: m.Status.Sighting}}
	}
	next := nextStep(r.Now, m.Status, levers)
	response := operator.Response{
		Status:   next.record(status),
		Children: keepAll(switches),
		Until:    next.until,
		Events:   next.events,
	}
	if next.move != nil {
		m.Spec.SwitchPosition = down
		response.Parent = m
	}
	return response
}

// syncSwitches is a machine with Switches.
func syncSwitches(m *v1alpha1.Machine, r operator.Request, observed []*v1alpha1.Switch) operator.Response {
	kept := keep(int(m.Spec.Switches), observed)
	next := nextStep(r.Now, m.Status, leversOf(kept))
	status := v1alpha1.MachineStatus{
		Positions: positions(observed),
		Switches:  int32(len(live(observed))),
		Selector:  machineLabel + "=" + m.Name,
	}
	response := operator.Response{Status: next.record(status), Until: next.until, Events: next.events}
	for _, s := range kept {
		child := operator.Object(newSwitch(m, s.Name))
		if next.move != nil && next.move.uid == s.UID {
			child = operator.SetIfUnchanged(child, s, position)
		}
		response.Children = append(response.Children, child)
	}
	for _, name := range missing(m, r, kept) {
		response.Children = append(response.Children, newSwitch(m, name))
	}
	return response
}

func micro(t time.Time) *metav1.MicroTime { return &metav1.MicroTime{Time: t} }
