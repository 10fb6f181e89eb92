package plane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/homeostat-dev/homeostat/localplane/proc"
)

const (
	// pollEvery is how often a condition is looked at.
	pollEvery = 50 * time.Millisecond
	// portAttempts is how often other ports are tried when a component finds
	// its port taken.
	portAttempts = 5
)

// design says what a plane consists of.
type design interface {
	// ports names the ports that the plane needs.
	ports() []string
	// stages prepares the plane's files and returns what to start, in order.
	stages(*record) ([]stage, error)
}

// stage is a group of processes and what must hold before the next stage.
type stage struct {
	specs []proc.Spec
	ready []condition
}

// condition is something that is polled until it holds.
type condition struct {
	// what completes the sentence "waiting for …".
	what string
	// log is the log that explains why it does not hold.
	log string
	// check returns nil when it holds.
	check func(context.Context) error
}

// diedError says that a process ended while the plane was starting.
type diedError struct {
	spec  proc.Spec
	state string
}

func (e *diedError) Error() string {
	return fmt.Sprintf("%s ended (%s) while the plane was starting; the last lines of %s:%s",
		e.spec.Name, e.state, e.spec.Log, indented(proc.Tail(e.spec.Log, lastWords)))
}

// lateError says that the time given for a start is over.
type lateError struct{ limit time.Duration }

func (e *lateError) Error() string {
	return fmt.Sprintf("not within %s (--wait gives it more time)", e.limit)
}

// start brings the plane up and appends every process that it starts to
// started. Processes that run already are left alone.
func (m *Manager) start(ctx context.Context, options Options, rec *record, started *[]proc.Process) error {
	ctx, cancel := context.WithTimeoutCause(ctx, options.Wait, &lateError{limit: options.Wait})
	defer cancel()
	if rec.Phase == phaseReady {
		m.report(rec)
	}
	for attempt := 1; ; attempt++ {
		err := m.attempt(ctx, rec, started)
		var died *diedError
		if err == nil || !errors.As(err, &died) || attempt == portAttempts {
			return err
		}
		taken := takenPort(died.spec.Ports)
		if taken == 0 {
			return err
		}
		m.notify("%s lost port %d to another program; trying other ports", died.spec.Name, taken)
		if err := stopAll(ctx, processes(rec.dir)); err != nil {
			return err
		}
		rec.Ports = nil
	}
}

// attempt goes through the stages once.
func (m *Manager) attempt(ctx context.Context, rec *record, started *[]proc.Process) error {
	design := m.design
	if design == nil {
		design = kubernetes{}
	}
	var hold []func()
	if rec.Ports == nil {
		ports, release, err := choosePorts(design.ports())
		if err != nil {
			return err
		}
		rec.Ports, hold = ports, release
	}
	stages, err := design.stages(rec)
	for _, release := range hold {
		release()
	}
	if err != nil {
		return err
	}
	if err := rec.save(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for _, stage := range stages {
		if err := startStage(ctx, cancel, rec, stage, started); err != nil {
			return err
		}
	}
	return context.Cause(ctx) // a process may have ended after it was ready
}

// startStage starts the processes of the stage that do not run, and waits for
// its conditions. A process that ends meanwhile ends the waiting.
func startStage(ctx context.Context, cancel context.CancelCauseFunc, rec *record, stage stage, started *[]proc.Process) error {
	for _, spec := range stage.specs {
		if recorded, err := proc.Load(rec.processRecord(spec.Name)); err == nil && recorded.Alive() {
			continue
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		complete(&spec, rec)
		handle, err := proc.Start(spec, rec.processRecord(spec.Name))
		if err != nil {
			return err
		}
		*started = append(*started, handle.Process)
		go func() {
			select {
			case <-handle.Exited():
				cancel(&diedError{spec: spec, state: handle.State()})
			case <-ctx.Done():
			}
		}()
	}
	for _, condition := range stage.ready {
		if err := await(ctx, condition); err != nil {
			return err
		}
	}
	return nil
}

// complete fills in what is the same for all processes. They see little of the
// user's environment: variables such as ETCD_NAME or KUBECONFIG, meant for
// something else, would change what they do.
func complete(spec *proc.Spec, rec *record) {
	spec.Dir = rec.dir
	spec.Log = rec.path("logs", spec.Name+".log")
	spec.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + rec.dir, "TMPDIR=" + os.TempDir()}
}

func await(ctx context.Context, condition condition) error {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		err := condition.check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return blame(ctx, condition, err)
		case <-ticker.C:
		}
	}
}

// blame explains why the waiting for a condition ended.
func blame(ctx context.Context, condition condition, last error) error {
	cause := context.Cause(ctx)
	var died *diedError
	var late *lateError
	switch {
	case errors.As(cause, &died):
		return cause
	case errors.As(cause, &late):
		return fmt.Errorf("waiting for %s: %w; at last: %s; the last lines of %s:%s", condition.what, cause,
			strings.TrimSpace(last.Error()), condition.log, indented(proc.Tail(condition.log, lastWords)))
	}
	return fmt.Errorf("waiting for %s: %w", condition.what, cause) // interrupted: nothing is wrong with the component
}

// report tells the user which processes of a plane have died.
func (m *Manager) report(rec *record) {
	for _, process := range processes(rec.dir) {
		if !process.Alive() {
			m.notify("%s (pid %d) of plane %q has died; starting it again. The last lines of %s:%s",
				process.Name, process.PID, rec.Name, process.Log, indented(proc.Tail(process.Log, lastWords)))
		}
	}
}
