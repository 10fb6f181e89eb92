package operatortest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/homeostat-dev/homeostat/operator"
)

const crd = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: greetings.example.com}
spec:
  group: example.com
  names: {kind: Greeting, plural: greetings}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              to: {type: array, items: {type: string}}
              tone: {type: string, default: friendly, enum: [friendly, gruff]}
          status:
            type: object
            x-kubernetes-validations: [{rule: "!has(self.count) || self.count < 100", message: count is small}]
            properties:
              count: {type: integer}
              at: {type: string}
`

// Greeting is the parent of the tests.
type Greeting struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		To   []string `json:"to,omitempty"`
		Tone string   `json:"tone,omitempty"`
	} `json:"spec,omitempty"`
	Status struct {
		N  int    `json:"count,omitempty"`
		At string `json:"at,omitempty"`
	} `json:"status,omitempty"`
}

type (
	request  = operator.Request
	response = operator.Response
)

func greeting(sync func(*Greeting, request) (response, error)) *operator.Operator {
	return operator.Declare(operator.Declaration[Greeting]{
		Name: "greeting", CRD: []byte(crd), Sync: sync,
		Children: []operator.Child{
			{Kind: operator.KindOf[corev1.ConfigMap]("v1"), CreateOnly: []string{"data.mood"}},
			{Kind: operator.KindOf[corev1.Secret]("v1"), Adopt: func(*unstructured.Unstructured) operator.Selector {
				return operator.Selector{Labels: map[string]string{"greeting": "yes"}}
			}},
		},
	})
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
}

const plain = "Plain.\n-- parent.yaml --\nspec: {to: [a, b, c, d, e, f, g, h]}\n-- children.yaml --\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: old}\ndata: {mood: gruff}\n"

// calls counts across questions, as no Sync may.
var calls int

func TestLawsCatch(t *testing.T) {
	tests := map[string]struct {
		given func(*Greeting, request) (response, error)
		want  string
	}{
		"nothing, where nothing is wrong": {func(g *Greeting, _ request) (response, error) {
			var children []operator.Object
			for _, to := range g.Spec.To {
				children = append(children, configMap(to, nil))
			}
			return response{Status: map[string]any{"count": len(children)}, Children: children}, nil
		}, ""},
		"a stamp of the time in every answer": {func(_ *Greeting, r request) (response, error) {
			return response{Status: map[string]any{"at": r.Now.String()}}, nil
		}, "time law: at 2026-01-01T00:00:00.000001Z status.at goes from"},
		"a poll, whose end moves with the time": {func(_ *Greeting, r request) (response, error) {
			return response{Until: r.Now.Add(10 * time.Second)}, nil
		}, "time law: at 2026-01-01T00:00:00.000001Z until goes from"},
		"an answer that turns before the time it names": {func(_ *Greeting, r request) (response, error) {
			noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
			if r.Now.After(time.Date(2026, 1, 1, 0, 30, 0, 0, time.UTC)) {
				return response{Status: map[string]any{"count": 1}, Until: noon}, nil
			}
			return response{Until: noon}, nil
		}, "time law: at 2026-01-01T01:00:00Z status goes from"},
		"a failure in a year": {func(_ *Greeting, r request) (response, error) {
			if r.Now.Year() > 2026 {
				return response{}, operator.Stall("Late", "too late")
			}
			return response{}, nil
		}, "time law: at 2027-01-01T00:00:00Z Sync fails"},
		"a failure in a minute": {func(_ *Greeting, r request) (response, error) {
			if r.Now.Minute() > 0 {
				return response{}, operator.Stall("Late", "too late")
			}
			return response{}, nil
		}, "time law: at 2026-01-01T00:01:00Z Sync fails (Late: too late)"},
		"an end that is over": {func(_ *Greeting, r request) (response, error) {
			return response{Until: r.Now}, nil
		}, "Sync would be asked for ever"},
		"names in the order of a map": {func(g *Greeting, _ request) (response, error) {
			set := map[string]bool{}
			for _, to := range g.Spec.To {
				set[to] = true
			}
			var children []operator.Object
			for to := range set {
				children = append(children, configMap(fmt.Sprintf("%d-%s", len(children), to), nil))
			}
			return response{Children: children}, nil
		}, "asked again about the same world, Sync answers otherwise: children."},
		"a counter in memory": {func(*Greeting, request) (response, error) {
			calls++
			return response{Status: map[string]any{"count": calls % 50}}, nil
		}, "Sync answers otherwise: status.count goes from"},
		"an error that changes": {func(*Greeting, request) (response, error) {
			calls++
			return response{}, operator.Stall("Odd", "call %d", calls)
		}, "asked again about the same world, Sync's error is"},
		"a change of the parent given": {func(_ *Greeting, r request) (response, error) {
			r.Parent.SetLabels(map[string]string{"seen": "yes"})
			return response{}, nil
		}, "Sync changes what it was given: parent.metadata.labels goes from nothing"},
		"a flip-flop in the status": {func(g *Greeting, _ request) (response, error) {
			return response{Status: map[string]any{"count": 1 - g.Status.N}}, nil
		}, "unstable: after 16 rounds status.count goes from"},
		"a flip-flop in a child": {func(_ *Greeting, r request) (response, error) {
			mood := "kind"
			if old := operator.Get[corev1.ConfigMap](r.Children, "x"); old != nil && old.Labels["l"] == "kind" {
				mood = "gruff"
			}
			child := configMap("x", nil)
			child.Labels = map[string]string{"l": mood}
			return response{Children: []operator.Object{child}}, nil
		}, `unstable: after 16 rounds ConfigMap default/x: metadata.labels.l goes from`},
		"a child that is there or not": {func(_ *Greeting, r request) (response, error) {
			if operator.Get[corev1.ConfigMap](r.Children, "x") != nil {
				return response{}, nil
			}
			return response{Children: []operator.Object{configMap("x", nil)}}, nil
		}, "unstable: after 16 rounds ConfigMap default/x is"},
		"children that its own rule releases": {func(_ *Greeting, r request) (response, error) {
			name := "s"
			for operator.IsTaken[corev1.Secret](r, name) {
				name += "s"
			}
			return response{Children: []operator.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}}}, nil
		}, "unstable: after 16 rounds Secret default/ss"},
		"a field that the CRD does not know": {func(*Greeting, request) (response, error) {
			return response{Status: map[string]any{"m": 1}}, nil
		}, "the CRD does not know [status.m]"},
		"a status that the CRD refuses": {func(*Greeting, request) (response, error) {
			return response{Status: map[string]any{"count": 100}}, nil
		}, "count is small"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			op := greeting(tt.given)
			f, err := parseFixture(op, []byte(plain))
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.answer(op)
			if tt.want == "" {
				if err != nil {
					t.Errorf("got %v", err)
				}
				return
			}
			if law, ok := errors.AsType[*LawError](err); !ok || !strings.Contains(law.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestFixturesThatCannotBe(t *testing.T) {
	tests := map[string]struct{ given, want string }{
		"no parent":                    {"x", "no section parent.yaml"},
		"two parents":                  {"-- parent.yaml --\na: 1\n---\nb: 2\n", "it has 2 objects"},
		"a misspelt section":           {"-- parents.yaml --\n", "there is no such section"},
		"a section twice":              {"-- parent.yaml --\nspec: {}\n-- parent.yaml --\n", "is there twice"},
		"a key twice":                  {"-- parent.yaml --\nspec: {}\nspec: {}\n", "already set"},
		"a value that the CRD refuses": {"-- parent.yaml --\nspec: {tone: shrill}\n", "spec.tone"},
		"a field that it lacks":        {"-- parent.yaml --\nspec: {tune: x}\n", "does not know these fields of the parent: [spec.tune]"},
		"another kind":                 {"-- parent.yaml --\napiVersion: v1\nkind: Pod\n", "looks after example.com/v1, Kind=Greeting"},
		"a child of no declared kind":  {"-- parent.yaml --\nspec: {}\n-- children.yaml --\napiVersion: v1\nkind: Pod\n", "not a declared child kind"},
		"a related of no kind":         {"-- parent.yaml --\nspec: {}\n-- related.yaml --\napiVersion: v1\nkind: Pod\n", "not a declared read kind"},
		"no kind":                      {"-- parent.yaml --\nspec: {}\n-- children.yaml --\nmetadata: {}\n", "has no apiVersion or no kind"},
		"a time that is none":          {"-- now --\nnoon\n", "cannot parse"},
		"a taken thing of no kind":     {"-- taken --\nPod x\n", "not a declared child kind"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := parseFixture(greeting(nil), []byte(tt.given))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// saver saves first and acts when it sees it saved; it sets a create-only field.
func saver(g *Greeting, r request) (response, error) {
	old := operator.Get[corev1.ConfigMap](r.Children, "old")
	if g.Status.N == 0 {
		return response{Status: map[string]any{"count": 1}, Children: []operator.Object{operator.Keep(old)}}, nil
	}
	child := operator.Object(configMap("old", map[string]string{"mood": g.Spec.Tone, "to": g.Spec.To[0]}))
	if old.Data["mood"] != g.Spec.Tone {
		child = operator.SetIfUnchanged(child, old, "data.mood")
	}
	return response{Status: map[string]any{"count": 1}, Children: []operator.Object{child}, Until: r.Now.Truncate(24 * time.Hour).Add(48 * time.Hour)}, nil
}

func TestUpdateWritesWhatCompareAccepts(t *testing.T) {
	op := greeting(func(g *Greeting, r request) (response, error) {
		answer, err := saver(g, r)
		answer.Until = time.Time{}
		return answer, err
	})
	f, err := parseFixture(op, []byte(plain+"-- want/status.yaml --\ncount: 7\n"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.answer(op)
	if err != nil {
		t.Fatal(err)
	}
	if diff := f.compare(got); !strings.Contains(diff, "count: 7") {
		t.Errorf("a wrong expectation is not shown: %q", diff)
	}
	written := f.format(got)
	const want = plain + `-- want/status.yaml --
count: 1
-- want/children.yaml --
# kept
apiVersion: v1
kind: ConfigMap
metadata:
  name: old
  namespace: default
-- want/settled/children.yaml --
apiVersion: v1
data:
  mood: friendly
  to: a
kind: ConfigMap
metadata:
  name: old
  namespace: default
`
	if diff := cmp.Diff(want, string(written)); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
	again, err := parseFixture(op, written)
	if err != nil {
		t.Fatal(err)
	}
	if diff := again.compare(got); diff != "" {
		t.Errorf("what was written is not accepted:\n%s", diff)
	}
}

func TestSettleFolds(t *testing.T) {
	op := greeting(saver)
	f, err := parseFixture(op, []byte(plain))
	if err != nil {
		t.Fatal(err)
	}
	before := f.world.clone()
	s, err := Settle(op, f.world)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, f.world); diff != "" {
		t.Errorf("the world given changed:\n%s", diff)
	}
	data, _, _ := unstructured.NestedStringMap(s.World.Children[0].Object, "data")
	if diff := cmp.Diff(map[string]string{"mood": "friendly", "to": "a"}, data); diff != "" {
		t.Errorf("the child (-want +got):\n%s", diff)
	}
	if n, _, _ := unstructured.NestedInt64(s.World.Parent.Object, "status", "count"); n != 1 || s.Rounds != 3 {
		t.Errorf("status.n is %d after %d rounds, want 1 after 3", n, s.Rounds)
	}
}

func TestMerge(t *testing.T) {
	type object = map[string]any
	tests := map[string]struct{ base, want, merged object }{
		"fields of others stay":    {object{"a": "1"}, object{"b": "2"}, object{"a": "1", "b": "2"}},
		"what is wanted wins":      {object{"a": "1"}, object{"a": "2"}, object{"a": "2"}},
		"objects merge":            {object{"o": object{"a": "1"}}, object{"o": object{"b": "2"}}, object{"o": object{"a": "1", "b": "2"}}},
		"plain lists are replaced": {object{"l": []any{"a"}}, object{"l": []any{"b"}}, object{"l": []any{"b"}}},
		"named entries merge, others stay": {
			object{"l": []any{object{"name": "x", "a": "1"}, object{"name": "y"}}},
			object{"l": []any{object{"name": "x", "b": "2"}}},
			object{"l": []any{object{"name": "x", "a": "1", "b": "2"}, object{"name": "y"}}}},
		"in an owned list no others stay": {
			object{"owned": []any{object{"name": "x", "a": "1"}, object{"name": "y"}}},
			object{"owned": []any{object{"name": "x"}}},
			object{"owned": []any{object{"name": "x", "a": "1"}}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := mergeObject(tt.base, tt.want, "", map[string]bool{"owned": true})
			if diff := cmp.Diff(tt.merged, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
