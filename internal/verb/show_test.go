package verb

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/homeostat-dev/homeostat/engine"
	"github.com/homeostat-dev/homeostat/engine/plan"
	"github.com/homeostat-dev/homeostat/internal/command"
	"github.com/homeostat-dev/homeostat/operator"
)

func one(ops ...plan.Op) []proposal {
	kind := operator.KindOf[appsv1.Deployment]("apps/v1")
	for i := range ops {
		ops[i].Kind, ops[i].Namespace, ops[i].Name, ops[i].Reason = kind, "default", "web", "because"
	}
	ref := operator.Ref{Kind: kind.GroupVersionKind, Namespace: "default", Name: "parent"}
	return []proposal{{operator: "test", Proposal: engine.Proposal{Parent: ref, Ops: ops}}}
}

func TestText(t *testing.T) {
	const head = "Deployment default/parent (operator test)\n"
	cases := map[string]struct {
		given []proposal
		want  string
	}{
		"nothing to do": {one(), "1 object: 0 to create, 0 to change, 0 to delete\n"},
		"a creation": {
			one(plan.Op{Verb: plan.Create, Body: map[string]any{"kind": "Deployment",
				"metadata": map[string]any{"name": "web", "resourceVersion": "1"}, "spec": map[string]any{"replicas": int64(3)}}}),
			head + "  create Deployment default/web: because\n      + metadata:\n      +   name: web\n      + spec:\n      +   replicas: 3\n\n" +
				"1 object: 1 to create, 0 to change, 0 to delete\n",
		},
		"a change": {
			one(plan.Op{Verb: plan.Apply, Changes: []plan.Change{
				{Path: "spec.replicas", From: int64(1), To: int64(3)}, {Path: "spec.paused", To: true}, {Path: "spec.old", From: "x"},
			}}),
			head + "  apply Deployment default/web: because\n      spec.replicas: 1 → 3\n      spec.paused: (absent) → true\n      spec.old: \"x\" → (absent)\n\n" +
				"1 object: 0 to create, 1 to change, 0 to delete\n",
		},
		"inside a list": {
			one(plan.Op{Verb: plan.Apply, Changes: []plan.Change{{Path: "spec.containers",
				From: []any{map[string]any{"image": "a:1", "name": "c", "policy": "default"}}, To: []any{map[string]any{"image": "a:2", "name": "c"}}}}}),
			head + "  apply Deployment default/web: because\n      spec.containers[0].image: \"a:1\" → \"a:2\"\n\n1 object: 0 to create, 1 to change, 0 to delete\n",
		},
		"a value that somebody else set": {
			one(plan.Op{Verb: plan.Apply, Changes: []plan.Change{{Path: "spec.replicas", From: int64(3), To: int64(3)}}}),
			head + "  apply Deployment default/web: because\n      spec.replicas: as it is, to be owned\n\n1 object: 0 to create, 1 to change, 0 to delete\n",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, text(c.given)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestVerdict(t *testing.T) {
	stuck := one()
	stuck[0].Err = errors.New("a name is taken")
	code := func(err error) int {
		if exit, ok := errors.AsType[*command.Exit](err); ok {
			return exit.Code
		}
		if err != nil {
			return command.Failed
		}
		return command.OK
	}
	for name, c := range map[string]struct {
		given []proposal
		want  int
	}{
		"as desired":    {one(), command.OK},
		"only an event": {one(plan.Op{Verb: plan.Tell}), command.OK},
		"a status":      {one(plan.Op{Verb: plan.Status}), command.Changes},
		"a deletion":    {one(plan.Op{Verb: plan.Delete}), command.Changes},
		"stuck":         {stuck, command.Failed},
	} {
		if got := code(verdict(c.given)); got != c.want {
			t.Errorf("%s: exit code %d, want %d", name, got, c.want)
		}
	}
	if !strings.Contains(text(stuck), "1 failing") {
		t.Error("the summary hides what is failing")
	}
}
