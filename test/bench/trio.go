package main

import (
	_ "embed"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/homeostat-dev/homeostat/operator"
)

//go:embed trio.yaml
var crd []byte

// Trio is the parent of the benchmark: three ConfigMaps with one value.
type Trio struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Value string `json:"value"`
	} `json:"spec"`
	Status struct {
		Count int `json:"count"`
	} `json:"status,omitempty"`
}

const childrenPerParent = 3

var trioOperator = operator.Declare(operator.Declaration[Trio]{
	Name:     "bench-trio",
	Doc:      "Makes three ConfigMaps for each Trio, to measure the engine.",
	CRD:      crd,
	Children: []operator.Child{{Kind: operator.KindOf[corev1.ConfigMap]("v1")}},
	Sync: func(t *Trio, r operator.Request) (operator.Response, error) {
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
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", t.Name, i), Labels: map[string]string{"trio": t.Name}},
		Data:       map[string]string{"value": t.Spec.Value, "index": fmt.Sprint(i)},
	}
}
