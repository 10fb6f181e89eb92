package operator

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

const widgetCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions:
  - {name: v1alpha1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`

// Widget is a parent for tests.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              widgetSpec `json:"spec,omitempty"`
}

type widgetSpec struct {
	Position string `json:"position,omitempty"`
	Other    string `json:"other,omitempty"`
}

// DeepCopyObject makes Widget an API object.
func (w *Widget) DeepCopyObject() runtime.Object { c := *w; return &c }

func widget(sync func(*Widget, Request) (Response, error)) *Operator {
	return Declare(Declaration[Widget]{
		Name: "widget", CRD: []byte(widgetCRD), Sync: sync,
		Children:   []Child{{Kind: KindOf[corev1.ConfigMap]("v1"), CreateOnly: []string{"data.a"}}},
		ParentSets: []string{"spec.position"},
	})
}

func widgetRequest(o *Operator, children ...*unstructured.Unstructured) Request {
	return Request{
		Parent: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Widget",
			"metadata": map[string]any{"name": "w", "namespace": "ns", "uid": "u"},
			"spec":     map[string]any{"position": "up", "other": ""},
		}},
		Children: o.Objects("ns", children),
		Now:      time.Date(2026, 1, 1, 0, 0, 0, 1234, time.FixedZone("", 3600)),
	}
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
}

func observedMap(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name, "namespace": "ns", "resourceVersion": "7", "uid": "c"}}}
}

func TestDecideRefuses(t *testing.T) {
	var none *corev1.ConfigMap
	inOther := configMap("a", nil)
	inOther.Namespace = "other"
	tests := map[string]struct {
		given []Object
		want  string
	}{
		"a child listed twice":              {[]Object{configMap("a", nil), configMap("a", nil)}, "DuplicateChild: Sync lists ConfigMap ns/a twice"},
		"a nil child":                       {[]Object{nil}, "BadChild: Sync listed a nil child"},
		"a nil pointer":                     {[]Object{none}, "BadChild: Sync listed a nil child"},
		"a nil child kept":                  {[]Object{Keep(none)}, "BadChild: Sync listed a nil child"},
		"a kind that is not declared":       {[]Object{&corev1.Secret{}}, "UndeclaredKind: Sync lists a v1.Secret"},
		"an unstructured undeclared kind":   {[]Object{&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret"}}}, "UndeclaredKind: Sync lists a Secret of v1"},
		"a child in another namespace":      {[]Object{inOther}, "BadChild: ConfigMap other/a is not in the namespace"},
		"a child without a name":            {[]Object{configMap("", nil)}, "BadChild: a ConfigMap without a name"},
		"keeping what is not there":         {[]Object{Keep(configMap("b", nil))}, "BadChild: Keep lists ConfigMap ns/b, which is not there"},
		"wrapping twice":                    {[]Object{Keep(Keep(configMap("a", nil)))}, "BadChild: Sync wrapped a twice"},
		"setting what is not declared":      {[]Object{SetIfUnchanged(configMap("a", nil), observedMap("a"), "data.b")}, "not among the declared CreateOnly"},
		"setting what the child lacks":      {[]Object{SetIfUnchanged(configMap("a", nil), observedMap("a"), "data.a")}, "the child does not set it"},
		"unstructured in another namespace": {[]Object{&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "x"}}}}, "not in the namespace"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := widget(func(*Widget, Request) (Response, error) { return Response{Children: tt.given}, nil })
			_, err := o.Decide(widgetRequest(o, observedMap("a")))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got error %v, want %q", err, tt.want)
			}
			if f := AsFailure(err); f.Kind != FailureStalled {
				t.Errorf("it counts as %s, want Stalled", f.Kind)
			}
		})
	}
}

func TestDecideTakesChildren(t *testing.T) {
	o := widget(func(*Widget, Request) (Response, error) {
		return Response{Children: []Object{
			configMap("c", map[string]string{"b": "2"}), Keep(configMap("a", nil)),
			SetIfUnchanged(configMap("b", map[string]string{"a": "1"}), observedMap("b"), "data.a"),
		}}, nil
	})
	d, err := o.Decide(widgetRequest(o, observedMap("a"), observedMap("b")))
	if err != nil {
		t.Fatal(err)
	}
	object := func(name string, data map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": name, "namespace": "ns"}, "data": data}}
	}
	want := []Desired{
		{Object: observedMap("a"), Keep: true},
		{Object: object("b", map[string]any{"a": "1"}), Set: []string{"data.a"}, SetVersion: "7"},
		{Object: object("c", map[string]any{"b": "2"})},
	}
	if diff := cmp.Diff(want, d.Children); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDecideParentSets(t *testing.T) {
	tests := map[string]struct {
		given func(*Widget) Object
		want  []FieldSet
		err   string
	}{
		"nothing is written without an answer": {given: func(*Widget) Object { return nil }},
		"what did not change is not written":   {given: func(w *Widget) Object { return w }},
		"a declared field is written": {
			given: func(w *Widget) Object { w.Spec.Position = "down"; return w },
			want:  []FieldSet{{Path: "spec.position", Value: "down"}}},
		"an emptied field is removed": {
			given: func(w *Widget) Object { w.Spec.Position = ""; return w },
			want:  []FieldSet{{Path: "spec.position"}}},
		"other fields are ignored": {given: func(w *Widget) Object { w.Spec.Other = "x"; w.Labels = map[string]string{"a": "b"}; return w }},
		"another parent is refused": {
			given: func(w *Widget) Object { w.UID = "other"; return w }, err: "BadParent"},
		"a nil parent is refused": {given: func(*Widget) Object { return (*Widget)(nil) }, err: "BadParent"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := widget(func(w *Widget, _ Request) (Response, error) { return Response{Parent: tt.given(w)}, nil })
			d, err := o.Decide(widgetRequest(o))
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("got error %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, d.Parent); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecideConfinesPanics(t *testing.T) {
	o := widget(func(*Widget, Request) (Response, error) { panic("a defect") })
	_, err := o.Decide(widgetRequest(o))
	p, ok := errors.AsType[*Panicked](err)
	if !ok || p.Value != "a defect" || !strings.Contains(p.Stack, "decide_test.go") {
		t.Errorf("got %#v", err)
	}
	want := &Failure{Kind: FailureStalled, Reason: ReasonPanicked, Message: "Sync panicked: a defect"}
	if diff := cmp.Diff(want, AsFailure(err)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDecideReportsAnUnreadableParent(t *testing.T) {
	o := widget(func(*Widget, Request) (Response, error) { return Response{}, nil })
	r := widgetRequest(o)
	r.Parent.Object["spec"] = "text"
	_, err := o.Decide(r)
	if f := AsFailure(err); f.Kind != FailureStalled || f.Reason != "UnreadableParent" {
		t.Errorf("got %+v", f)
	}
}

func TestDecideStatus(t *testing.T) {
	tests := map[string]struct {
		given any
		want  map[string]any
		fails bool
	}{
		"nil leaves it":                           {nil, nil, false},
		"the engine's fields are dropped":         {map[string]any{"a": 1, "conditions": []any{}, "observedGeneration": 3}, map[string]any{"a": int64(1)}, false},
		"nulls are dropped, empty lists stay":     {map[string]any{"a": nil, "b": []string{}}, map[string]any{"b": []any{}}, false},
		"a whole float is a whole number":         {map[string]any{"a": 27175270000.0}, map[string]any{"a": int64(27175270000)}, false},
		"a list is not a status":                  {[]string{"a"}, nil, true},
		"a nil pointer is not a status":           {(*widgetSpec)(nil), nil, true},
		"what cannot be JSON is an error of Sync": {map[string]any{"a": func() {}}, nil, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := widget(func(*Widget, Request) (Response, error) { return Response{Status: tt.given}, nil })
			d, err := o.Decide(widgetRequest(o))
			if (err != nil) != tt.fails {
				t.Fatalf("got error %v", err)
			}
			if diff := cmp.Diff(tt.want, d.Status); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecideGivesTimeToTheMicrosecond(t *testing.T) {
	var got time.Time
	o := widget(func(_ *Widget, r Request) (Response, error) { got = r.Now; return Response{}, nil })
	if _, err := o.Decide(widgetRequest(o)); err != nil {
		t.Fatal(err)
	}
	if want := time.Date(2025, 12, 31, 23, 0, 0, 1000, time.UTC); !got.Equal(want) || got.Location() != time.UTC {
		t.Errorf("Sync saw %v, want %v", got, want)
	}
}

func TestDecideCopies(t *testing.T) {
	o := widget(func(w *Widget, r Request) (Response, error) {
		w.Spec.Position = "changed"
		r.Parent.SetName("changed")
		r.Taken[0].Name = "changed"
		List[corev1.ConfigMap](r.Children)[0].Name = "changed"
		r.Children.Items()[0].SetName("changed")
		return Response{}, nil
	})
	r := widgetRequest(o, observedMap("a"))
	r.Taken = []Ref{{Name: "a"}}
	if _, err := o.Decide(r); err != nil {
		t.Fatal(err)
	}
	if r.Parent.GetName() != "w" || r.Taken[0].Name != "a" || r.Children.Items()[0].GetName() != "a" {
		t.Error("Sync changed the request")
	}
}
