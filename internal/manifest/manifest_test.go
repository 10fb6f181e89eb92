package manifest_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/homeostat-dev/homeostat/internal/manifest"
	"github.com/homeostat-dev/homeostat/operator"
)

func kind(group, version, name string) operator.Kind {
	return operator.Kind{GroupVersionKind: schema.GroupVersionKind{Group: group, Version: version, Kind: name}}
}

func widget() *operator.Operator {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = "widgets.example.com"
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}}},
	}
	return &operator.Operator{Name: "widget", Parent: kind("example.com", "v1", "Widget"), CRD: crd}
}

func with(change func(*operator.Operator)) []*operator.Operator {
	o := widget()
	change(o)
	return []*operator.Operator{o}
}

func rule(group, resources, verbs string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: strings.Fields(resources), Verbs: strings.Fields(verbs)}
}

func TestRules(t *testing.T) {
	events := rule("", "events", "create")
	status := rule("example.com", "widgets/status", "patch")
	finalizers := rule("example.com", "widgets/finalizers", "update")
	cases := map[string]struct {
		reason string
		given  []*operator.Operator
		want   []rbacv1.PolicyRule
	}{
		"a parent alone": {
			reason: "It is watched and read again, its status is applied; nothing has it as owner.",
			given:  []*operator.Operator{widget()},
			want:   []rbacv1.PolicyRule{events, rule("example.com", "widgets", "get list watch"), status},
		},
		"a parent that sets its own spec": {
			reason: "Declared fields of the parent are patched.",
			given:  with(func(o *operator.Operator) { o.ParentSets = []string{"spec.position"} }),
			want:   []rbacv1.PolicyRule{events, rule("example.com", "widgets", "get list watch patch"), status},
		},
		"a child": {
			reason: "An apply that creates takes create and patch; blockOwnerDeletion takes the parent's finalizers.",
			given:  with(func(o *operator.Operator) { o.Children = []operator.Child{{Kind: kind("apps", "v1", "Deployment")}} }),
			want: []rbacv1.PolicyRule{events, rule("apps", "deployments", "get list watch create patch delete"),
				rule("example.com", "widgets", "get list watch"), finalizers, status},
		},
		"a kind that is read": {
			reason: "What is only read is never got by name and never written.",
			given:  with(func(o *operator.Operator) { o.Reads = []operator.Read{{Kind: kind("", "v1", "Pod")}} }),
			want:   []rbacv1.PolicyRule{events, rule("", "pods", "list watch"), rule("example.com", "widgets", "get list watch"), status},
		},
		"a kind that is child of one and read by another": {
			reason: "Two operators in one process share an identity; a kind has one rule.",
			given: append(with(func(o *operator.Operator) { o.Children = []operator.Child{{Kind: kind("batch", "v1", "Job")}} }),
				with(func(o *operator.Operator) { o.Reads = []operator.Read{{Kind: kind("batch", "v1", "Job")}} })...),
			want: []rbacv1.PolicyRule{events, rule("batch", "jobs", "get list watch create patch delete"),
				rule("example.com", "widgets", "get list watch"), finalizers, status},
		},
		"children of one group": {
			reason: "Resources with the same verbs stand in one rule, sorted.",
			given: with(func(o *operator.Operator) {
				o.Children = []operator.Child{{Kind: kind("", "v1", "Service")}, {Kind: kind("", "v1", "ConfigMap")}}
			}),
			want: []rbacv1.PolicyRule{rule("", "configmaps services", "get list watch create patch delete"), events,
				rule("example.com", "widgets", "get list watch"), finalizers, status},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, manifest.Rules(c.given)); diff != "" {
				t.Errorf("%s\n(-want +got)\n%s", c.reason, diff)
			}
		})
	}
}

// TestObjectsDecode holds what is written against the API's own types.
func TestObjectsDecode(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	ops := with(func(o *operator.Operator) { o.Children = []operator.Child{{Kind: kind("apps", "v1", "Deployment")}} })
	for name, o := range map[string]manifest.Options{
		"everywhere":       {Image: "example.com/widget:1", Replicas: 2},
		"in one namespace": {Image: "example.com/widget:1", Replicas: 1, Watch: "shop", Namespace: "ops"},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := manifest.Objects(ops, o)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if err := manifest.Write(&out, manifest.YAML, objects); err != nil {
				t.Fatal(err)
			}
			var kinds []string
			for _, document := range strings.Split(out.String(), "\n---\n") {
				object, _, err := decoder.Decode([]byte(document), nil, nil)
				if err != nil {
					t.Fatalf("%v\n%s", err, document)
				}
				kinds = append(kinds, object.GetObjectKind().GroupVersionKind().Kind)
				if d, ok := object.(*appsv1.Deployment); ok {
					restricted(t, &d.Spec.Template)
				}
			}
			role := map[bool]string{true: "ClusterRole", false: "Role"}[o.Watch == ""]
			want := []string{"CustomResourceDefinition", "Namespace", "ServiceAccount", role, role + "Binding", "Role", "RoleBinding", "Deployment"}
			if diff := cmp.Diff(want, kinds); diff != "" {
				t.Errorf("what comes first must be there for what comes after (-want +got)\n%s", diff)
			}
		})
	}
}

// restricted asks the admission plugin's own checks.
func restricted(t *testing.T, pod *corev1.PodTemplateSpec) {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for _, r := range evaluator.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec) {
		if !r.Allowed {
			t.Errorf("Pod Security restricted: %s: %s", r.ForbiddenReason, r.ForbiddenDetail)
		}
	}
}

func TestObjectsRefuse(t *testing.T) {
	cluster := with(func(o *operator.Operator) {
		o.Parent.ClusterScoped = true
	})
	cases := map[string]struct {
		given []*operator.Operator
		o     manifest.Options
		want  string
	}{
		"no image":                       {[]*operator.Operator{widget()}, manifest.Options{}, "--image"},
		"an unknown part":                {[]*operator.Operator{widget()}, manifest.Options{Only: []manifest.Part{"x"}}, "crds, rbac or deployment"},
		"a cluster-scoped kind confined": {cluster, manifest.Options{Only: []manifest.Part{manifest.RBAC}, Watch: "a"}, "no namespace"},
		"a bad namespace":                {[]*operator.Operator{widget()}, manifest.Options{Only: []manifest.Part{manifest.RBAC}, Namespace: "A"}, `namespace "A"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := manifest.Objects(c.given, c.o)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error that mentions %q", err, c.want)
			}
		})
	}
}

func TestName(t *testing.T) {
	long := &operator.Operator{Name: strings.Repeat("a", 40)}
	for want, ops := range map[string][]*operator.Operator{
		"widget-operator":                     {widget()},
		"a-b-operator":                        {{Name: "b"}, {Name: "a"}},
		strings.Repeat("a", 40) + "-operator": {long, widget()},
	} {
		if got := manifest.Name(ops); got != want {
			t.Errorf("Name is %s, want %s", got, want)
		}
	}
}
