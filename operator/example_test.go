package operator_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/homeostat-dev/homeostat/operator"
)

// Greeting is the parent of the examples.
type Greeting struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              GreetingSpec `json:"spec,omitempty"`
}

// GreetingSpec says whom to greet.
type GreetingSpec struct {
	To []string `json:"to,omitempty"`
}

const greetingCRD = `
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
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

var configMaps = operator.Child{Kind: operator.KindOf[corev1.ConfigMap]("v1"), CreateOnly: []string{"data.mood"}}

// declare makes an operator of a Sync that makes ConfigMaps of Greetings.
func declare(sync func(*Greeting, operator.Request) (operator.Response, error)) *operator.Operator {
	return operator.Declare(operator.Declaration[Greeting]{
		Name: "greeting", Doc: "Greets.", CRD: []byte(greetingCRD), Children: []operator.Child{configMaps}, Sync: sync,
	})
}

// ask is what a driver does: it says what is observed and prints the answer.
func ask(o *operator.Operator, observed ...*unstructured.Unstructured) {
	d, err := o.Decide(operator.Request{
		Parent: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Greeting",
			"metadata": map[string]any{"name": "hello", "namespace": "default", "uid": "0a1b"},
			"spec":     map[string]any{"to": []any{"ada", "bob"}},
		}},
		Children: o.Objects("default", observed),
		Now:      time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	})
	if err != nil {
		f := operator.AsFailure(err)
		fmt.Printf("%s, %s\n", f.Kind, f.Error())
		return
	}
	if d.Status != nil {
		fmt.Println("status", d.Status)
	}
	for _, c := range d.Children {
		fmt.Println(c.Ref(), "kept:", c.Keep, "sets:", c.Set)
	}
}

func observedConfigMap(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name, "namespace": "default", "resourceVersion": "7"},
		"data":     map[string]any{"mood": "gruff"},
	}}
}

// An operator is declared once; what it answers depends on the request only.
func ExampleDeclare() {
	o := declare(func(g *Greeting, r operator.Request) (operator.Response, error) {
		var children []operator.Object
		for _, to := range g.Spec.To {
			children = append(children, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: g.Name + "-" + to},
				Data:       map[string]string{"text": "Hello, " + to},
			})
		}
		made := operator.List[corev1.ConfigMap](r.Children)
		return operator.Response{Status: map[string]any{"made": len(made)}, Children: children}, nil
	})
	fmt.Println("valid:", o.Validate() == nil)
	ask(o)
	ask(o, observedConfigMap("hello-ada"), observedConfigMap("hello-bob"))
	// Output:
	// valid: true
	// status map[made:0]
	// ConfigMap default/hello-ada kept: false sets: []
	// ConfigMap default/hello-bob kept: false sets: []
	// status map[made:2]
	// ConfigMap default/hello-ada kept: false sets: []
	// ConfigMap default/hello-bob kept: false sets: []
}

// The same parent and key always give the same name, so that asking twice never
// makes two objects.
func ExampleName() {
	fmt.Println(operator.Name("switch-", "0a1b", "first"))
	fmt.Println(operator.Name("switch-", "0a1b", "first"))
	fmt.Println(operator.Name("switch-", "0a1b", "second"))
	// Output:
	// switch-4yxa0xqbab
	// switch-4yxa0xqbab
	// switch-n58095427p
}

// What is observed and not listed is deleted; Keep lists it as it is.
func ExampleKeep() {
	o := declare(func(_ *Greeting, r operator.Request) (operator.Response, error) {
		var children []operator.Object
		for _, old := range operator.List[corev1.ConfigMap](r.Children) {
			children = append(children, operator.Keep(old))
		}
		return operator.Response{Children: children}, nil
	})
	ask(o, observedConfigMap("history-1"), observedConfigMap("history-2"))
	// Output:
	// ConfigMap default/history-1 kept: true sets: []
	// ConfigMap default/history-2 kept: true sets: []
}

// A create-only field belongs to others once the child is there. Sync may still
// write it, unless somebody has changed the object since it was observed.
func ExampleSetIfUnchanged() {
	o := declare(func(g *Greeting, r operator.Request) (operator.Response, error) {
		child := operator.Object(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: g.Name},
			Data:       map[string]string{"mood": "kind"},
		})
		if old := operator.Get[corev1.ConfigMap](r.Children, g.Name); old != nil && old.Data["mood"] == "gruff" {
			child = operator.SetIfUnchanged(child, old, "data.mood")
		}
		return operator.Response{Children: []operator.Object{child}}, nil
	})
	ask(o)
	ask(o, observedConfigMap("hello"))
	// Output:
	// ConfigMap default/hello kept: false sets: []
	// ConfigMap default/hello kept: false sets: [data.mood]
}

// A failure says what must happen before asking again can help. Children stay
// as they are meanwhile.
func ExampleStall() {
	ask(declare(func(*Greeting, operator.Request) (operator.Response, error) {
		return operator.Response{}, operator.Stall("NoPaper", "put paper into %s", "the printer")
	}))
	ask(declare(func(g *Greeting, _ operator.Request) (operator.Response, error) {
		return operator.Response{}, operator.Invalid("spec.to[1]", "%q is not a person", g.Spec.To[1])
	}))
	ask(declare(func(*Greeting, operator.Request) (operator.Response, error) {
		return operator.Response{}, operator.Retry(time.Minute, "Busy", "the printer prints")
	}))
	ask(declare(func(*Greeting, operator.Request) (operator.Response, error) {
		return operator.Response{}, fmt.Errorf("any other error")
	}))
	// Output:
	// Stalled, NoPaper: put paper into the printer
	// Invalid, InvalidField: spec.to[1]: "bob" is not a person
	// Retry, Busy: the printer prints
	// Retry, SyncFailed: any other error
}
