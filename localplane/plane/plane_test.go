package plane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/homeostat-dev/homeostat/localplane/build"
	"github.com/homeostat-dev/homeostat/localplane/proc"
)

const (
	// listenVerb makes this test binary a component that listens on a port.
	listenVerb = "listen"
	// banner is what it says to a caller, who can so tell it from a stranger.
	banner = "fake"
	// upVariable makes it a command that brings a plane up and never finishes.
	upVariable = "PLANE_TEST_ROOT"
)

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == proc.ExecVerb:
		fmt.Fprintln(os.Stderr, proc.ExecRecorded(os.Args[2:]))
		os.Exit(1)
	case len(os.Args) > 2 && os.Args[1] == listenVerb:
		listener, err := net.Listen("tcp", net.JoinHostPort(loopback, os.Args[2]))
		if err != nil {
			fmt.Fprintln(os.Stderr, "cannot listen:", err)
			os.Exit(1)
		}
		fmt.Fprintln(os.Stderr, "listening on", listener.Addr())
		for {
			if connection, err := listener.Accept(); err == nil {
				_, _ = connection.Write([]byte(banner))
				_ = connection.Close()
			}
		}
	case os.Getenv(upVariable) != "":
		stuck := &fake{never: true}
		manager := &Manager{Root: os.Getenv(upVariable), design: stuck}
		_, _, err := manager.Up(context.Background(), Options{Name: "p", Wait: time.Hour})
		fmt.Fprintln(os.Stderr, "not reached:", err)
		os.Exit(3)
	}
	os.Exit(m.Run())
}

// fake is a design of two stages of small processes that listen.
type fake struct {
	// steal, if set, is a port that the first attempt wrongly takes for free.
	steal int
	// never keeps the second stage from being ready.
	never bool
	// script replaces the component of the second stage by a shell script.
	script string
	// onReady is called while the second stage is waited for.
	onReady func()
}

func (f *fake) ports() []string { return []string{storeName, apiServerName} }

func (f *fake) stages(rec *record) ([]stage, error) {
	if f.steal != 0 {
		rec.Ports[apiServerName], f.steal = f.steal, 0
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	component := func(name string) stage {
		port := rec.Ports[name]
		return stage{
			specs: []proc.Spec{{Name: name, Path: self, Args: []string{listenVerb, strconv.Itoa(port)}, Ports: []int{port}}},
			ready: []condition{{what: name + " to be ready", log: rec.path("logs", name+".log"), check: listens(port)}},
		}
	}
	store, server := component(storeName), component(apiServerName)
	if f.script != "" {
		server.specs[0].Path, server.specs[0].Args = "/bin/sh", []string{"-c", f.script}
	}
	if f.never {
		server.ready[0].check = func(context.Context) error {
			if f.onReady != nil {
				f.onReady()
			}
			return errors.New("not yet")
		}
	}
	return []stage{store, server}, nil
}

func listens(port int) func(context.Context) error {
	return func(ctx context.Context) error {
		connection, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
		if err != nil {
			return err
		}
		defer func() { _ = connection.Close() }()
		if err := connection.SetDeadline(time.Now().Add(time.Second)); err != nil {
			return err
		}
		said, err := io.ReadAll(connection)
		if err == nil && string(said) != banner {
			return fmt.Errorf("a stranger says %q", said)
		}
		return err
	}
}

// bench is a manager with a fake design that remembers its notices.
type bench struct {
	*Manager
	fake    *fake
	notices []string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{fake: &fake{}}
	b.Manager = &Manager{Root: filepath.Join(t.TempDir(), "planes"), design: b.fake}
	b.Notify = func(sentence string) { b.notices = append(b.notices, sentence) }
	t.Cleanup(func() {
		names, _ := b.Names()
		for _, name := range names {
			_, _ = b.Down(context.Background(), name)
		}
	})
	return b
}

func (b *bench) up(t *testing.T, name string) (Status, []string) {
	t.Helper()
	status, started, err := b.Up(t.Context(), Options{Name: name, Wait: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return status, started
}

func (b *bench) noticed(t *testing.T, words ...string) {
	t.Helper()
	all := strings.Join(b.notices, "\n")
	for _, word := range words {
		if !strings.Contains(all, word) {
			t.Errorf("no notice has %q; got:\n%s", word, all)
		}
	}
}

// kill ends a process of a plane behind its back.
func (b *bench) kill(t *testing.T, plane, name string) {
	t.Helper()
	process, err := proc.Load(filepath.Join(b.dir(plane), "run", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(process.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, name+" is gone", func() bool { return !process.Alive() })
}

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

func nothingLeft(t *testing.T, b *bench, processes []proc.Process) {
	t.Helper()
	for _, process := range processes {
		if process.Alive() {
			t.Errorf("%s (pid %d) is still running", process.Name, process.PID)
		}
	}
	left, err := os.ReadDir(b.Root)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestUpTwiceDownTwice(t *testing.T) {
	b := newBench(t)
	status, started := b.up(t, "p")
	if status.State != StateRunning || !status.New || !slices.Equal(started, []string{storeName, apiServerName}) {
		t.Fatalf("first up: %+v, started %v", status, started)
	}
	running := processes(b.dir("p"))
	again, started := b.up(t, "p")
	if len(started) != 0 || again.New || again.Server != status.Server {
		t.Errorf("second up started %v, new=%v, at %s instead of %s", started, again.New, again.Server, status.Server)
	}
	for _, want := range []bool{true, false} {
		existed, err := b.Down(t.Context(), "p")
		if err != nil || existed != want {
			t.Errorf("down: existed=%v, %v; want %v", existed, err, want)
		}
	}
	nothingLeft(t, b, running)
	if _, err := b.Status("p"); !errors.Is(err, ErrNoPlane) {
		t.Errorf("status after down: %v", err)
	}
}

func TestPlanesSideBySide(t *testing.T) {
	b := newBench(t)
	one, _ := b.up(t, "one")
	two, _ := b.up(t, "two")
	if one.Server == two.Server || one.Dir == two.Dir {
		t.Fatalf("they share something: %+v, %+v", one, two)
	}
	if _, err := b.Down(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	if status, err := b.Status("two"); err != nil || status.State != StateRunning {
		t.Errorf("two after one is down: %+v, %v", status, err)
	}
	if names, err := b.Names(); err != nil || !slices.Equal(names, []string{"two"}) {
		t.Errorf("names: %v, %v", names, err)
	}
}

func TestDeadProcessIsSeenAndStartedAgain(t *testing.T) {
	b := newBench(t)
	before, _ := b.up(t, "p")
	b.kill(t, "p", apiServerName)
	status, err := b.Status("p")
	if err != nil || status.State != StateDegraded || !strings.Contains(status.Message, apiServerName) {
		t.Fatalf("status: %+v, %v", status, err)
	}
	after, started := b.up(t, "p")
	if !slices.Equal(started, []string{apiServerName}) || after.State != StateRunning || after.Server != before.Server {
		t.Errorf("up: %+v, started %v; want only the dead one, at the same address", after, started)
	}
	b.noticed(t, apiServerName, "has died", "listening on") // with its last words

	b.kill(t, "p", apiServerName)
	b.kill(t, "p", storeName)
	if status, err := b.Status("p"); err != nil || status.State != StateStopped {
		t.Errorf("all dead: %+v, %v", status, err)
	}
	if status, started := b.up(t, "p"); len(started) != 2 || status.New {
		t.Errorf("started %v, new=%v; want both, of the same plane", started, status.New)
	}
}

func TestLostPortIsReplaced(t *testing.T) {
	b := newBench(t)
	thief, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = thief.Close() }()
	stolen := thief.Addr().(*net.TCPAddr).Port
	b.fake.steal = stolen
	status, _ := b.up(t, "p")
	if status.State != StateRunning || strings.HasSuffix(status.Server, strconv.Itoa(stolen)) {
		t.Errorf("%+v; want another port than %d", status, stolen)
	}
	b.noticed(t, apiServerName, strconv.Itoa(stolen))
}

func TestInterruptedUpLeavesNothing(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("the user pressed Ctrl-C")
	var running []proc.Process
	b.fake.never, b.fake.onReady = true, func() {
		if running = processes(b.dir("p")); len(running) == 2 && running[0].Alive() && running[1].Alive() {
			cancel(reason)
		}
	}
	if _, _, err := b.Up(ctx, Options{Name: "p", Wait: time.Minute}); !errors.Is(err, reason) {
		t.Fatalf("got %v, want the reason", err)
	}
	if len(running) != 2 {
		t.Fatalf("only %v ran; the test wants both", running)
	}
	nothingLeft(t, b, running)
}

func TestInterruptedHealingKeepsWhatRan(t *testing.T) {
	b := newBench(t)
	b.up(t, "p")
	b.kill(t, "p", apiServerName)
	ctx, cancel := context.WithCancel(t.Context())
	b.fake.never, b.fake.onReady = true, cancel
	if _, _, err := b.Up(ctx, Options{Name: "p", Wait: time.Minute}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	status, err := b.Status("p")
	if err != nil || status.State != StateDegraded || !strings.HasPrefix(status.Message, apiServerName) {
		t.Errorf("%+v, %v; want it as it was before", status, err)
	}
}

func TestKilledUpIsCleanedUp(t *testing.T) {
	for name, clean := range map[string]func(*testing.T, *bench){
		"by down": func(t *testing.T, b *bench) {
			if existed, err := b.Down(t.Context(), "p"); err != nil || !existed {
				t.Errorf("down: %v, %v", existed, err)
			}
		},
		"by up": func(t *testing.T, b *bench) {
			if _, started := b.up(t, "p"); len(started) != 2 {
				t.Errorf("started %v, want a new plane", started)
			}
			b.noticed(t, "not finished")
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			command := exec.Command(self)
			command.Env = append(os.Environ(), upVariable+"="+b.Root)
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			var orphans []proc.Process
			eventually(t, "both processes run", func() bool {
				orphans = processes(b.dir("p"))
				return len(orphans) == 2 && orphans[0].Alive() && orphans[1].Alive()
			})
			if status, err := b.Status("p"); err != nil || status.State != StateStarting {
				t.Errorf("while it starts: %+v, %v", status, err)
			}
			if err := command.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = command.Wait()
			if status, err := b.Status("p"); err != nil || status.State != StateUnfinished {
				t.Errorf("after the kill: %+v, %v", status, err)
			}
			clean(t, b)
			for _, orphan := range orphans {
				if orphan.Alive() {
					t.Errorf("%s (pid %d) survived", orphan.Name, orphan.PID)
				}
			}
		})
	}
}

func TestFailedStartSaysWhy(t *testing.T) {
	t.Run("a component ends", func(t *testing.T) {
		b := newBench(t)
		b.fake.script = "echo the disk is on fire >&2; exit 7"
		_, _, err := b.Up(t.Context(), Options{Name: "p", Wait: time.Minute})
		if err == nil || !strings.Contains(err.Error(), "the disk is on fire") || !strings.Contains(err.Error(), "exit status 7") {
			t.Errorf("got %v, want its last words and exit code", err)
		}
		for _, process := range processes(b.dir("p")) {
			if process.Alive() {
				t.Errorf("%s still runs", process.Name)
			}
		}
	})
	t.Run("a component cannot be run", func(t *testing.T) {
		b := newBench(t)
		b.fake.script = "exec /does/not/exist"
		if _, _, err := b.Up(t.Context(), Options{Name: "p", Wait: time.Minute}); err == nil ||
			!strings.Contains(err.Error(), "/does/not/exist") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("never ready", func(t *testing.T) {
		b := newBench(t)
		b.fake.never = true
		_, _, err := b.Up(t.Context(), Options{Name: "p", Wait: 200 * time.Millisecond})
		var late *lateError
		if !errors.As(err, &late) || !strings.Contains(err.Error(), apiServerName+" to be ready") || !strings.Contains(err.Error(), "not yet") {
			t.Errorf("got %v, want what was waited for and the last answer", err)
		}
	})
	t.Run("bad name", func(t *testing.T) {
		b := newBench(t)
		for _, name := range []string{"", "../x", "A", "-x", strings.Repeat("x", 41)} {
			if _, _, err := b.Up(t.Context(), Options{Name: name}); !errors.Is(err, ErrName) {
				t.Errorf("up %q: %v", name, err)
			}
			if _, err := b.Down(t.Context(), name); !errors.Is(err, ErrName) {
				t.Errorf("down %q: %v", name, err)
			}
		}
	})
}

func TestDifferencesAreNotedOrTakenOver(t *testing.T) {
	b := newBench(t)
	b.up(t, "p")
	wish := Options{Name: "p", Wait: 20 * time.Second, Audit: true, Nodes: "simulated=3"}
	status, _, err := b.Up(t.Context(), wish)
	if err != nil || status.Nodes.Provider != "simulated=3" || status.AuditLog != "" {
		t.Errorf("%+v, %v; want more nodes and no audit log", status, err)
	}
	b.noticed(t, "without an audit log")
	wish.Nodes = "simulated=2"
	if status, _, err = b.Up(t.Context(), wish); err != nil || status.Nodes.Provider != "simulated=3" {
		t.Errorf("%+v, %v; want the nodes kept", status, err)
	}
	b.noticed(t, "keeps them")
}

// damage spoils the record of a plane.
func (b *bench) damage(t *testing.T, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir(name), "plane.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestDamagedRecord(t *testing.T) {
	b := newBench(t)
	b.up(t, "p")
	running := processes(b.dir("p"))
	b.damage(t, "p")
	b.kill(t, "p", apiServerName)
	status, err := b.Status("p")
	if err != nil || status.State != StateDegraded || len(status.Processes) != 2 || !strings.Contains(status.Message, "damaged") {
		t.Errorf("one of two runs: %+v, %v", status, err)
	}
	if _, _, err := b.Up(t.Context(), Options{Name: "p", Wait: time.Minute}); !errors.Is(err, ErrDamaged) {
		t.Errorf("up: %v, want that it be taken down first", err)
	}
	b.kill(t, "p", storeName)
	if status, err := b.Status("p"); err != nil || status.State != StateUnfinished {
		t.Errorf("none runs: %+v, %v", status, err)
	}
	if _, started := b.up(t, "p"); len(started) != 2 {
		t.Errorf("started %v, want a new plane", started)
	}
	b.damage(t, "p")
	running = append(running, processes(b.dir("p"))...)
	if existed, err := b.Down(t.Context(), "p"); err != nil || !existed {
		t.Errorf("down: %v, %v", existed, err)
	}
	nothingLeft(t, b, running)
}

func TestFolderOfLogsIsMadeAgain(t *testing.T) {
	b := newBench(t)
	b.up(t, "p")
	b.kill(t, "p", apiServerName)
	if err := os.RemoveAll(filepath.Join(b.dir("p"), "logs")); err != nil {
		t.Fatal(err)
	}
	if status, started := b.up(t, "p"); status.State != StateRunning || len(started) != 1 {
		t.Errorf("%+v, started %v", status, started)
	}
}

func TestFullDiskSaysWhatToDo(t *testing.T) {
	const remedy = "set HOMEOSTAT_HOME to a folder with room"
	t.Run("before anything starts", func(t *testing.T) {
		b := newBench(t)
		b.space = 1 << 60
		_, _, err := b.Up(t.Context(), Options{Name: "p", Wait: time.Minute})
		var space *build.NoSpaceError
		if !errors.As(err, &space) || !strings.Contains(err.Error(), remedy) {
			t.Errorf("got %v", err)
		}
		nothingLeft(t, b, nil)
	})
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"a file cannot be written":        {fmt.Errorf("write the record: %w", &os.PathError{Op: "write", Err: syscall.ENOSPC}), true},
		"a component ends, there is room": {&diedError{}, false},
		"another error":                   {os.ErrPermission, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			got := b.explain(test.err)
			if !errors.Is(got, test.err) || strings.Contains(got.Error(), remedy) != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
