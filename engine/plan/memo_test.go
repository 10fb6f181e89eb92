package plan

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

const cpuDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: "nginx:1", resources: {limits: {cpu: 1000m}}}
`

func TestMemoProvesWhatTheServerWritesDifferently(t *testing.T) {
	type edit = func(o map[string]any)
	limits := func(o map[string]any) map[string]any { return at(container(o, "web"), "resources/limits") }
	tests := map[string]struct {
		foreign edit // after our apply
		raw     edit // a change that leaves the owners as they are
		ours    edit // what is desired later
		skip    []string
		restart bool
		want    bool
	}{
		"the normalised object holds":                       {want: true},
		"after a restart nothing is known":                  {restart: true},
		"a foreign edit of an owned field breaks it":        {foreign: func(o map[string]any) { limits(o)["cpu"] = "2" }},
		"a foreign edit of a keyed entry breaks it":         {foreign: func(o map[string]any) { container(o, "web")["image"] = "nginx:2" }},
		"a foreign removal breaks it":                       {foreign: func(o map[string]any) { delete(at(o, "metadata"), "labels") }},
		"somebody else's field does not matter":             {foreign: func(o map[string]any) { at(o, "spec")["paused"] = true }, want: true},
		"another wish breaks it":                            {ours: func(o map[string]any) { at(o, "spec")["replicas"] = int64(4) }},
		"a create-only field may change":                    {skip: []string{"spec.replicas"}, raw: func(o map[string]any) { at(o, "spec")["replicas"] = int64(9) }, want: true},
		"any other owned field may not, whoever did it":     {raw: func(o map[string]any) { at(o, "spec")["replicas"] = int64(9) }},
		"another wish for a create-only field is no wish":   {skip: []string{"spec.replicas"}, ours: func(o map[string]any) { at(o, "spec")["replicas"] = int64(9) }, want: true},
		"a wish beside a create-only field still breaks it": {skip: []string{"spec.replicas"}, ours: func(o map[string]any) { at(o, "spec")["paused"] = true }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			desired := object(t, cpuDeployment)
			live := applied(t, nil, desired.Object, us)
			if len(Compare(desired.Object, live.Object, Owned(live, us, ""), tc.skip)) == 0 {
				t.Fatal("the test is void: the server was to write it differently")
			}
			var m Memo
			m.Prove(desired.Object, live, us, "", tc.skip)
			if tc.foreign != nil {
				live = edited(t, live, others, tc.foreign)
			}
			if tc.raw != nil {
				tc.raw(live.Object)
			}
			if tc.ours != nil {
				tc.ours(desired.Object)
			}
			if tc.restart {
				m = Memo{}
			}
			if got := m.Holds(desired.Object, live, us, "", tc.skip); got != tc.want {
				t.Errorf("holds is %v, want %v", got, tc.want)
			}
		})
	}
}

func TestMemoLosesAFieldThatSomebodyElseTookOver(t *testing.T) {
	desired := object(t, cpuDeployment)
	live := applied(t, nil, desired.Object, us)
	var m Memo
	m.Prove(desired.Object, live, us, "", nil)
	theirs := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web", "namespace": "default"},
		"spec": map[string]any{"replicas": int64(5)}}
	taken := applied(t, live, theirs, others)
	theirs["spec"] = map[string]any{"replicas": int64(2)}
	back := applied(t, taken, theirs, others)
	if m.Holds(desired.Object, back, us, "", nil) {
		t.Error("it holds although spec.replicas is somebody else's now; the value is as it was")
	}
}

func TestMemoKnowsObjectsByUIDAndForgetsTheDead(t *testing.T) {
	desired := object(t, cpuDeployment)
	live := applied(t, nil, desired.Object, us)
	var m Memo
	m.Prove(desired.Object, live, us, "", nil)
	other := live.DeepCopy()
	other.SetUID("another")
	if m.Holds(desired.Object, other, us, "", nil) {
		t.Error("a proof about one object is taken for another of the same name")
	}
	if m.Holds(desired.Object, live, us, "status", nil) {
		t.Error("a proof about an object is taken for one about its status")
	}
	m.Forget(map[types.UID]bool{live.GetUID(): true})
	if !m.Holds(desired.Object, live, us, "", nil) {
		t.Error("a living object was forgotten")
	}
	m.Forget(nil)
	if m.Holds(desired.Object, live, us, "", nil) {
		t.Error("a dead object is remembered")
	}
}

func TestAnOpProvesByItsVerb(t *testing.T) {
	live := func() *unstructured.Unstructured {
		return applied(t, nil, object(t, cpuDeployment).Object, us)
	}
	desired := object(t, cpuDeployment).Object
	tests := map[string]struct {
		verb               Verb
		wantMain, wantStat bool
	}{
		"a creation": {verb: Create, wantMain: true}, "an apply": {verb: Apply, wantMain: true},
		"a status":                      {verb: Status, wantStat: true},
		"a strip says nothing":          {verb: Strip},
		"a read of it says nothing":     {verb: Read},
		"an adoption says nothing":      {verb: Adopt},
		"a deletion of it says nothing": {verb: Delete},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var m Memo
			Op{Verb: tc.verb, Manager: us, desired: desired}.Prove(&m, live())
			if got := m.Holds(desired, live(), us, "", nil); got != tc.wantMain {
				t.Errorf("proof about the object: %v", got)
			}
			if got := m.Holds(desired, live(), us, "status", nil); got != tc.wantStat {
				t.Errorf("proof about the status: %v", got)
			}
			Op{Verb: tc.verb, Manager: us, desired: desired}.Prove(&m, nil) // An answer without an object must not panic.
		})
	}
}
