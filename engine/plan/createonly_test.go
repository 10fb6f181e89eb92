package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/homeostat-dev/homeostat/operator"
)

// sentReplicas is what an apply says about spec.replicas, nil for nothing, and
// the resourceVersion it carries.
func sentReplicas(op Op) []any {
	replicas, _ := get(op.Body, "spec.replicas")
	version, _ := get(op.Body, "metadata.resourceVersion")
	return []any{string(op.Verb), replicas, version}
}

func TestCreateOnlyFields(t *testing.T) {
	hpa := func(n int64) func(*testing.T, *unstructured.Unstructured) *unstructured.Unstructured {
		return func(t *testing.T, o *unstructured.Unstructured) *unstructured.Unstructured {
			return edited(t, o, "hpa", func(o map[string]any) { set(o, "spec.replicas", n) })
		}
	}
	newImage := func(o *unstructured.Unstructured) { container(o.Object, "web")["image"] = "nginx:2" }
	tests := map[string]struct {
		standing func(*testing.T, *unstructured.Unstructured) *unstructured.Unstructured
		desired  func(*unstructured.Unstructured)
		set      []string
		version  string
		want     []any // verb, spec.replicas, resourceVersion; nil for no operation
	}{
		"another wish for it alone is no operation":    {desired: func(o *unstructured.Unstructured) { set(o.Object, "spec.replicas", int64(5)) }},
		"somebody's change of it is no operation":      {standing: hpa(7)},
		"no wish for it alone is no operation":         {desired: func(o *unstructured.Unstructured) { delete(at(o.Object, "spec"), "replicas") }},
		"while it is ours an apply repeats it, fenced": {desired: newImage, want: []any{"apply", int64(3), "1"}},
		"also when it is no longer wished for": {
			desired: func(o *unstructured.Unstructured) { newImage(o); delete(at(o.Object, "spec"), "replicas") },
			want:    []any{"apply", int64(3), "1"}},
		"the observed value is repeated, not the wish": {
			desired: func(o *unstructured.Unstructured) { newImage(o); set(o.Object, "spec.replicas", int64(5)) },
			want:    []any{"apply", int64(3), "1"}},
		"once it is somebody else's it is left out": {standing: hpa(7), desired: newImage, want: []any{"apply", nil, nil}},
		"set on the version that stands writes it, fenced": {set: []string{"spec.replicas"}, version: "1",
			desired: func(o *unstructured.Unstructured) { set(o.Object, "spec.replicas", int64(5)) },
			want:    []any{"apply", int64(5), "1"}},
		"set takes it back from somebody else": {standing: hpa(7), set: []string{"spec.replicas"}, version: "2",
			desired: func(o *unstructured.Unstructured) { set(o.Object, "spec.replicas", int64(5)) },
			want:    []any{"apply", int64(5), "2"}},
		"a stale set writes nothing": {standing: hpa(7), set: []string{"spec.replicas"}, version: "1",
			desired: func(o *unstructured.Unstructured) { set(o.Object, "spec.replicas", int64(5)) }},
		"a stale set does not ride along": {standing: hpa(7), set: []string{"spec.replicas"}, version: "1",
			desired: func(o *unstructured.Unstructured) { newImage(o); set(o.Object, "spec.replicas", int64(5)) },
			want:    []any{"apply", nil, nil}},
		"set to what it is, and ours, is no operation": {set: []string{"spec.replicas"}, version: "1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, operator.Child{Kind: deployments, CreateOnly: []string{"spec.replicas"}})
			o := object(t, webDeployment)
			standing := h.make(t, o)
			if tc.standing != nil {
				h.put(tc.standing(t, standing))
			}
			if tc.desired != nil {
				tc.desired(o)
			}
			made := Make(h.input(operator.Desired{Object: o, Set: tc.set, SetVersion: tc.version}))
			var got []any
			for _, op := range made.Ops {
				got = append(got, sentReplicas(op)...)
				perform(t, h.stands[op.Ref()], op)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("operation differs (-want +got):\n%s", d)
			}
		})
	}
}

func TestACreateOnlyFieldSurvivesEveryApply(t *testing.T) {
	h := newHouse(t, operator.Child{Kind: deployments, CreateOnly: []string{"spec.replicas"}})
	o := object(t, webDeployment)
	made := Make(h.input(wish(o)))
	h.put(perform(t, nil, made.Ops[0]))
	if n, _ := get(h.stands[RefOf(o)].Object, "spec.replicas"); !Equal(n, int64(3)) {
		t.Fatalf("created with %v replicas, 3 were wanted", n)
	}
	for i, image := range []string{"nginx:2", "nginx:3"} {
		container(o.Object, "web")["image"] = image
		made = Make(h.input(wish(o)))
		h.put(perform(t, h.stands[RefOf(o)], made.Ops[0]))
		want := int64(3 + 4*i)
		if n, _ := get(h.stands[RefOf(o)].Object, "spec.replicas"); !Equal(n, want) {
			t.Fatalf("after an apply there are %v replicas, %d were there before", n, want)
		}
		h.put(edited(t, h.stands[RefOf(o)], "hpa", func(o map[string]any) { set(o, "spec.replicas", int64(7)) }))
	}
}

func TestSetParent(t *testing.T) {
	tests := map[string]struct {
		sets []operator.FieldSet
		want map[string]any // the patch's spec, nil for no operation
	}{
		"nothing to set":               {},
		"a field that it has":          {sets: []operator.FieldSet{{Path: "spec.on", Value: true}}},
		"a field that differs":         {sets: []operator.FieldSet{{Path: "spec.on", Value: false}}, want: map[string]any{"on": false}},
		"a field that it lacks":        {sets: []operator.FieldSet{{Path: "spec.deep.er", Value: "x"}}, want: map[string]any{"deep": map[string]any{"er": "x"}}},
		"a field to remove":            {sets: []operator.FieldSet{{Path: "spec.on"}}, want: map[string]any{"on": nil}},
		"a field already absent":       {sets: []operator.FieldSet{{Path: "spec.off"}}},
		"only what differs is written": {sets: []operator.FieldSet{{Path: "spec.n", Value: int64(1)}, {Path: "spec.on", Value: false}}, want: map[string]any{"on": false}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			set(h.parent.Object, "spec.on", true)
			set(h.parent.Object, "spec.n", int64(1))
			op, ok := SetParent(h.op, h.parent, tc.sets)
			if ok != (tc.want != nil) {
				t.Fatalf("there is an operation: %v", ok)
			}
			if !ok {
				return
			}
			if d := cmp.Diff(tc.want, op.Body["spec"]); d != "" {
				t.Errorf("patch differs (-want +got):\n%s", d)
			}
		})
	}
}

func TestStatusOf(t *testing.T) {
	given := map[string]any{"n": int64(1), "list": []any{"a"}, "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
	entry := func(manager string) []any {
		return []any{map[string]any{"manager": manager, "operation": "Apply", "subresource": "status", "fieldsV1": map[string]any{"f:status": map[string]any{
			"f:n": map[string]any{}, "f:list": map[string]any{},
			"f:conditions": map[string]any{`k:{"type":"Ready"}`: map[string]any{".": map[string]any{}, "f:type": map[string]any{}, "f:status": map[string]any{}}},
		}}}}
	}
	tests := map[string]struct {
		manager string
		edit    func(status map[string]any)
		prove   bool
		want    []string
	}{
		"what it has":                {manager: us},
		"what it has, but not by us": {manager: others, want: []string{"status.conditions", "status.list", "status.n"}},
		"another value":              {manager: us, edit: func(s map[string]any) { s["n"] = int64(2) }, want: []string{"status.n"}},
		"a value less":               {manager: us, edit: func(s map[string]any) { delete(s, "n") }, want: []string{"status.n"}},
		"a value more":               {manager: us, edit: func(s map[string]any) { s["m"] = int64(2) }, want: []string{"status.m"}},
		"a condition that changed": {manager: us, edit: func(s map[string]any) {
			s["conditions"] = []any{map[string]any{"type": "Ready", "status": "False"}}
		}, want: []string{"status.conditions[type=Ready].status"}},
		"what the server is known to write differently": {manager: us, prove: true, edit: func(s map[string]any) { s["n"] = int64(2) }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			h.parent.Object["status"] = (&unstructured.Unstructured{Object: given}).DeepCopy().Object
			set(h.parent.Object, "metadata.managedFields", entry(tc.manager))
			status := (&unstructured.Unstructured{Object: given}).DeepCopy().Object
			if tc.edit != nil {
				tc.edit(status)
			}
			if tc.prove {
				op, _ := StatusOf(h.op, h.parent, status, &h.memo)
				op.Prove(&h.memo, h.parent)
			}
			op, ok := StatusOf(h.op, h.parent, status, &h.memo)
			if ok != (tc.want != nil) {
				t.Fatalf("there is an operation: %v", ok)
			}
			if d := cmp.Diff(tc.want, paths(op.Changes)); d != "" {
				t.Errorf("changes differ (-want +got):\n%s", d)
			}
		})
	}
}
