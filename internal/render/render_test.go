package render_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/homeostat-dev/homeostat/internal/render"
	"github.com/homeostat-dev/homeostat/operator"
)

// counter makes a ConfigMap for a Pod-shaped parent and counts what it sees.
func counter() *operator.Operator {
	configMaps := operator.KindOf[corev1.ConfigMap]("v1")
	secrets := operator.KindOf[corev1.Secret]("v1")
	return &operator.Operator{
		Name: "counter", Parent: operator.KindOf[corev1.Pod]("v1"),
		Children: []operator.Child{{Kind: configMaps}},
		Reads: []operator.Read{{Kind: secrets, Select: func(*unstructured.Unstructured) operator.Selector {
			return operator.Selector{Labels: map[string]string{"for": "me"}}
		}}},
		Sync: func(r operator.Request) (operator.Response, error) {
			return operator.Response{
				Status:   map[string]any{"children": int64(len(r.Children.Items())), "related": int64(len(r.Related.Items()))},
				Children: []operator.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "made"}}},
			}, nil
		},
	}
}

func object(kind, name string, labels map[string]string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("v1")
	u.SetKind(kind)
	u.SetName(name)
	u.SetLabels(labels)
	return u
}

func TestRenderShowsWhatTheEngineWouldShow(t *testing.T) {
	foreign := object("ConfigMap", "foreign", nil)
	foreign.SetOwnerReferences([]metav1.OwnerReference{{Kind: "Pod", Name: "other", UID: "other", Controller: new(true)}})
	in := render.Input{
		Parent:    object("Pod", "parent", nil),
		Namespace: "shop",
		Children:  []*unstructured.Unstructured{object("ConfigMap", "made", nil), foreign},
		Related:   []*unstructured.Unstructured{object("Secret", "mine", map[string]string{"for": "me"}), object("Secret", "yours", nil)},
	}
	out, err := render.Render(counter(), in)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"children": int64(1), "related": int64(1)}
	if diff := cmp.Diff(want, out.Parent.Object["status"]); diff != "" {
		t.Errorf("a child of another parent or a related object that nothing selects was shown (-want +got)\n%s", diff)
	}
	child := out.Children[0]
	if !metav1.IsControlledBy(child, out.Parent) || child.GetNamespace() != "shop" {
		t.Errorf("the child is not as the engine would apply it: %v", child.Object)
	}
	if in.Parent.GetNamespace() != "" || len(in.Children[0].GetOwnerReferences()) != 0 {
		t.Error("the input was changed")
	}
}

func TestUID(t *testing.T) {
	a := object("Pod", "a", nil)
	if render.UID(a) != render.UID(a.DeepCopy()) {
		t.Error("the same object has two UIDs")
	}
	if render.UID(a) == render.UID(object("Pod", "b", nil)) || render.UID(a) == render.UID(object("Secret", "a", nil)) {
		t.Error("two objects have the same UID")
	}
}
