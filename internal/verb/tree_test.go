package verb

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	fakediscovery "k8s.io/client-go/discovery/fake"
	fakedynamic "k8s.io/client-go/dynamic/fake"
	fakemetadata "k8s.io/client-go/metadata/fake"
	kubetesting "k8s.io/client-go/testing"
)

// born is when all objects of the tests were made.
var born = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func thing(apiVersion, kind, name string, owners ...string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace("shop")
	o.SetName(name)
	o.SetUID(types.UID(name))
	o.SetCreationTimestamp(metav1.NewTime(born))
	var refs []metav1.OwnerReference
	for _, uid := range owners {
		refs = append(refs, metav1.OwnerReference{APIVersion: "v1", Kind: "X", Name: uid, UID: types.UID(uid)})
	}
	o.SetOwnerReferences(refs)
	return o
}

func phase(o *unstructured.Unstructured, phase string) *unstructured.Unstructured {
	o.Object["status"] = map[string]any{"phase": phase}
	return o
}

// kindsOf is what a server with these objects serves.
func kindsOf(objects []*unstructured.Unstructured) []*metav1.APIResourceList {
	lists := map[string]*metav1.APIResourceList{}
	var out []*metav1.APIResourceList
	seen := map[schema.GroupVersionKind]bool{}
	for _, o := range objects {
		if seen[o.GroupVersionKind()] {
			continue
		}
		seen[o.GroupVersionKind()] = true
		list := lists[o.GetAPIVersion()]
		if list == nil {
			list = &metav1.APIResourceList{GroupVersion: o.GetAPIVersion()}
			lists[o.GetAPIVersion()] = list
			out = append(out, list)
		}
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: strings.ToLower(o.GetKind()) + "s", Kind: o.GetKind(), Namespaced: true, Verbs: metav1.Verbs{"get", "list"},
		})
	}
	return out
}

// preferred is a discovery that prefers all it has; the fake one has no answer.
type preferred struct {
	*fakediscovery.FakeDiscovery
	err error
}

func (p preferred) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	return p.Resources, p.err
}

func planted(objects ...*unstructured.Unstructured) (*forest, *fakemetadata.FakeMetadataClient, *fakedynamic.FakeDynamicClient) {
	scheme := fakemetadata.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		panic(err)
	}
	kinds := map[schema.GroupVersionResource]string{}
	var full, metas []runtime.Object
	for _, o := range objects {
		gvk := o.GroupVersionKind()
		kinds[gvk.GroupVersion().WithResource(strings.ToLower(gvk.Kind)+"s")] = gvk.Kind + "List"
		full = append(full, o)
		m := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: o.GetAPIVersion(), Kind: o.GetKind()}}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, m); err != nil {
			panic(err)
		}
		metas = append(metas, m)
	}
	m := fakemetadata.NewSimpleMetadataClient(scheme, metas...)
	d := fakedynamic.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, full...)
	return &forest{
		discovery: preferred{FakeDiscovery: &fakediscovery.FakeDiscovery{Fake: &kubetesting.Fake{Resources: kindsOf(objects)}}},
		metadata:  m, dynamic: d, owned: map[types.UID][]member{},
	}, m, d
}

func TestTree(t *testing.T) {
	web := thing("example.com/v1", "Web", "web")
	refuse := func(kind string, err error) func(*forest, *fakemetadata.FakeMetadataClient, *fakedynamic.FakeDynamicClient) {
		return func(_ *forest, m *fakemetadata.FakeMetadataClient, _ *fakedynamic.FakeDynamicClient) {
			m.PrependReactor("list", kind, func(kubetesting.Action) (bool, runtime.Object, error) { return true, nil, err })
		}
	}
	const pods = "Web/web Current\n└─Pod/p InProgress\n"
	tests := map[string]struct {
		given []*unstructured.Unstructured
		edit  func(*forest, *fakemetadata.FakeMetadataClient, *fakedynamic.FakeDynamicClient)
		want  string
		notes []string
	}{
		"nothing belongs to it": {given: []*unstructured.Unstructured{web, thing("v1", "ConfigMap", "other")}, want: "Web/web Current\n"},
		"children of children, by kind and name": {given: []*unstructured.Unstructured{web,
			thing("apps/v1", "Deployment", "d", "web"), thing("v1", "Pod", "p2", "d"), phase(thing("v1", "Pod", "p1", "d"), "Failed"), thing("v1", "ConfigMap", "c", "web")},
			want: "Web/web Current\n├─ConfigMap/c Current\n└─Deployment/d InProgress\n  ├─Pod/p1 Failed\n  └─Pod/p2 InProgress\n"},
		"owners in a circle": {given: []*unstructured.Unstructured{thing("example.com/v1", "Web", "web", "c"), thing("v1", "ConfigMap", "c", "web")},
			want: "Web/web Current\n└─ConfigMap/c Current\n"},
		"an object with two owners, and one of two groups, is there once": {given: []*unstructured.Unstructured{web, thing("v1", "ConfigMap", "a", "web"), thing("v1", "ConfigMap", "b", "web", "a"),
			thing("other/v1", "ConfigMap", "a", "web")},
			want: "Web/web Current\n├─ConfigMap/a Current\n└─ConfigMap/b Current\n"},
		"a kind that may not be listed": {given: []*unstructured.Unstructured{web, thing("v1", "Pod", "p", "web"), thing("v1", "Secret", "s", "web")},
			edit: refuse("secrets", apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))),
			want: pods, notes: []string{"not seen, because you may not list them: secrets"}},
		"a kind that has gone": {given: []*unstructured.Unstructured{web, thing("v1", "Pod", "p", "web"), thing("x/v1", "Gone", "g", "web")},
			edit: refuse("gones", apierrors.NewNotFound(schema.GroupResource{}, "")), want: pods},
		"a kind whose server is down": {given: []*unstructured.Unstructured{web, thing("v1", "Pod", "p", "web"), thing("x/v1", "Gone", "g", "web")},
			edit: refuse("gones", apierrors.NewServiceUnavailable("down")), want: pods, notes: []string{"not seen, because the server did not answer: gones.x"}},
		"a group that cannot be discovered": {given: []*unstructured.Unstructured{web, thing("v1", "Pod", "p", "web")},
			edit: func(f *forest, _ *fakemetadata.FakeMetadataClient, _ *fakedynamic.FakeDynamicClient) {
				d := f.discovery.(preferred)
				d.err = &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "x", Version: "v1"}: errors.New("down")}}
				f.discovery = d
			}, want: pods, notes: []string{"not seen, because the server did not answer: x/v1"}},
		"a child that goes meanwhile": {given: []*unstructured.Unstructured{web, thing("v1", "Pod", "p", "web")},
			edit: func(_ *forest, _ *fakemetadata.FakeMetadataClient, d *fakedynamic.FakeDynamicClient) {
				d.PrependReactor("get", "pods", func(kubetesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewNotFound(schema.GroupResource{}, "p")
				})
			}, want: "Web/web Current\n└─Pod/p NotFound\n"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f, m, d := planted(tc.given...)
			if tc.edit != nil {
				tc.edit(f, m, d)
			}
			root, err := f.grow(t.Context(), tc.given[0])
			if err != nil {
				t.Fatal(err)
			}
			var table strings.Builder
			if err := draw(&table, root, born.Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, drawn(table.String())); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(tc.notes, f.notes()); diff != "" {
				t.Errorf("notes (-want +got)\n%s", diff)
			}
		})
	}
}

// drawn is the columns NAME and READY of a table, and complains where there is
// no age.
func drawn(table string) string {
	row := regexp.MustCompile(`^shop {7}(.*/\S+) +(\w+) .* (\w+)$`)
	var out strings.Builder
	for line := range strings.Lines(table) {
		line = strings.TrimSuffix(line, "\n")
		columns := row.FindStringSubmatch(line)
		switch {
		case strings.HasPrefix(line, "NAMESPACE"):
		case columns == nil || columns[3] != "60m":
			out.WriteString("odd: " + line + "\n")
		default:
			out.WriteString(columns[1] + " " + columns[2] + "\n")
		}
	}
	return out.String()
}
