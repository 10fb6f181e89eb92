package netperf_test

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/homeostat-dev/homeostat/operator/admission"
	"github.com/homeostat-dev/homeostat/operator/operatortest"
	"github.com/homeostat-dev/homeostat/operators/netperf"
)

func TestFixtures(t *testing.T) {
	operatortest.Run(t, netperf.Operator, "testdata/*.txtar")
}

func TestNameOfTheResource(t *testing.T) {
	if got, want := netperf.Operator.CRD.Name, "netperfs.app.example.com"; got != want {
		t.Errorf("N1: the definition is %s, want %s", got, want)
	}
}

func TestSamplesAreValid(t *testing.T) {
	s, err := admission.Compile(netperf.Operator.CRD, "v1alpha1")
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob("samples/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no samples (%v)", err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(data, &u.Object); err != nil {
			t.Fatal(err)
		}
		if err := s.Create(u); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}
