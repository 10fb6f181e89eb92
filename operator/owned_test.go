package operator

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// raw is a type with a field that marshals itself, as many custom resources have.
type raw struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Config            runtime.RawExtension `json:"config,omitempty"`
}

func (r *raw) DeepCopyObject() runtime.Object { c := *r; return &c }

func TestOwnedFields(t *testing.T) {
	pod := func(spec corev1.PodSpec) Object { return &corev1.Pod{Spec: spec} }
	tests := map[string]struct {
		given Object
		want  map[string]any
	}{
		"an empty object owns nothing": {&corev1.Pod{}, map[string]any{}},
		"a status is never owned": {
			&corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}}, map[string]any{}},
		"a null creation time is not owned, a name is": {
			&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
			map[string]any{"metadata": map[string]any{"name": "a"}}},
		"empty structs by value are not owned, at any depth": {
			pod(corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}),
			map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "c"}}}}},
		"an empty struct behind a pointer was set on purpose": {
			pod(corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{}, Volumes: []corev1.Volume{
				{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}}),
			map[string]any{"spec": map[string]any{"containers": nothing, "securityContext": map[string]any{},
				"volumes": []any{map[string]any{"name": "v", "emptyDir": map[string]any{}}}}}},
		"a zero behind a pointer was set on purpose": {
			pod(corev1.PodSpec{TerminationGracePeriodSeconds: new(int64(0))}),
			map[string]any{"spec": map[string]any{"terminationGracePeriodSeconds": int64(0)}}},
		"quantities are texts": {
			&corev1.ConfigMap{Data: map[string]string{}, ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"q": resource.NewQuantity(1, "").String()}}},
			map[string]any{"metadata": map[string]any{"labels": map[string]any{"q": "1"}}}},
		"what marshals itself is taken as it is": {
			&raw{Config: runtime.RawExtension{Raw: []byte(`{}`)}},
			map[string]any{"config": map[string]any{}}},
		"an unstructured object is taken as it is, nulls apart": {
			&unstructured.Unstructured{Object: map[string]any{"a": nil, "b": "", "c": map[string]any{}, "status": map[string]any{"x": nil}, "l": []any{map[string]any{"n": nil}}}},
			map[string]any{"b": "", "c": map[string]any{}, "status": map[string]any{}, "l": []any{map[string]any{}}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := ownedFields(tt.given)
			if err != nil {
				t.Fatal(err)
			}
			want := runtime.DeepCopyJSON(withoutNothing(tt.want))
			if diff := cmp.Diff(want, got.Object); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// nothing marks a required list that is null in Go and therefore not owned.
var nothing any

func withoutNothing(m map[string]any) map[string]any {
	dropNulls(m)
	return m
}

func TestOwnedFieldsLeavesUnstructuredAlone(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{"a": nil, "l": []any{map[string]any{"n": nil}}}}
	before := u.DeepCopy()
	if _, err := ownedFields(u); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before.Object, u.Object); diff != "" {
		t.Errorf("the author's object changed (-before +after):\n%s", diff)
	}
}

func TestPlural(t *testing.T) {
	tests := map[string]struct{ given, want string }{
		"most":             {"Deployment", "deployments"},
		"after a hiss":     {"Ingress", "ingresses"},
		"after ch":         {"Switch", "switches"},
		"y after a letter": {"NetworkPolicy", "networkpolicies"},
		"y after a vowel":  {"Gateway", "gateways"},
		"already plural":   {"Endpoints", "endpoints"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			k := Kind{}
			k.Kind = tt.given
			if got := k.GVR().Resource; got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestName(t *testing.T) {
	long := "a-very-long-prefix-that-does-not-fit-into-the-limit-of-a-label-value-"
	if got := Name(long, "uid", "key"); len(got) > 63 || !strings.HasPrefix(got, "a-very-long-prefix") {
		t.Errorf("%s has %d characters; a label takes 63", got, len(got))
	}
	if Name("a-", "uid", "key") != Name("a-", "uid", "key") || Name("a-", "uid", "key") == Name("a-", "uid2", "key") ||
		Name("a-", "uid", "key") == Name("a-", "uid", "key2") || Name("a-", "ui", "dkey") == Name("a-", "uid", "key") {
		t.Error("a name must depend on the UID and the key, and on nothing else")
	}
}
