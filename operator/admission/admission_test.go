package admission_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/homeostat-dev/homeostat/operator/admission"
)

const crd = `
metadata: {name: widgets.example.com}
spec:
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            default: {}
            x-kubernetes-validations:
            - {rule: "self.size == oldSelf.size || self.size > 1", message: size only grows}
            properties:
              size: {type: integer, default: 1, maximum: 9}
  - name: odd
    schema: {openAPIV3Schema: {properties: {spec: {type: object}}}}
  - name: bare
`

func compile(t *testing.T, version string) (*admission.Schema, error) {
	t.Helper()
	d := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal([]byte(crd), d); err != nil {
		t.Fatal(err)
	}
	return admission.Compile(d, version)
}

func TestCompileRefuses(t *testing.T) {
	tests := map[string]struct{ given, want string }{
		"a version that is not there":     {"v2", "has no version v2"},
		"a version without a schema":      {"bare", "has no schema"},
		"a schema that is not structural": {"odd", "schema of version odd"},
		"nothing, where nothing is amiss": {"v1", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := compile(t, tt.given)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestAdmit(t *testing.T) {
	type object = map[string]any
	tests := map[string]struct {
		given, old, want object
		err              string
	}{
		"defaults are filled in":          {given: object{}, want: object{"spec": object{"size": int64(1)}}},
		"unknown fields go":               {given: object{"spec": object{"size": int64(2), "x": "y"}}, want: object{"spec": object{"size": int64(2)}}},
		"a null with a default is filled": {given: object{"spec": object{"size": nil}}, want: object{"spec": object{"size": int64(1)}}},
		"a value out of bounds":           {given: object{"spec": object{"size": int64(10)}}, err: "spec.size"},
		"a value of another type":         {given: object{"spec": object{"size": "1"}}, err: "spec.size"},
		"a rule about the old object": {
			given: object{"spec": object{"size": int64(1)}}, old: object{"spec": object{"size": int64(3)}}, err: "size only grows"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := compile(t, "v1")
			if err != nil {
				t.Fatal(err)
			}
			u := &unstructured.Unstructured{Object: tt.given}
			if tt.old == nil {
				err = s.Create(u)
			} else {
				err = s.Update(u, &unstructured.Unstructured{Object: tt.old})
			}
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("got error %v, want %q", err, tt.err)
				}
				return
			}
			if diff := cmp.Diff(tt.want, u.Object); err != nil || diff != "" {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}
