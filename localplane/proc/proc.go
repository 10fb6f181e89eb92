// Package proc runs the processes of a plane: detached from the command that
// starts them, recorded before they run, and stopped by their record.
//
// A process is started in two steps. First its [Process] record, without a
// process id, is written to a file. Then this very executable is started as
// "exec-recorded" (see [ExecRecorded]); it writes its own process id into the
// record, checks that the command that started it still lives, and becomes the
// component. So there is no moment at which a component runs without a record,
// even when the starting command is killed in between.
//
// It never signals a process whose identity it has not checked: a process id
// together with the time at which the process started. It never looks for
// processes by name.
//
// Invariant: when [Stop] returns nil, none of the given processes exists.
package proc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// ExecVerb is the first argument with which this executable is started to
// become a component. A main function (and a TestMain) that starts processes
// calls [ExecRecorded] when it sees it.
const ExecVerb = "exec-recorded"

// Spec says what to run.
type Spec struct {
	// Name is the component's name, unique in its plane.
	Name string `json:"name"`
	// Path is the executable.
	Path string `json:"path"`
	// Args are the arguments, without the executable's name.
	Args []string `json:"args"`
	// Env is the whole environment.
	Env []string `json:"env"`
	// Dir is the working directory.
	Dir string `json:"dir"`
	// Log is the file that output is appended to.
	Log string `json:"log"`
	// Ports are the loopback ports that the component will listen on.
	Ports []int `json:"ports,omitempty"`
}

// Process is the record of a process.
type Process struct {
	Spec
	// PID is the process id; 0 means that the process never ran.
	PID int `json:"pid"`
	// Started identifies the moment at which the process started, in a form
	// that only this machine understands.
	Started string `json:"started"`
}

// Alive says whether the recorded process itself still runs: not another one
// that got the same process id, and not a zombie.
func (p Process) Alive() bool {
	if p.PID <= 0 || p.Started == "" {
		return false
	}
	started, running := identity(p.PID)
	return running && started == p.Started
}

// Handle is a process that this command started itself.
type Handle struct {
	Process
	exited chan struct{}
	state  *os.ProcessState
}

// Exited is closed when the process has ended.
func (h *Handle) Exited() <-chan struct{} { return h.exited }

// State says how the process ended. It may be called once Exited is closed.
func (h *Handle) State() string { return h.state.String() }

// Start runs the spec and records it in the file. The process is in a session
// of its own, so that it outlives this command and is not reached by the
// terminal's signals.
func Start(spec Spec, record string) (*Handle, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this executable: %w", err)
	}
	if err := write(record, Process{Spec: spec}); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(spec.Log), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder for the log of %s: %w", spec.Name, err)
	}
	log, err := os.OpenFile(spec.Log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", spec.Name, err)
	}
	defer func() { _ = log.Close() }()

	command := exec.Command(self, ExecVerb, record, strconv.Itoa(os.Getpid()))
	command.Stdout, command.Stderr = log, log
	command.Env, command.Dir = spec.Env, spec.Dir
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	handle := &Handle{Process: Process{Spec: spec, PID: command.Process.Pid}, exited: make(chan struct{})}
	handle.Started, _ = identity(handle.PID) // our child: unreaped, so the id cannot be another's
	go func() {
		_ = command.Wait()
		handle.state = command.ProcessState
		close(handle.exited)
	}()
	return handle, nil
}

// ExecRecorded is the second step of [Start]; args are the record file and
// the process id of the command that started us. On success it does not
// return: this process has become the component.
func ExecRecorded(args []string) error {
	if len(args) != 2 {
		return errors.New("exec-recorded is internal: it wants a record and a process id")
	}
	process, err := Load(args[0])
	if err != nil {
		return err
	}
	process.PID = os.Getpid()
	process.Started, _ = identity(process.PID)
	if err := write(args[0], process); err != nil {
		return err
	}
	// The starter holds the plane's lock while it lives. If it is gone by now,
	// nobody may be expecting this process any more; if it dies later, whoever
	// takes the lock next finds the record that was just written.
	if strconv.Itoa(os.Getppid()) != args[1] {
		return fmt.Errorf("not starting %s: the command that wanted it is gone", process.Name)
	}
	argv := append([]string{process.Path}, process.Args...)
	if err := syscall.Exec(process.Path, argv, process.Env); err != nil {
		return fmt.Errorf("run %s: %w", process.Path, err)
	}
	return nil
}

// Load reads the record in the file.
func Load(record string) (Process, error) {
	content, err := os.ReadFile(record)
	if err != nil {
		return Process{}, fmt.Errorf("read the record of a process: %w", err)
	}
	var process Process
	if err := json.Unmarshal(content, &process); err != nil {
		return Process{}, fmt.Errorf("the record %s is damaged: %w", record, err)
	}
	return process, nil
}

// Stop asks the processes to end, kills those that still run when grace is
// over, and waits until all of them are gone. Those that are gone already, or
// whose process id belongs to somebody else by now, are left alone.
func Stop(ctx context.Context, grace time.Duration, processes ...Process) error {
	signal(syscall.SIGTERM, processes)
	if waitGone(ctx, grace, processes) {
		return nil
	}
	signal(syscall.SIGKILL, processes)
	const last = 10 * time.Second // the kernel needs a moment for a big process
	if waitGone(context.WithoutCancel(ctx), last, processes) {
		return nil
	}
	var left []string
	for _, p := range processes {
		if p.Alive() {
			left = append(left, fmt.Sprintf("%s (pid %d)", p.Name, p.PID))
		}
	}
	return fmt.Errorf("still running after SIGKILL: %v; look at them with ps, and try again", left)
}

// signal sends sig to each process that is still the recorded one. The handle
// is taken before the identity is checked and, where the kernel has process
// handles (Linux), stays bound to that process; so the signal cannot reach a
// successor that got the id in between.
func signal(sig os.Signal, processes []Process) {
	for _, p := range processes {
		if p.PID <= 0 {
			continue
		}
		handle, err := os.FindProcess(p.PID)
		if err != nil {
			continue
		}
		if p.Alive() {
			_ = handle.Signal(sig) // gone in between: that is what was wanted
		}
		_ = handle.Release()
	}
}

func waitGone(ctx context.Context, limit time.Duration, processes []Process) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		alive := false
		for _, p := range processes {
			alive = alive || p.Alive()
		}
		if !alive {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
}

// write replaces the record in one step. The folder must exist: a record is
// never written into a plane that has been removed.
func write(record string, process Process) error {
	content, err := json.MarshalIndent(process, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the record of %s: %w", process.Name, err)
	}
	draft, err := os.CreateTemp(filepath.Dir(record), ".record-*")
	if err != nil {
		return fmt.Errorf("record %s: %w", process.Name, err)
	}
	_, err = draft.Write(content)
	if err := errors.Join(err, draft.Close()); err != nil {
		return fmt.Errorf("record %s: %w", process.Name, err)
	}
	if err := os.Rename(draft.Name(), record); err != nil {
		return fmt.Errorf("record %s: %w", process.Name, err)
	}
	return nil
}
