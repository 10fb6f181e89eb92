package proc

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets this test binary become a component, as the supervisor does.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == ExecVerb {
		fmt.Fprintln(os.Stderr, ExecRecorded(os.Args[2:]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func shell(t *testing.T, script string) (Spec, string) {
	t.Helper()
	dir := t.TempDir()
	return Spec{
		Name: "fake", Path: "/bin/sh", Args: []string{"-c", script},
		Env: os.Environ(), Dir: dir, Log: filepath.Join(dir, "fake.log"),
	}, filepath.Join(dir, "fake.json")
}

func start(t *testing.T, script string) (*Handle, string) {
	t.Helper()
	spec, record := shell(t, script)
	handle, err := Start(spec, record)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = Stop(t.Context(), 0, handle.Process) })
	return handle, record
}

// eventually waits for a condition with a deadline.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("never: %s", what)
		case <-tick.C:
		}
	}
}

func TestRecordIsTheRunningProcess(t *testing.T) {
	handle, record := start(t, "echo hello; exec sleep 1000")
	eventually(t, "output in the log", func() bool {
		return strings.Join(Tail(handle.Log, 5), "") == "hello"
	})
	recorded, err := Load(record)
	if err != nil {
		t.Fatal(err)
	}
	if recorded.PID != handle.PID || recorded.Started != handle.Started || !recorded.Alive() {
		t.Fatalf("recorded %+v, want the running process %+v", recorded, handle.Process)
	}
	if err := Stop(t.Context(), 5*time.Second, recorded); err != nil {
		t.Fatal(err)
	}
	if recorded.Alive() {
		t.Error("alive after Stop")
	}
}

func TestStopKillsWhatIgnoresTheRequest(t *testing.T) {
	handle, _ := start(t, "trap '' TERM; echo ready; while :; do sleep 1000; done")
	eventually(t, "the trap", func() bool { return len(Tail(handle.Log, 1)) == 1 })
	if err := Stop(t.Context(), 50*time.Millisecond, handle.Process); err != nil {
		t.Fatal(err)
	}
	<-handle.Exited()
	if !strings.Contains(handle.State(), "killed") {
		t.Errorf("ended with %q, want killed", handle.State())
	}
}

// A process id that now belongs to somebody else must never be signalled.
func TestRecycledProcessIDIsLeftAlone(t *testing.T) {
	handle, _ := start(t, "exec sleep 1000")
	stale := handle.Process
	stale.Started = "an earlier process"
	if stale.Alive() {
		t.Fatal("another process passes for the recorded one")
	}
	if err := Stop(t.Context(), 0, stale); err != nil {
		t.Fatal(err)
	}
	select {
	case <-handle.Exited():
		t.Fatal("a process that is not the recorded one was stopped")
	default:
	}
	if !handle.Alive() {
		t.Fatal("the bystander is gone")
	}
}

func TestZombieIsNotAlive(t *testing.T) {
	child := exec.Command("/bin/sh", "-c", "exit 0")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Wait() }()
	process := Process{PID: child.Process.Pid}
	process.Started, _ = identity(process.PID)
	eventually(t, "the unreaped child counts as gone", func() bool { return !process.Alive() })
}

// The starter was killed before the component began: it must not begin, and
// the record must not point at anything alive.
func TestNothingStartsForADeadStarter(t *testing.T) {
	spec, record := shell(t, "echo it ran; exec sleep 1000")
	if err := write(record, Process{Spec: spec}); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const notOurs = 1 << 30
	output, err := exec.Command(self, ExecVerb, record, strconv.Itoa(notOurs)).CombinedOutput()
	if err == nil || strings.Contains(string(output), "it ran") {
		t.Fatalf("it started for a dead starter: %s", output)
	}
	recorded, err := Load(record)
	if err != nil {
		t.Fatal(err)
	}
	if recorded.PID == 0 {
		t.Error("the record must come before the check, or a process could run without one")
	}
	if recorded.Alive() {
		t.Error("alive")
	}
}

// A plane that was removed in the meantime gets no process.
func TestNothingStartsInARemovedPlane(t *testing.T) {
	_, record := shell(t, "")
	gone := filepath.Join(filepath.Dir(record), "gone", "fake.json")
	if err := ExecRecorded([]string{gone, strconv.Itoa(os.Getppid())}); err == nil {
		t.Error("no error without a record")
	}
	if err := write(gone, Process{}); err == nil {
		t.Error("a record was written into a folder that does not exist")
	}
}

func TestProcessesOutliveTheTerminal(t *testing.T) {
	handle, _ := start(t, "echo ready; exec sleep 1000")
	eventually(t, "ready", func() bool { return len(Tail(handle.Log, 1)) == 1 })
	group, err := syscall.Getpgid(handle.PID)
	if err != nil {
		t.Fatal(err)
	}
	if group != handle.PID {
		t.Errorf("process group %d, want its own (%d): the terminal's Ctrl-C would reach it", group, handle.PID)
	}
}

func TestTailSaysWhyAProgramEnded(t *testing.T) {
	trace := strings.Repeat("\nmain.work(0x1)\n\t/src/main.go:1 +0x1", 20)
	for name, test := range map[string]struct{ log, want string }{
		"a panic":               {"first\npanic: no space\n\ngoroutine 1 [running]:" + trace, "first|panic: no space"},
		"a fatal error":         {"fatal error: out of memory\n\ngoroutine 1 [running]:" + trace + "\n\ngoroutine 2 [select]:" + trace, "fatal error: out of memory"},
		"klog":                  {"I1121 04:00:00 ok\nF1121 04:00:01 no port\ngoroutine 1 [running]:" + trace, "I1121 04:00:00 ok|F1121 04:00:01 no port"},
		"zap, then a panic":     {`{"level":"panic","msg":"x"}` + "\npanic: x\n\ngoroutine 1 [running]:" + trace, `{"level":"panic","msg":"x"}|panic: x`},
		"an earlier run's":      {"panic: old\n\ngoroutine 1 [running]:" + trace + "\nI1121 04:00:00 new\nlast", "I1121 04:00:00 new|last"},
		"a panic without trace": {"a\npanic: b\n", "a|panic: b"},
		"nothing of the kind":   {"a\n\nb\nc", "b|c"},
	} {
		t.Run(name, func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "log")
			if err := os.WriteFile(log, []byte(test.log), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(Tail(log, 2), "|"); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
