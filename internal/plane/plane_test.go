package plane

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pretender is a supervisor that tells how it was called.
const pretender = `package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	switch os.Args[1] {
	case "echo":
		in, _ := io.ReadAll(os.Stdin)
		fmt.Println("out", os.Args[2:], string(in), os.Getenv("HOMEOSTAT_PROGRAM"), os.Getenv("HOMEOSTAT_LOCALPLANE_SOURCE"))
		fmt.Fprintln(os.Stderr, "err")
	case "status", "kubeconfig", "kubectl", "down":
		fmt.Println("looked after")
	case "fail":
		os.Exit(7)
	case "wait":
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM)
		fmt.Println("waiting")
		<-signals
		fmt.Println("cleaned up")
		os.Exit(1)
	case "up":
		fmt.Fprintln(os.Stderr, os.Args[1:])
		fmt.Println("{\"name\":\"x\",\"new\":true,\"kubeconfig\":\"/k\",\"auditLog\":\"/a\",\"nodes\":{\"provider\":\"simulated=1\",\"notice\":\"SIMULATED\"}}")
	}
}
`

// sources writes a nested module with the pretender, and a cache of its own.
func sources(t *testing.T, program string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("compiles a small program")
	}
	dir := t.TempDir()
	put(t, filepath.Join(dir, "go.mod"), "module "+nested+"\n\ngo 1.26.0\n")
	put(t, filepath.Join(dir, "cmd/localplane/main.go"), program)
	t.Setenv("GOCACHE", goCache(t))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv(sourceVariable, dir)
	return dir
}

// goCache keeps the compiler's cache where it was, though the user's cache
// folder moves.
func goCache(t *testing.T) string {
	t.Helper()
	if named := os.Getenv("GOCACHE"); named != "" {
		return named
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(cache, "go-build")
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestStreamsAndExitCodePassThrough(t *testing.T) {
	dir := sources(t, pretender)
	var out, said bytes.Buffer
	streams := Streams{Program: "kubectl homeostat", In: strings.NewReader("input"), Out: &out, Err: &said}
	if err := Run(t.Context(), streams, "echo", "a", "b c"); err != nil {
		t.Fatal(err)
	}
	if want := "out [a b c] input kubectl homeostat " + dir + "\n"; out.String() != want {
		t.Errorf("out: %q, want %q", out.String(), want)
	}
	if !strings.HasSuffix(said.String(), "err\n") || !strings.Contains(said.String(), "compiling") {
		t.Errorf("err: %q", said.String())
	}
	err := Run(t.Context(), streams, "fail")
	if exit, ok := errors.AsType[*ExitError](err); !ok || exit.Code != 7 {
		t.Errorf("got %v, want exit code 7", err)
	}
}

func TestBuiltOnceAndWithoutGoAfterwards(t *testing.T) {
	dir := sources(t, pretender)
	var said bytes.Buffer
	if err := Run(t.Context(), Streams{Err: &said}, "echo"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", t.TempDir())
	said.Reset()
	if err := Run(t.Context(), Streams{Err: &said}, "echo"); err != nil || strings.Contains(said.String(), "compiling") {
		t.Errorf("second run: %v, %q", err, said.String())
	}
	put(t, filepath.Join(dir, "cmd/kube-apiserver/main.go"), "package main")
	put(t, filepath.Join(dir, "plane/plane_test.go"), "package plane")
	if err := Run(t.Context(), Streams{}, "echo"); err != nil {
		t.Errorf("a component or a test changed, which is no reason to compile: %v", err)
	}
	put(t, filepath.Join(dir, "plane/plane.go"), "package plane")
	if err := Run(t.Context(), Streams{}, "echo"); !errors.Is(err, ErrNoGo) {
		t.Errorf("the supervisor changed and there is no compiler: %v", err)
	}
}

func TestPlanesAreLookedAfterFromAnywhere(t *testing.T) {
	dir := sources(t, pretender)
	t.Setenv(versionVariable, "")
	if err := Run(t.Context(), Streams{}, "echo"); err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(os.Getenv("XDG_CACHE_HOME"), "homeostat", "supervisor", "old")
	put(t, old, "this is older and no program")
	if err := os.Chtimes(old, time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	check := func(where string, want error) {
		t.Helper()
		for _, verb := range []string{"status", "kubeconfig", "kubectl", "down"} {
			var out bytes.Buffer
			if err := Run(t.Context(), Streams{Out: &out}, verb); err != nil || out.String() != "looked after\n" {
				t.Errorf("%s, %s: %v, %q", where, verb, err, out.String())
			}
		}
		if err := Run(t.Context(), Streams{}, "up"); !errors.Is(err, want) {
			t.Errorf("%s, up: %v, want %v", where, err, want)
		}
	}
	put(t, filepath.Join(dir, "plane/plane.go"), "package plane")
	t.Run("without a compiler", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		check("without a compiler", ErrNoGo)
	})
	t.Setenv(sourceVariable, "")
	t.Chdir(t.TempDir())
	check("outside the checkout", ErrNoSource)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	if err := Run(t.Context(), Streams{}, "status"); !errors.Is(err, ErrNoSource) {
		t.Errorf("with nothing in the cache: %v", err)
	}
}

func TestCompilerErrorIsShownAndNothingIsLeft(t *testing.T) {
	sources(t, "package main\n\nfunc main() { wrong() }\n")
	err := Run(t.Context(), Streams{}, "echo")
	if err == nil || !strings.Contains(err.Error(), "undefined: wrong") {
		t.Errorf("got %v", err)
	}
	left, err := os.ReadDir(filepath.Join(os.Getenv("XDG_CACHE_HOME"), "homeostat", "supervisor"))
	if err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// watched cancels the context once the supervisor has written something.
type watched struct {
	content bytes.Buffer // not embedded: its ReadFrom would bypass Write
	cancel  context.CancelFunc
}

func (w *watched) Write(content []byte) (int, error) {
	defer w.cancel()
	return w.content.Write(content)
}

func TestInterruptedSupervisorMayCleanUp(t *testing.T) {
	sources(t, pretender)
	ctx, cancel := context.WithCancel(t.Context())
	out := &watched{cancel: cancel}
	if err := Run(ctx, Streams{Out: out}, "wait"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	if got := out.content.String(); got != "waiting\ncleaned up\n" {
		t.Errorf("output %q: it was not asked to stop, or not waited for", got)
	}
}

func TestUpReadsWhatTheSupervisorSays(t *testing.T) {
	sources(t, pretender)
	var said bytes.Buffer
	info, err := Up(t.Context(), "x", Options{Audit: true, Nodes: "simulated=2", Wait: time.Minute, Progress: &said})
	if err != nil {
		t.Fatal(err)
	}
	if want := (Info{Name: "x", Started: true, Kubeconfig: "/k", AuditLog: "/a", Nodes: "SIMULATED"}); info != want {
		t.Errorf("got %+v, want %+v", info, want)
	}
	if !strings.Contains(said.String(), "[up --name x --output json --nodes simulated=2 --audit --wait 1m0s]") {
		t.Errorf("called with %q", said.String())
	}
}

func TestSourcesAreFoundOrMissed(t *testing.T) {
	t.Setenv(versionVariable, "")
	t.Setenv(sourceVariable, t.TempDir())
	if _, err := find(nil); err == nil || !strings.Contains(err.Error(), sourceVariable) {
		t.Errorf("a wrong variable must be named: %v", err)
	}
	t.Setenv(sourceVariable, "")
	found, err := find(nil) // tests run in a checkout
	if err != nil || !strings.HasSuffix(found.source, "localplane") {
		t.Errorf("in the checkout: %+v, %v", found, err)
	}
	t.Chdir(t.TempDir())
	if _, err := find(nil); !errors.Is(err, ErrNoSource) {
		t.Errorf("nowhere: %v", err)
	}
	t.Setenv(versionVariable, "v0.1.0")
	found, err = find(nil)
	if err != nil || found.version != "v0.1.0" || found.source != "" {
		t.Errorf("installed: %+v, %v", found, err)
	}
}
