// Package plane starts and stops local control planes.
//
// The work is done by the supervisor, a small program of the nested module
// localplane that this package finds, compiles once per version into the
// user's cache folder, and runs with the caller's streams, signals and exit
// code. Only that process boundary is shared with localplane: its go.mod
// carries all of Kubernetes, which ours must not.
//
// It never keeps state of its own and never touches a plane's files or
// processes. Its invariant: a supervisor in the cache is complete, and the one
// that makes a plane belongs to the sources at hand. Where there are none, or no
// compiler, the newest in the cache looks after planes that are there.
package plane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// stopWithin is how long an interrupted supervisor may take to stop what it
// has started.
const stopWithin = 45 * time.Second

// Streams are what the supervisor reads and writes. Files are handed over as
// they are, so that it can tell a terminal from a pipe.
type Streams struct {
	// Program is the command that the user typed, for hints; "homeostat" when empty.
	Program string
	// In may be nil.
	In io.Reader
	// Out gets results, Err progress and errors; nil discards.
	Out, Err io.Writer
}

// Options say what kind of plane is wanted.
type Options struct {
	// Nodes are the nodes, such as "simulated=3"; one simulated node when empty.
	Nodes string
	// Audit asks for a log of all requests.
	Audit bool
	// Wait is how long to wait until the plane is ready; a minute when zero.
	// Building it first is not counted.
	Wait time.Duration
	// Program is the command that the user typed, for hints.
	Program string
	// Progress gets what the supervisor says; os.Stderr when nil.
	Progress io.Writer
}

// Info describes a plane.
type Info struct {
	Name string
	// Started is true when this call made the plane, and false when it was there
	// before, also when it had died and was started again. Only who made a plane
	// may throw away what is in it.
	Started bool
	// Kubernetes is the version of the API server, which is at Server.
	Kubernetes, Server string
	// Kubeconfig is the path of an administrator's kubeconfig, Kubectl that of
	// the kubectl of that version.
	Kubeconfig, Kubectl string
	// Dir holds everything that the plane keeps.
	Dir string
	// AuditLog is the path of the log of requests; empty when none is kept.
	AuditLog string
	// Nodes is what a user must know about the nodes: that they are simulated.
	Nodes string
}

// ExitError says that the supervisor ran and failed. It has written the reason
// to the stream for errors.
type ExitError struct {
	// Code is the supervisor's exit code: 2 for wrong use, else a failure.
	Code int
}

// Error implements error.
func (e *ExitError) Error() string {
	return fmt.Sprintf("the local plane's supervisor ended with exit code %d; the reason is in its output above", e.Code)
}

// Run runs the supervisor with the arguments, a verb first. When ctx ends, the
// supervisor is asked to stop and waited for. An exit code other than 0 is an
// [ExitError].
func Run(ctx context.Context, streams Streams, args ...string) error {
	s, err := ready(ctx, streams.Err, args)
	if err != nil {
		return err
	}
	program := streams.Program
	if program == "" {
		program = "homeostat"
	}
	command := exec.CommandContext(ctx, s.path, args...)
	command.Stdin, command.Stdout, command.Stderr = streams.In, streams.Out, streams.Err
	command.Env = append(os.Environ(), append(s.environment, "HOMEOSTAT_PROGRAM="+program)...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = stopWithin
	err = command.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if ctx.Err() != nil {
			return fmt.Errorf("local plane: %w", context.Cause(ctx))
		}
		return &ExitError{Code: exit.ExitCode()}
	}
	if err != nil {
		return fmt.Errorf("run the local plane's supervisor: %w", err)
	}
	return nil
}

// Up makes sure that the plane of that name is ready, and describes it. The
// first time this compiles Kubernetes, which takes minutes.
func Up(ctx context.Context, name string, options Options) (Info, error) {
	args := []string{"up", "--name", name, "--output", "json"}
	if options.Nodes != "" {
		args = append(args, "--nodes", options.Nodes)
	}
	if options.Audit {
		args = append(args, "--audit")
	}
	if options.Wait > 0 {
		args = append(args, "--wait", options.Wait.String())
	}
	var out bytes.Buffer
	if err := Run(ctx, Streams{Program: options.Program, Out: &out, Err: progress(options.Progress)}, args...); err != nil {
		return Info{}, fmt.Errorf("start local plane %q: %w", name, err)
	}
	var status struct {
		Name, Kubernetes, Server, Kubeconfig, Kubectl, Dir, AuditLog string
		New                                                          bool
		Nodes                                                        struct{ Notice string }
	}
	if err := json.Unmarshal(out.Bytes(), &status); err != nil {
		return Info{}, fmt.Errorf("read what the supervisor says of plane %q: %w", name, err)
	}
	return Info{
		Name: status.Name, Started: status.New, Kubernetes: status.Kubernetes, Server: status.Server,
		Kubeconfig: status.Kubeconfig, Kubectl: status.Kubectl, Dir: status.Dir,
		AuditLog: status.AuditLog, Nodes: status.Nodes.Notice,
	}, nil
}

// Down stops the plane and removes everything it kept. A plane that is not
// there is no error.
func Down(ctx context.Context, name string) error {
	if err := Run(ctx, Streams{Err: os.Stderr}, "down", "--name", name); err != nil {
		return fmt.Errorf("stop local plane %q: %w", name, err)
	}
	return nil
}

func progress(given io.Writer) io.Writer {
	if given == nil {
		return os.Stderr
	}
	return given
}
