package demo

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/homeostat-dev/homeostat/internal/manifest"
	"github.com/homeostat-dev/homeostat/internal/plane"
	"github.com/homeostat-dev/homeostat/operator"
	"github.com/homeostat-dev/homeostat/test/planetest"
)

// TestDemo tells the stories on the tests' plane as on a cluster of the user's
// own. The definitions are installed first and so stay: others may be using them.
func TestDemo(t *testing.T) {
	p := planetest.Start(t)
	definitions := filepath.Join(t.TempDir(), "crd.yaml")
	var crd bytes.Buffer
	var ops []*operator.Operator
	for _, s := range Stories() {
		ops = append(ops, s.Operators...)
	}
	if err := manifest.Write(&crd, manifest.YAML, manifest.Definitions(ops)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(definitions, crd.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Kubectl(t, "apply", "--server-side", "--force-conflicts", "-f", definitions)
	if os.Getenv(planetest.KubeconfigVariable) == "" {
		info, err := plane.Up(t.Context(), "test", plane.Options{Audit: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", filepath.Dir(info.Kubectl)+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	var out, progress bytes.Buffer
	d := &demo{options: options{kubeconfig: p.Kubeconfig}, clock: time.Now, view: newView(&out, &progress, time.Now)}
	err := d.run(t.Context(), Stories())
	t.Log(out.String())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "FAILED") || strings.Contains(out.String(), "not reached") {
		t.Error("the table has a step that is not ok, and there was no error")
	}
	if left := p.Kubectl(t, "get", "namespaces", "-o", "name"); strings.Contains(left, "homeostat-demo-") {
		t.Errorf("the demo left its namespace: %s", left)
	}
}
