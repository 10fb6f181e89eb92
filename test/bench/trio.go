package main

import (
	_ "embed"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/homeostat-dev/homeostat/operator"
)

//go:embed trio.yaml
var crd []byte

var group = schema.GroupVersion{Group: "bench.homeostat.dev", Version: "v1"}

// Trio is the parent of the benchmark: three ConfigMaps with one value.
type Trio struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Value string `json:"value"`
	} `json:"spec"`
	Status TrioStatus `json:"status,omitempty"`
}

// TrioStatus says how many ConfigMaps there are.
type TrioStatus struct {
	Count              int                `json:"count"`
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// DeepCopyObject implements runtime.Object, for controller-runtime.
func (t *Trio) DeepCopyObject() runtime.Object { return t.copy() }

func (t *Trio) copy() *Trio {
	out := *t
	t.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	out.Status.Conditions = slices.Clone(t.Status.Conditions)
	return &out
}

// TrioList is a list of Trios.
type TrioList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Trio `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *TrioList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = nil
	for i := range l.Items {
		out.Items = append(out.Items, *l.Items[i].copy())
	}
	return &out
}

const childrenPerParent = 3

// The values of a spec that poison its parent.
const (
	panics  = "panics"  // the operator panics
	refused = "refused" // the API server refuses a child
)

var trioOperator = operator.Declare(operator.Declaration[Trio]{
	Name:     "bench-trio",
	Doc:      "Makes three ConfigMaps for each Trio, to measure the engine.",
	CRD:      crd,
	Children: []operator.Child{{Kind: operator.KindOf[corev1.ConfigMap]("v1")}},
	Sync: func(t *Trio, r operator.Request) (operator.Response, error) {
		if t.Spec.Value == panics {
			panic("poisoned")
		}
		var children []operator.Object
		for i := range childrenPerParent {
			children = append(children, child(t, i))
		}
		status := t.Status
		status.Count = len(operator.List[corev1.ConfigMap](r.Children))
		return operator.Response{Status: status, Children: children}, nil
	},
})

func child(t *Trio, i int) *corev1.ConfigMap {
	out := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: childName(t.Name, i), Labels: map[string]string{"trio": t.Name}},
		Data:       map[string]string{"value": t.Spec.Value, "index": fmt.Sprint(i)},
	}
	if t.Spec.Value == refused {
		out.Data["no/key"] = ""
	}
	return out
}

func childName(parent string, i int) string { return fmt.Sprintf("%s-%d", parent, i) }

func parentName(i int) string { return fmt.Sprintf("trio-%05d", i) }
