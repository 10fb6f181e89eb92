package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// childVariable makes this test binary a builder that stops in the middle.
const childVariable = "BUILD_TEST_CHILD"

func TestMain(m *testing.M) {
	if where := os.Getenv(childVariable); where != "" {
		source, cache, _ := strings.Cut(where, "|")
		b := &Builder{Source: source, Cache: cache, Components: fakes(), Report: func(p Progress) {
			if p.Total > 0 {
				_, _ = fmt.Fprintln(os.Stdout, "in the middle")
				select {}
			}
		}}
		_, err := b.Build(context.Background())
		_, _ = fmt.Fprintln(os.Stdout, "not reached:", err)
		os.Exit(3)
	}
	os.Exit(m.Run())
}

func fakes() []string { return []string{"alpha", "beta"} }

// module writes a module with trivial components.
func module(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "go.mod"), "module "+Module+"\n\ngo 1.26.0\n")
	for _, component := range fakes() {
		put(t, filepath.Join(dir, "cmd", component, "main.go"),
			fmt.Sprintf("//go:build components\n\npackage main\n\nfunc main() { println(%q) }\n\nconst unique = %q // not in the compiler's cache\n", component, dir))
	}
	return dir
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

func builder(t *testing.T) *Builder {
	t.Helper()
	return &Builder{Source: module(t), Cache: filepath.Join(t.TempDir(), "cache"), Components: fakes()}
}

// entries lists the cache without its lock.
func entries(t *testing.T, b *Builder) []string {
	t.Helper()
	found, err := os.ReadDir(b.Cache)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range found {
		if entry.Name() != "build.lock" {
			names = append(names, entry.Name())
		}
	}
	return names
}

func says(t *testing.T, set Set, component string) {
	t.Helper()
	output, err := exec.Command(set.Path(component)).CombinedOutput()
	if err != nil || strings.TrimSpace(string(output)) != component {
		t.Errorf("%s: got %q, %v", component, output, err)
	}
}

func TestBuildsOnceAndAgainWhenTheSourceChanges(t *testing.T) {
	b := builder(t)
	var reports []Progress
	b.Report = func(p Progress) { reports = append(reports, p) }
	first, err := b.Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	says(t, first, "alpha")
	says(t, first, "beta")
	last := reports[len(reports)-1]
	if last.Total < len(fakes()) || last.Compiled < len(fakes()) || last.Component != "beta" || last.Index != 2 || last.Of != 2 {
		t.Errorf("last progress: %+v", last)
	}

	reports = nil
	if again, err := b.Build(t.Context()); err != nil || again != first || len(reports) > 0 {
		t.Errorf("second build: %+v, %v, %d reports; want the first one's outcome without work", again, err, len(reports))
	}

	put(t, filepath.Join(b.Source, "cmd/alpha/main.go"), "package main\n\nfunc main() { println(\"changed\") }\n")
	changed, err := b.Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if changed.Key == first.Key {
		t.Error("another source, the same key")
	}
	says(t, first, "alpha") // the earlier version is still whole
	if got := entries(t, b); len(got) != 2 {
		t.Errorf("the cache holds %v, want the two versions", got)
	}
}

func TestSecondBuildWaitsForTheFirst(t *testing.T) {
	first, waits := builder(t), make(chan struct{})
	second := &Builder{Source: first.Source, Cache: first.Cache, Components: fakes()}
	begun := make(chan struct{}, 1)
	first.Report = func(Progress) {
		select {
		case begun <- struct{}{}:
			<-waits // hold the build until the other one has said that it waits
		default:
		}
	}
	second.Notify = func(sentence string) {
		if !strings.Contains(sentence, fmt.Sprint(os.Getpid())) {
			t.Errorf("notice %q does not name the builder", sentence)
		}
		close(waits)
	}
	second.Report = func(Progress) { t.Error("the second build compiled too") }

	type outcome struct {
		set Set
		err error
	}
	outcomes := make(chan outcome, 1)
	go func() {
		set, err := first.Build(context.Background())
		outcomes <- outcome{set, err}
	}()
	<-begun
	begun <- struct{}{} // no further holding
	set, err := second.Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	says(t, set, "beta")
	if got := <-outcomes; got.err != nil || got.set != set {
		t.Errorf("first: %+v, second: %+v", got, set)
	}
}

func TestFailedCompileShowsWhyAndLeavesNothing(t *testing.T) {
	b := builder(t)
	put(t, filepath.Join(b.Source, "cmd/beta/main.go"), "package main\n\nfunc main() { wrong() }\n")
	_, err := b.Build(t.Context())
	if err == nil || !strings.Contains(err.Error(), "undefined: wrong") {
		t.Fatalf("got %v, want the compiler's words", err)
	}
	if got := entries(t, b); len(got) > 0 {
		t.Errorf("left %v", got)
	}
	if _, ok, err := b.Existing(); ok || err != nil {
		t.Errorf("a failed build counts as built: %v, %v", ok, err)
	}
}

func TestCancelledBuildLeavesNothing(t *testing.T) {
	b := builder(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("interrupted by the user")
	b.Report = func(p Progress) {
		if p.Total > 0 {
			cancel(reason)
		}
	}
	if _, err := b.Build(ctx); !errors.Is(err, reason) {
		t.Fatalf("got %v, want the reason", err)
	}
	if got := entries(t, b); len(got) > 0 {
		t.Errorf("left %v", got)
	}
}

func TestKilledBuildIsNotUsedAndCleanedUp(t *testing.T) {
	b := builder(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(self)
	child.Env = append(os.Environ(), childVariable+"="+b.Source+"|"+b.Cache)
	output, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 64)
	if n, err := output.Read(line); err != nil || !strings.HasPrefix(string(line[:n]), "in the middle") {
		t.Fatalf("child: %q, %v", line[:n], err)
	}
	if err := child.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()

	left := entries(t, b)
	if len(left) != 1 || !strings.HasPrefix(left[0], temporary) {
		t.Fatalf("the killed build left %v; the test wants its temporary folder", left)
	}
	// Even complete executables in it must not be used.
	for _, component := range fakes() {
		put(t, filepath.Join(b.Cache, left[0], component), "half")
	}
	if _, ok, err := b.Existing(); ok || err != nil {
		t.Fatalf("a killed build counts as built: %v, %v", ok, err)
	}
	set, err := b.Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	says(t, set, "alpha")
	if got := entries(t, b); !slices.Equal(got, []string{set.Key}) {
		t.Errorf("the cache holds %v, want only %s", got, set.Key)
	}
}

func TestDamagedSetIsBuiltAgain(t *testing.T) {
	b := builder(t)
	set, err := b.Build(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(set.Path("alpha")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Build(t.Context()); err != nil {
		t.Fatal(err)
	}
	says(t, set, "alpha")
}

func TestMachineProblemsSayWhatToDo(t *testing.T) {
	b := builder(t)
	t.Run("full disk", func(t *testing.T) {
		err := b.explain(t.Context(), "compile", []string{"write /x: " + syscall.ENOSPC.Error()}, errors.New("exit 1"))
		var space *NoSpaceError
		if !errors.As(err, &space) || !strings.Contains(err.Error(), "Free some") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("no go command", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		if _, err := b.Build(t.Context()); !errors.Is(err, ErrNoGo) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("free space of a folder that does not exist yet", func(t *testing.T) {
		if free, ok := freeSpace(filepath.Join(b.Cache, "not", "there")); !ok || free == 0 {
			t.Errorf("got %d, %v", free, ok)
		}
	})
}

func TestFindSource(t *testing.T) {
	source := module(t)
	t.Setenv(SourceVariable, "")
	t.Setenv(VersionVariable, "")
	below := filepath.Join(source, "cmd", "alpha")
	if got, err := FindSource(t.Context(), below); err != nil || got != source {
		t.Errorf("inside the module: %q, %v", got, err)
	}
	if _, err := FindSource(t.Context(), t.TempDir()); !errors.Is(err, ErrNoSource) {
		t.Errorf("nowhere: %v", err)
	}
	t.Setenv(SourceVariable, t.TempDir())
	if _, err := FindSource(t.Context(), below); err == nil || !strings.Contains(err.Error(), SourceVariable) {
		t.Errorf("a wrong variable must be named, not ignored: %v", err)
	}
	t.Setenv(SourceVariable, source)
	if got, err := FindSource(t.Context(), t.TempDir()); err != nil || got != source {
		t.Errorf("by the variable: %q, %v", got, err)
	}
}

func TestVersionComesFromTheModuleFile(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "go.mod"), "module x\n\nrequire (\n\tk8s.io/kubernetes v1.36.3\n)\n")
	version, err := kubernetesVersion(dir)
	if err != nil || version != "v1.36.3" {
		t.Fatalf("got %q, %v", version, err)
	}
	flags := linkerFlags(version)
	for _, want := range []string{"version.gitVersion=v1.36.3", "version.gitMajor=1", "version.gitMinor=36"} {
		if !strings.Contains(flags, want) {
			t.Errorf("%q lacks %s", flags, want)
		}
	}
}

func TestProgressFitsTheTerminal(t *testing.T) {
	const columns = 80
	longest := Progress{Component: "kube-controller-manager", Index: 3, Of: 6, Compiled: 2800, Total: 2800, Elapsed: 12*time.Minute + 30*time.Second}
	for _, p := range []Progress{longest, {Elapsed: time.Second}, {Downloaded: 1000, Elapsed: time.Hour}} {
		if line := p.String(); len(line) >= columns || !strings.HasSuffix(line, p.Elapsed.String()) {
			t.Errorf("%d characters, the end would be cut off: %s", len(line), line)
		}
	}
}
