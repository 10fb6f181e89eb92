package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/homeostat-dev/homeostat/localplane/plane"
)

func TestPlainProgressIsRare(t *testing.T) {
	var out bytes.Buffer
	now := time.Now()
	s := &screen{out: &out, now: func() time.Time { return now }}
	for range 61 { // a minute, a report per second
		s.progress("compiling")
		now = now.Add(time.Second)
	}
	if got := strings.Count(out.String(), "compiling\n"); got != 7 {
		t.Errorf("%d lines in a minute, want 7:\n%s", got, out.String())
	}
	if strings.Contains(out.String(), "\x1b") {
		t.Error("control characters outside a terminal")
	}
}

func TestTerminalProgressIsOneLine(t *testing.T) {
	var out bytes.Buffer
	const width = 20
	s := &screen{out: &out, terminal: true, width: width, now: time.Now}
	s.progress(strings.Repeat("x", 2*width))
	s.progress("second")
	s.say("a sentence")
	if strings.Contains(out.String(), strings.Repeat("x", width)) {
		t.Error("a line that wraps cannot be overwritten")
	}
	if !strings.HasSuffix(out.String(), "\r\x1b[Ka sentence\n") || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("got %q", out.String())
	}
}

// tool runs the command with a home of its own.
func tool(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var out bytes.Buffer
	code = run(t.Context(), &out, file, args)
	said, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return code, out.String(), string(said)
}

func TestWrongUse(t *testing.T) {
	t.Setenv("HOMEOSTAT_HOME", t.TempDir())
	t.Setenv("HOMEOSTAT_LOCALPLANE_SOURCE", t.TempDir()) // nothing may get as far as building
	for _, test := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"frobnicate"}, exitUsage, "no verb"},
		{[]string{"up", "--nodes", "real=1"}, exitUsage, "not available yet"},
		{[]string{"up", "--nodes", "many"}, exitUsage, "simulated=N"},
		{[]string{"up", "--frob"}, exitUsage, "--frob"},
		{[]string{"up", "a", "b"}, exitUsage, "one name"},
		{[]string{"up", "-o", "xml"}, exitUsage, "table, json or yaml"},
		{[]string{"down", "../x"}, exitUsage, "bad name"},
		{[]string{"up", "../x"}, exitUsage, "bad name"},
		{[]string{"down", "x", "--all"}, exitUsage, "not both"},
		{[]string{"status", "x"}, exitFailure, "no such plane"},
		{[]string{"kubeconfig", "x"}, exitFailure, "up x"},
		{[]string{"kubectl", "x", "--", "get", "nodes"}, exitFailure, "up x"},
		{[]string{"up"}, exitFailure, "HOMEOSTAT_LOCALPLANE_SOURCE"},
		{[]string{"down", "x"}, 0, "nothing to do"},
	} {
		code, _, stderr := tool(t, test.args...)
		if code != test.code || !strings.Contains(stderr, test.says) {
			t.Errorf("%v: code %d, %q; want code %d and %q", test.args, code, stderr, test.code, test.says)
		}
	}
}

func TestNothingIsRunning(t *testing.T) {
	t.Setenv("HOMEOSTAT_HOME", t.TempDir())
	t.Setenv(programVariable, "homeostat")
	if code, stdout, _ := tool(t, "status"); code != 0 || !strings.Contains(stdout, "homeostat up") {
		t.Errorf("status: %d, %q", code, stdout)
	}
	if code, stdout, _ := tool(t, "status", "-o", "json"); code != 0 || strings.TrimSpace(stdout) != "[]" {
		t.Errorf("status -o json: %d, %q", code, stdout)
	}
	if code, stdout, _ := tool(t, "up", "--help"); code != 0 || !strings.Contains(stdout, "--audit") {
		t.Errorf("up --help: %d, %q", code, stdout)
	}
}

func TestNoticeOfNodesIsPrintedOnce(t *testing.T) {
	var out bytes.Buffer
	a := &app{stdout: &out}
	nodes := plane.Nodes{Notice: "SIMULATED nodes"}
	if err := a.printAll("", []plane.Status{{Name: "one", Nodes: nodes}, {Name: "two", Nodes: nodes}}); err != nil {
		t.Fatal(err)
	}
	if strings.Count(out.String(), "SIMULATED") != 1 || !strings.Contains(out.String(), "one, two: SIMULATED nodes") {
		t.Errorf("got:\n%s", out.String())
	}
}
