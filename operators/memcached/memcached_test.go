package memcached_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/homeostat-dev/homeostat/operator/admission"
	"github.com/homeostat-dev/homeostat/operator/operatortest"
	"github.com/homeostat-dev/homeostat/operators/memcached"
)

func TestFixtures(t *testing.T) {
	operatortest.Run(t, memcached.Operator, "testdata/*.txtar")
}

func TestSamplesAreValid(t *testing.T) {
	paths, err := filepath.Glob("samples/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no samples (%v)", err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := admit(t, string(data)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestRefusedByTheAPIServer(t *testing.T) {
	tests := map[string]struct{ given, want string }{
		"M8: a negative size":               {"metadata: {name: a}\nspec: {size: -1}", "spec.size"},
		"M8: no size":                       {"metadata: {name: a}\nspec: {}", "spec.size: Required"},
		"M8: no spec":                       {"metadata: {name: a}", "spec: Required"},
		"a size nobody means":               {"metadata: {name: a}\nspec: {size: 1000}", "spec.size"},
		"a name that no Service can have":   {"metadata: {name: 1.a}\nspec: {size: 1}", "Service"},
		"a name that no label can have":     {"metadata: {name: " + strings.Repeat("a", 64) + "}\nspec: {size: 1}", "63"},
		"the longest name that is allowed":  {"metadata: {name: " + strings.Repeat("a", 63) + "}\nspec: {size: 1}", ""},
		"size 0":                            {"metadata: {name: a}\nspec: {size: 0}", ""},
		"a status that has only conditions": {"metadata: {name: a}\nspec: {size: 0}\nstatus: {conditions: []}", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := admit(t, "apiVersion: cache.example.com/v1alpha1\nkind: Memcached\n"+tt.given)
			if tt.want == "" && err != nil {
				t.Errorf("refused: %v", err)
			}
			if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got error %v, want one about %q", err, tt.want)
			}
		})
	}
}

func admit(t *testing.T, text string) error {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	s, err := admission.Compile(memcached.Operator.CRD, memcached.Operator.Parent.Version)
	if err != nil {
		t.Fatal(err)
	}
	return s.Create(u)
}
