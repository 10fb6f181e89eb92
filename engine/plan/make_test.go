package plan

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/homeostat-dev/homeostat/operator"
)

var (
	deployments = operator.KindOf[appsv1.Deployment]("apps/v1")
	services    = operator.KindOf[corev1.Service]("v1")
	configMaps  = operator.KindOf[corev1.ConfigMap]("v1")
)

// house is a parent, what it wants and what stands.
type house struct {
	op      *operator.Operator
	parent  *unstructured.Unstructured
	stands  map[operator.Ref]*unstructured.Unstructured
	missing map[schema.GroupVersionKind]bool
	memo    Memo
}

func newHouse(t testing.TB, rules ...operator.Child) *house {
	t.Helper()
	parent := object(t, `{apiVersion: example.com/v1, kind: Web, metadata: {name: p, namespace: default, uid: uid-p, resourceVersion: "7"}}`)
	return &house{
		op:      &operator.Operator{Name: "test", Parent: operator.Kind{GroupVersionKind: parent.GroupVersionKind()}, Children: rules},
		parent:  parent,
		stands:  map[operator.Ref]*unstructured.Unstructured{},
		missing: map[schema.GroupVersionKind]bool{},
	}
}

func (h *house) input(desired ...operator.Desired) Input {
	var children []*unstructured.Unstructured
	for _, o := range h.stands {
		if metav1.IsControlledBy(o, h.parent) {
			children = append(children, o)
		}
	}
	operator.SortObjects(children)
	return Input{
		Operator: h.op, Parent: h.parent, Desired: desired, Children: children, Memo: &h.memo,
		Standing: func(r operator.Ref) *unstructured.Unstructured { return h.stands[r] },
		Missing: func(k schema.GroupVersionKind) error {
			if h.missing[k] {
				return errors.New("404")
			}
			return nil
		},
	}
}

func (h *house) put(o *unstructured.Unstructured) { h.stands[RefOf(o)] = o }

// make puts what an earlier plan made of the object.
func (h *house) make(t testing.TB, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	h.put(applied(t, nil, body(h.parent, wish(o)), us))
	return h.stands[RefOf(o)]
}

func wish(o *unstructured.Unstructured) operator.Desired {
	return operator.Desired{Object: o.DeepCopy()}
}

func lines(ops []Op) []string {
	var out []string
	for _, op := range ops {
		out = append(out, string(op.Verb)+" "+op.Ref().String())
	}
	return out
}

func configMap(t testing.TB, name string) *unstructured.Unstructured {
	return object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: `+name+`, namespace: default}, data: {k: v}}`)
}

func TestMake(t *testing.T) {
	changed := func(o *unstructured.Unstructured) *unstructured.Unstructured {
		set(o.Object, "data.k", "other")
		return o
	}
	tests := map[string]struct {
		update   operator.Update
		given    func(t *testing.T, h *house) []operator.Desired
		want     []string
		prunes   int
		taken    []string
		problems []string
		human    bool
		waiting  []string
	}{
		"a child that is not there is created": {
			given: func(t *testing.T, h *house) []operator.Desired { return []operator.Desired{wish(configMap(t, "a"))} },
			want:  []string{"create ConfigMap default/a"},
		},
		"a child as desired needs nothing": {
			given: func(t *testing.T, h *house) []operator.Desired {
				h.make(t, configMap(t, "a"))
				return []operator.Desired{wish(configMap(t, "a"))}
			},
		},
		"a child that differs is applied": {
			given: func(t *testing.T, h *house) []operator.Desired {
				h.make(t, configMap(t, "a"))
				return []operator.Desired{wish(changed(configMap(t, "a")))}
			},
			want: []string{"apply ConfigMap default/a"},
		},
		"a child that cannot change is deleted": {update: operator.UpdateRecreate,
			given: func(t *testing.T, h *house) []operator.Desired {
				h.make(t, configMap(t, "a"))
				return []operator.Desired{wish(changed(configMap(t, "a")))}
			},
			want: []string{"delete ConfigMap default/a"},
		},
		"a child that changes on delete is left": {update: operator.UpdateOnDelete,
			given: func(t *testing.T, h *house) []operator.Desired {
				h.make(t, configMap(t, "a"))
				return []operator.Desired{wish(changed(configMap(t, "a")))}
			},
		},
		"changes come first and pruning last": {
			given: func(t *testing.T, h *house) []operator.Desired {
				h.make(t, configMap(t, "old"))
				h.make(t, configMap(t, "b"))
				return []operator.Desired{wish(changed(configMap(t, "b"))), wish(configMap(t, "new"))}
			},
			want:   []string{"apply ConfigMap default/b", "create ConfigMap default/new", "delete ConfigMap default/old"},
			prunes: 1,
		},
		"a child on its way out is not pruned again": {
			given: func(t *testing.T, h *house) []operator.Desired {
				now := metav1.Now()
				h.make(t, configMap(t, "old")).SetDeletionTimestamp(&now)
				return nil
			},
		},
		"a wanted child on its way out is waited for": {
			given: func(t *testing.T, h *house) []operator.Desired {
				now := metav1.Now()
				h.make(t, configMap(t, "a")).SetDeletionTimestamp(&now)
				return []operator.Desired{wish(changed(configMap(t, "a")))}
			},
			waiting: []string{"ConfigMap default/a"},
		},
		"an object without a controller is not touched": {
			given: func(t *testing.T, h *house) []operator.Desired {
				h.put(applied(t, nil, configMap(t, "a").Object, others))
				return []operator.Desired{wish(configMap(t, "a"))}
			},
			taken: []string{"ConfigMap default/a"}, human: true,
			problems: []string{"ForeignOwner: ConfigMap default/a exists and is controlled by nobody; it is left alone: delete or rename it"},
		},
		"an object with another controller is not touched": {
			given: func(t *testing.T, h *house) []operator.Desired {
				o := configMap(t, "a")
				yes := true
				o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Web", Name: "p", UID: "uid-of-an-older-p", Controller: &yes}})
				h.put(o)
				return []operator.Desired{wish(configMap(t, "a"))}
			},
			taken: []string{"ConfigMap default/a"}, human: true,
			problems: []string{"ForeignOwner: ConfigMap default/a exists and is controlled by Web p; it is left alone: delete or rename it"},
		},
		"an object that we own without controlling it is not touched": {
			given: func(t *testing.T, h *house) []operator.Desired {
				o := configMap(t, "a")
				o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Web", Name: "p", UID: h.parent.GetUID()}})
				h.put(o)
				return []operator.Desired{wish(configMap(t, "a"))}
			},
			taken: []string{"ConfigMap default/a"}, human: true,
			problems: []string{"ForeignOwner: ConfigMap default/a exists and is controlled by nobody; it is left alone: delete or rename it"},
		},
		"a kind that is not served is a problem, the rest goes on": {
			given: func(t *testing.T, h *house) []operator.Desired {
				h.missing[services.GroupVersionKind] = true
				return []operator.Desired{wish(configMap(t, "a")), wish(object(t, webService))}
			},
			want: []string{"create ConfigMap default/a"}, human: true,
			problems: []string{"KindNotServed: the API server does not serve Service v1; install its CustomResourceDefinition"},
		},
		"a parent on its way out plans nothing": {
			given: func(t *testing.T, h *house) []operator.Desired {
				h.make(t, configMap(t, "old"))
				now := metav1.Now()
				h.parent.SetDeletionTimestamp(&now)
				return []operator.Desired{wish(configMap(t, "new"))}
			},
		},
		"a kept child is neither changed nor pruned": {
			given: func(t *testing.T, h *house) []operator.Desired {
				kept := h.make(t, configMap(t, "a"))
				return []operator.Desired{{Object: changed(kept.DeepCopy()), Keep: true}}
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, operator.Child{Kind: configMaps, Update: tc.update}, operator.Child{Kind: services})
			made := Make(h.input(tc.given(t, h)...))
			var problems []string
			for _, p := range made.Problems {
				problems = append(problems, p.Reason+": "+p.Message)
				if p.Human != tc.human {
					t.Errorf("%s: a human must act: %v", p.Reason, p.Human)
				}
			}
			got := []any{lines(made.Ops), made.Prunes, refs(made.Taken), problems, refs(made.Waiting)}
			if d := cmp.Diff([]any{tc.want, tc.prunes, tc.taken, tc.problems, tc.waiting}, got); d != "" {
				t.Errorf("plan differs (-want +got):\n%s", d)
			}
		})
	}
}

func refs(all []operator.Ref) []string {
	var out []string
	for _, r := range all {
		out = append(out, r.String())
	}
	return out
}

func TestEveryWriteIsFenced(t *testing.T) {
	h := newHouse(t, operator.Child{Kind: configMaps}, operator.Child{Kind: services, OwnedLists: []string{"spec.ports"}})
	standing := h.make(t, configMap(t, "changes"))
	h.make(t, configMap(t, "goes"))
	service := object(t, webService)
	h.put(edited(t, h.make(t, service), others, func(o map[string]any) {
		at(o, "spec")["ports"] = append(at(o, "spec")["ports"].([]any), map[string]any{"name": "x", "port": int64(1), "protocol": "TCP"})
	}))
	changes := configMap(t, "changes")
	set(changes.Object, "data.k", "other")
	made := Make(h.input(wish(changes), wish(configMap(t, "new")), wish(service)))
	parentSet, _ := SetParent(h.op, h.parent, []operator.FieldSet{{Path: "spec.on", Value: true}})
	status, _ := StatusOf(h.op, h.parent, map[string]any{"x": "y"}, &h.memo)
	type fences struct {
		OpUID, OpVersion, BodyUID, BodyVersion any
	}
	got := map[string]fences{}
	for _, op := range append(made.Ops, parentSet, status) {
		uid, _ := get(op.Body, "metadata.uid")
		version, _ := get(op.Body, "metadata.resourceVersion")
		got[string(op.Verb)+" "+op.Ref().String()] = fences{string(op.UID), op.ResourceVersion, uid, version}
	}
	v := h.stands[RefOf(service)].GetResourceVersion()
	want := map[string]fences{
		"apply ConfigMap default/changes": {string(standing.GetUID()), "", string(standing.GetUID()), nil},
		"create ConfigMap default/new":    {"", "", nil, "1"},
		"delete ConfigMap default/goes":   {"uid-of-goes", "", nil, nil},
		"strip Service default/web":       {"uid-of-web", v, "uid-of-web", v},
		"set Web default/p":               {"uid-p", "7", "uid-p", "7"},
		"status Web default/p":            {"uid-p", "7", "uid-p", "7"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("fences differ (-want +got):\n%s", d)
	}
}

func TestAReasonIsTheSameEveryTime(t *testing.T) {
	listsOf := []string{"spec.ports", "spec.other", "spec.third", "spec.fourth"}
	h := newHouse(t, operator.Child{Kind: services, OwnedLists: listsOf})
	o := object(t, webService)
	h.make(t, o)
	standing := h.stands[RefOf(o)]
	for _, path := range listsOf {
		set(o.Object, path, []any{map[string]any{"name": "ours"}})
		set(standing.Object, path, []any{map[string]any{"name": "theirs"}})
	}
	var reason string
	for range 20 {
		made := Make(h.input(wish(o)))
		got := made.Ops[0].String() + canonical(made.Ops[0].Changes)
		if reason == "" {
			reason = got
		}
		if got != reason {
			t.Fatalf("once %s, once %s", reason, got)
		}
	}
}

func TestAServiceIsStrippedBeforeItIsApplied(t *testing.T) {
	h := newHouse(t, operator.Child{Kind: services, OwnedLists: []string{"spec.ports"}})
	service := object(t, webService)
	h.put(edited(t, h.make(t, service), others, func(o map[string]any) {
		at(o, "spec")["ports"].([]any)[0].(map[string]any)["port"] = int64(81)
	}))
	var verbs []Verb
	for range 4 {
		made := Make(h.input(wish(service)))
		for _, op := range made.Ops {
			verbs = append(verbs, op.Verb)
			after := perform(t, h.stands[op.Ref()], op)
			op.Prove(&h.memo, after)
			h.stands[op.Ref()] = after
		}
	}
	if d := cmp.Diff([]Verb{Strip, Apply}, verbs); d != "" {
		t.Errorf("operations differ (-want +got):\n%s", d)
	}
	port := at(h.stands[RefOf(service)].Object, "spec")["ports"].([]any)[0].(map[string]any)
	if !Equal(port["port"], int64(80)) || !Equal(port["nodePort"], int64(30000)) {
		t.Errorf("the port is %v; 80 with its old nodePort was wanted", port)
	}
}
