package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/homeostat-dev/homeostat/internal/command"
	"github.com/homeostat-dev/homeostat/internal/manifest"
	"github.com/homeostat-dev/homeostat/internal/plane"
	"github.com/homeostat-dev/homeostat/operator"
	"github.com/homeostat-dev/homeostat/test/planetest"
)

// define installs the definitions of the stories. The demo then leaves them:
// other tests may be using them.
func define(t *testing.T, p *planetest.Plane) {
	t.Helper()
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
}

// TestDemo tells the stories on the tests' plane as on a cluster of the user's own.
func TestDemo(t *testing.T) {
	p := planetest.Start(t)
	define(t, p)
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
	if left := p.Kubectl(t, "get", "namespaces", "-o", "name"); strings.Contains(left, namespacePrefix) {
		t.Errorf("the demo left its namespace: %s", left)
	}
}

// impossible is a story whose second step never comes true.
func impossible() Story {
	s := Memcached()
	s.Steps = []Step{s.Steps[0], {
		Name: "pigs fly", Run: Kubectl("get", "memcached"), Within: 300 * time.Millisecond,
		Settles: func(World) (bool, string) { return false, "pigs on the ground" },
	}}
	return s
}

// TestFailedDemo tells a story that fails on a control plane that was running
// before: the reason is said, the plane is left, and so are the logs and nothing
// else.
func TestFailedDemo(t *testing.T) {
	p := planetest.Start(t)
	if os.Getenv(planetest.KubeconfigVariable) != "" {
		t.Skip("works on the local plane, and " + planetest.KubeconfigVariable + " names another cluster")
	}
	info, err := plane.Up(t.Context(), "test", plane.Options{Audit: true})
	if err != nil {
		t.Fatal(err)
	}
	define(t, p)
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // a lock of its own
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	running := func(context.Context, string, io.Writer) (Plane, error) {
		down := func(context.Context) error { t.Error("the demo took down a plane that it had not started"); return nil }
		return Plane{Kubeconfig: p.Kubeconfig, Kubectl: info.Kubectl, Started: info.Started, Down: down}, nil
	}
	var out, said bytes.Buffer
	root := &cobra.Command{Use: "demo", RunE: func(c *cobra.Command, _ []string) error {
		d := &demo{up: running, clock: time.Now, view: newView(&out, &said, time.Now)}
		return d.run(c.Context(), []Story{impossible()})
	}}
	if code := command.Run(t.Context(), genericiooptions.IOStreams{Out: &out, ErrOut: &said}, nil, root); code != command.Failed {
		t.Errorf("exit code %d, want %d", code, command.Failed)
	}
	for _, want := range []string{`step "pigs fly"`, "pigs on the ground"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("the error lacks %q: %s", want, said.String())
		}
	}
	if !strings.Contains(out.String(), "FAILED") {
		t.Errorf("the table shows no failure:\n%s", out.String())
	}
	if left := p.Kubectl(t, "get", "namespaces", "-o", "name"); strings.Contains(left, namespacePrefix) {
		t.Errorf("the demo left its namespace: %s", left)
	}
	left, err := filepath.Glob(filepath.Join(temporary, "*", "*"))
	if err != nil || len(left) != 1 || !strings.HasSuffix(left[0], logSuffix) {
		t.Errorf("left in the folder for temporary files: %v, %v; want the operator's log only", left, err)
	}
}

// TestPlaneIsStoppedByWhoStartedIt tells no story: the stage cannot be set.
func TestPlaneIsStoppedByWhoStartedIt(t *testing.T) {
	for _, started := range []bool{true, false} {
		t.Setenv("XDG_CACHE_HOME", t.TempDir())
		stopped := false
		up := func(context.Context, string, io.Writer) (Plane, error) {
			second := &demo{view: newView(io.Discard, io.Discard, time.Now)}
			if err := second.run(t.Context(), nil); !errors.Is(err, errRunning) {
				t.Errorf("a second demo at the same time: %v", err)
			}
			return Plane{
				Kubeconfig: filepath.Join(t.TempDir(), "none"), Started: started,
				Down: func(context.Context) error { stopped = true; return nil },
			}, nil
		}
		d := &demo{up: up, view: newView(io.Discard, io.Discard, time.Now)}
		if err := d.run(t.Context(), nil); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("got %v, want that there is no kubeconfig", err)
		}
		if stopped != started {
			t.Errorf("started=%v, stopped=%v", started, stopped)
		}
		release, err := only(lockName)
		if err != nil {
			t.Fatalf("the lock was not given back: %v", err)
		}
		if err := release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestEndedOperatorsSayWhy(t *testing.T) {
	log := filepath.Join(t.TempDir(), "o.log")
	if err := os.WriteFile(log, []byte("starting\nthe lease was lost\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &running{log: log, code: 7, stopped: make(chan struct{})}
	close(r.stopped)
	never := &stopwatch{done: make(chan struct{})}
	said := fmt.Sprint((&teller{operators: r}).await(t.Context(), never))
	if !strings.Contains(said, "exit code 7") || !strings.Contains(said, "the lease was lost") {
		t.Errorf("got %s, want the exit code and the last lines of the log", said)
	}
}
