package operator

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestValidate(t *testing.T) {
	tests := map[string]struct {
		given func(*Operator)
		want  string
	}{
		"a sound declaration":              {func(*Operator) {}, ""},
		"no name":                          {func(o *Operator) { o.Name = "" }, `name ""`},
		"a name with capitals":             {func(o *Operator) { o.Name = "Widget" }, `name "Widget"`},
		"a long name":                      {func(o *Operator) { o.Name = strings.Repeat("a", 41) }, "has 41 characters"},
		"no Sync":                          {func(o *Operator) { o.Sync = nil }, "Sync is not set"},
		"no parent":                        {func(o *Operator) { o.Parent = Kind{} }, "parent kind is not known"},
		"a child kind twice":               {func(o *Operator) { o.Children = append(o.Children, o.Children[0]) }, "declared twice"},
		"its own kind as a child":          {func(o *Operator) { o.Children = []Child{{Kind: o.Parent}} }, "the parent's own"},
		"a path with a list position":      {func(o *Operator) { o.Children[0].OwnedLists = []string{"a[0]"} }, `path "a[0]"`},
		"an empty path":                    {func(o *Operator) { o.Children[0].CreateOnly = []string{""} }, `path ""`},
		"an update method that is unknown": {func(o *Operator) { o.Children[0].Update = "Replace" }, `no update method "Replace"`},
		"a cluster-scoped child": {func(o *Operator) {
			k := KindOf[rbacv1.ClusterRole]("rbac.authorization.k8s.io/v1")
			k.ClusterScoped = true
			o.Children = []Child{{Kind: k}}
		}, "cluster-scoped and its parent is not"},
		"a read without Select":          {func(o *Operator) { o.Reads = []Read{{Kind: KindOf[corev1.Pod]("v1")}} }, "has no Select"},
		"writing the parent's status":    {func(o *Operator) { o.ParentSets = []string{"status.phase"} }, "not a field of the parent's spec"},
		"writing the parent's spec":      {func(o *Operator) { o.ParentSets = []string{"spec"} }, "not a field of the parent's spec"},
		"a parent's path with a mistake": {func(o *Operator) { o.ParentSets = []string{"spec..a"} }, `path "spec..a"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := widget(func(*Widget, Request) (Response, error) { return Response{}, nil })
			tt.given(o)
			err := o.Validate()
			if tt.want == "" && err != nil {
				t.Errorf("got error %v", err)
			}
			if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestSelectorMatches(t *testing.T) {
	labels := map[string]string{"app": "a", "tier": "b"}
	tests := map[string]struct {
		given Selector
		want  bool
	}{
		"the zero selector picks nothing":  {Selector{}, false},
		"a namespace alone picks nothing":  {Selector{Namespace: "*"}, false},
		"all labels there":                 {Selector{Labels: labels}, true},
		"some labels there":                {Selector{Labels: map[string]string{"app": "a"}}, true},
		"a label with another value":       {Selector{Labels: map[string]string{"app": "x"}}, false},
		"a label that is not there":        {Selector{Labels: map[string]string{"app": "a", "no": ""}}, false},
		"the name":                         {Selector{Names: []string{"x", "pod"}}, true},
		"another name":                     {Selector{Names: []string{"x"}}, false},
		"the name and another label":       {Selector{Names: []string{"pod"}, Labels: map[string]string{"app": "x"}}, false},
		"another namespace":                {Selector{Namespace: "other", Labels: labels}, false},
		"the object's namespace, named":    {Selector{Namespace: "ns", Labels: labels}, true},
		"all namespaces":                   {Selector{Namespace: "*", Names: []string{"pod"}}, true},
		"an empty list of names, a label":  {Selector{Names: []string{}, Labels: labels}, true},
		"an empty list of names, no label": {Selector{Names: []string{}}, false},
	}
	pod := &unstructured.Unstructured{}
	pod.SetName("pod")
	pod.SetNamespace("ns")
	pod.SetLabels(labels)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tt.given.Matches("ns", pod); got != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}
	if (Selector{Labels: labels}).Matches("parents", pod) {
		t.Error("an empty namespace picks in a namespace that is not the parent's")
	}
}

func TestSelectorsThatPanicAreErrors(t *testing.T) {
	bad := func(*unstructured.Unstructured) Selector { panic("a defect") }
	parent := &unstructured.Unstructured{}
	if _, err := (Child{Adopt: bad}).Selector(parent); err == nil || err.Error() != "the selector panicked: a defect" {
		t.Errorf("got %v", err)
	}
	if _, err := (Read{Select: bad}).Selector(parent); err == nil {
		t.Error("no error")
	}
	if s, err := (Child{}).Selector(parent); err != nil || !s.Empty() {
		t.Errorf("without Adopt got %v, %v", s, err)
	}
}

func TestParseCRD(t *testing.T) {
	type result struct {
		Kind schema.GroupVersionKind
		GVR  string
		Err  string
	}
	tests := map[string]struct {
		given string
		want  result
	}{
		"the stored version, where the package has none's name": {widgetCRD,
			result{schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}, "widgets", ""}},
		"another kind":     {strings.Replace(widgetCRD, "kind: Widget", "kind: Gadget", 1), result{Err: "is of kind Gadget, the Go type is Widget"}},
		"a misspelt field": {strings.Replace(widgetCRD, "scope:", "scpe:", 1), result{Err: `unknown field`}},
		"not YAML":         {"{", result{Err: "CRD: "}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			crd, kind, err := parseCRD([]byte(tt.given), reflect.TypeFor[Widget]())
			got := result{Kind: kind.GroupVersionKind}
			if err != nil {
				got.Err = err.Error()
				if tt.want.Err != "" && strings.Contains(got.Err, tt.want.Err) {
					got.Err = tt.want.Err
				}
			} else {
				got.GVR = kind.GVR().Resource
				if crd.Name != "widgets.example.com" {
					t.Errorf("the definition is %s", crd.Name)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestABadCRDIsReportedByValidate(t *testing.T) {
	o := Declare(Declaration[Widget]{Name: "w", CRD: []byte("{"), Sync: func(*Widget, Request) (Response, error) { return Response{}, nil }})
	if err := o.Validate(); err == nil || strings.Contains(err.Error(), "parent kind is not known") {
		t.Errorf("got %v, want the CRD's error alone", err)
	}
}

func TestUndeclaredTypesPanic(t *testing.T) {
	o := widget(func(_ *Widget, r Request) (Response, error) {
		List[corev1.Secret](r.Related)
		return Response{}, nil
	})
	_, err := o.Decide(widgetRequest(o))
	if err == nil || !strings.Contains(err.Error(), "v1.Secret is not among the operator's declared") {
		t.Errorf("got %v", err)
	}
}
