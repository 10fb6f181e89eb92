// Package plane runs local planes: a real Kubernetes control plane each, as
// detached processes on loopback, with all of its state in one folder.
//
// A plane's folder holds its record (plane.json), certificates, kubeconfigs,
// the data of etcd, the logs, and one record per process. A lock beside the
// folder makes commands on the same plane take turns.
//
// It never stops a process that a plane has not recorded, never listens on
// anything but loopback, and keeps no data that matters: etcd runs without
// syncing to disk.
//
// Invariant: whoever holds a plane's lock knows all of its processes from the
// folder. So a command that is interrupted stops what it started, and what a
// killed command leaves is found and stopped, or used, by the next one.
package plane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/homeostat-dev/homeostat/localplane/build"
	"github.com/homeostat-dev/homeostat/localplane/filelock"
	"github.com/homeostat-dev/homeostat/localplane/node"
	"github.com/homeostat-dev/homeostat/localplane/proc"
)

const (
	// DefaultName is the name of the plane that is meant when none is given.
	DefaultName = "default"
	// stopGrace is how long a process may take to end before it is killed.
	stopGrace = 5 * time.Second
	// lastWords is how many lines of a log are shown.
	lastWords = 5
	// startSpace is what a plane needs to start: etcd sets 128 MiB aside, and
	// there are logs.
	startSpace = 300 << 20
	// fullSpace is too little for a plane that runs: etcd wants 64 MiB at a time.
	fullSpace = 64 << 20
	// moreSpace is what helps where there is too little.
	moreSpace = "set HOMEOSTAT_HOME to a folder with room"
)

// ErrName says that a plane's name cannot be used.
var ErrName = errors.New("bad name for a plane: want 1 to 40 of a-z, 0-9 and -, beginning with a letter or digit")

// ErrNoPlane says that there is no plane of that name.
var ErrNoPlane = errors.New("there is no such plane")

// ErrDamaged says that a plane has lost its record while its processes run.
var ErrDamaged = errors.New("the plane is damaged, and processes of it still run")

var validName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)

// Manager works on the planes below one folder.
type Manager struct {
	// Root is the folder that holds the planes; see [Root].
	Root string
	// Notify, if not nil, gets sentences for the user.
	Notify func(string)
	// design says what a plane consists of; Kubernetes unless a test says else.
	design design
	// space is what a start needs; startSpace unless a test says else.
	space uint64
}

// CheckName returns [ErrName] when there can be no plane of that name.
func CheckName(name string) error {
	if !validName.MatchString(name) {
		return fmt.Errorf("%w; got %q", ErrName, name)
	}
	return nil
}

// Options say what kind of plane is wanted.
type Options struct {
	// Name is the plane's name.
	Name string
	// Binaries are the components to run.
	Binaries build.Set
	// Nodes describes the nodes; "" means: as they are, and one simulated
	// node in a new plane.
	Nodes string
	// Audit asks for a log of all requests.
	Audit bool
	// Wait is how long to wait for the plane to be ready.
	Wait time.Duration
}

// Root returns the folder for planes: below $HOMEOSTAT_HOME if that is set,
// else below the user's folder for state.
func Root() (string, error) {
	if home := os.Getenv("HOMEOSTAT_HOME"); home != "" {
		absolute, err := filepath.Abs(home)
		if err != nil {
			return "", fmt.Errorf("HOMEOSTAT_HOME: %w", err)
		}
		return filepath.Join(absolute, "planes"), nil
	}
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) { // the standard says to ignore relative ones
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("find a folder for the plane's state (set HOMEOSTAT_HOME): %w", err)
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "homeostat", "planes"), nil
}

// Up makes sure that the plane is ready: it starts a new one, starts again
// what has died, or finds that there is nothing to do. It returns the names of
// the processes that it started. When it fails or is interrupted, nothing that
// it started is left running.
func (m *Manager) Up(ctx context.Context, options Options) (Status, []string, error) {
	if err := CheckName(options.Name); err != nil {
		return Status{}, nil, err
	}
	status, started, err := m.up(ctx, options)
	return status, started, m.explain(err)
}

// explain adds to an error what to do where the disk is full. A component that
// ended says so in its log only, in words of its own: how much is left tells.
func (m *Manager) explain(err error) error {
	var died *diedError
	var known *build.NoSpaceError
	if errors.As(err, &known) || !errors.Is(err, syscall.ENOSPC) && !errors.As(err, &died) {
		return err
	}
	limit := uint64(fullSpace)
	if errors.Is(err, syscall.ENOSPC) {
		limit = math.MaxUint64 // whatever is free, it was not enough
	}
	var space *build.NoSpaceError
	if !errors.As(build.CheckSpace(m.Root, limit, moreSpace), &space) {
		return err
	}
	space.Needed = startSpace
	return fmt.Errorf("%w\n%w", err, space)
}

func (m *Manager) up(ctx context.Context, options Options) (Status, []string, error) {
	lock, err := m.lock(ctx, options.Name)
	if err != nil {
		return Status{}, nil, err
	}
	defer m.unlock(lock, options.Name)
	rec, err := m.current(ctx, options)
	if err != nil {
		return Status{}, nil, err
	}
	isNew := rec.Phase == phaseStarting
	if isNew {
		if err := rec.create(); err != nil {
			return Status{}, nil, errors.Join(err, m.remove(context.WithoutCancel(ctx), rec.dir))
		}
	}
	var started []proc.Process
	if err := m.start(ctx, options, rec, &started); err != nil {
		// The caller's context may be over; ending processes must not depend on it.
		return Status{}, nil, errors.Join(err, m.abandon(context.WithoutCancel(ctx), rec, started, isNew, ctx.Err() != nil))
	}
	rec.Phase = phaseReady
	if err := rec.save(); err != nil {
		return Status{}, nil, err
	}
	var names []string
	for _, process := range started {
		names = append(names, process.Name)
	}
	status, err := m.Status(options.Name)
	status.New = isNew
	return status, names, err
}

// current returns the record to go on with: of the plane as it is or, where
// there is none or only the rest of one, of a new one.
func (m *Manager) current(ctx context.Context, options Options) (*record, error) {
	dir := m.dir(options.Name)
	rec, err := load(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err == nil && rec.Phase == phaseReady:
		m.compare(rec, options)
		return rec, nil
	case err != nil && slices.ContainsFunc(processes(dir), proc.Process.Alive):
		return nil, fmt.Errorf("%w (%w)", ErrDamaged, err)
	case err != nil:
		m.notify("%v: starting plane %q anew", err, options.Name)
	default:
		m.notify("an earlier start of plane %q was not finished: cleaning up after it and starting anew", options.Name)
	}
	if err := m.remove(ctx, dir); err != nil {
		return nil, err
	}
	if err := build.CheckSpace(m.Root, cmp.Or(m.space, startSpace), moreSpace); err != nil {
		return nil, err
	}
	nodes := options.Nodes
	if nodes == "" {
		nodes = "simulated=1"
	}
	return &record{
		dir: dir, Name: options.Name, Phase: phaseStarting, Binaries: options.Binaries,
		Audit: options.Audit, Nodes: nodes, Created: time.Now().UTC(),
	}, nil
}

// compare tells the user where a plane that exists differs from what is asked
// for, and takes over what can be changed while it runs.
func (m *Manager) compare(rec *record, options Options) {
	const remedy = "to change that, take it down first"
	if options.Audit && !rec.Audit {
		m.notify("plane %q runs without an audit log; %s", rec.Name, remedy)
	}
	if options.Binaries.Key != "" && options.Binaries.Key != rec.Binaries.Key {
		if _, err := os.Stat(rec.Binaries.Dir); err != nil {
			rec.Binaries = options.Binaries
		} else {
			m.notify("plane %q runs components of another version of the sources (%s); %s", rec.Name, rec.Binaries.Key, remedy)
		}
	}
	if options.Nodes == "" || options.Nodes == rec.Nodes {
		return
	}
	want, wantErr := node.Parse(options.Nodes)
	have, haveErr := node.Parse(rec.Nodes)
	if wantErr == nil && haveErr == nil && len(want.Names()) > len(have.Names()) {
		rec.Nodes = options.Nodes
		return
	}
	m.notify("plane %q has nodes %s and keeps them; %s", rec.Name, rec.Nodes, remedy)
}

// abandon ends what a failed or interrupted start has started. An interrupted
// start of a new plane leaves nothing; a failed one leaves its logs.
func (m *Manager) abandon(ctx context.Context, rec *record, started []proc.Process, isNew, interrupted bool) error {
	if err := stopAll(ctx, started); err != nil {
		return err
	}
	if isNew && interrupted {
		m.notify("interrupted: plane %q is stopped and removed", rec.Name)
		return m.remove(ctx, rec.dir)
	}
	return nil
}

// Down stops the plane and removes its folder. It says whether there was one.
func (m *Manager) Down(ctx context.Context, name string) (bool, error) {
	if err := CheckName(name); err != nil {
		return false, err
	}
	if _, err := os.Stat(m.dir(name)); errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat(m.lockPath(name)); errors.Is(err, os.ErrNotExist) {
			return false, nil // do not make a lock for a plane that never was
		}
	}
	lock, err := m.lock(ctx, name)
	if err != nil {
		return false, err
	}
	defer m.unlock(lock, name)
	_, err = os.Stat(m.dir(name))
	return err == nil, m.remove(ctx, m.dir(name))
}

// unlock ends this command's turn; a plane that is gone keeps no lock either.
func (m *Manager) unlock(lock *filelock.Lock, name string) {
	if _, err := os.Stat(m.dir(name)); errors.Is(err, os.ErrNotExist) {
		lock.Remove()
		return
	}
	lock.Release()
}

// remove stops every process that is recorded in the folder and deletes it.
func (m *Manager) remove(ctx context.Context, dir string) error {
	if err := stopAll(ctx, processes(dir)); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove the plane's folder: %w", err)
	}
	return nil
}

// stopAll ends the store last, so that the others can still finish.
func stopAll(ctx context.Context, all []proc.Process) error {
	var clients, stores []proc.Process
	for _, p := range all {
		if p.Name == storeName {
			stores = append(stores, p)
		} else {
			clients = append(clients, p)
		}
	}
	return errors.Join(proc.Stop(ctx, stopGrace, clients...), proc.Stop(ctx, stopGrace, stores...))
}

func (m *Manager) dir(name string) string      { return filepath.Join(m.Root, name) }
func (m *Manager) lockPath(name string) string { return filepath.Join(m.Root, name+".lock") }

func (m *Manager) lock(ctx context.Context, name string) (*filelock.Lock, error) {
	lock, err := filelock.Acquire(ctx, m.lockPath(name), func(holder string) {
		m.notify("another command (pid %s) is at work on plane %q; waiting for it", holder, name)
	})
	if err != nil {
		return nil, fmt.Errorf("wait for plane %q: %w", name, err)
	}
	return lock, nil
}

func (m *Manager) notify(format string, args ...any) {
	if m.Notify != nil {
		m.Notify(fmt.Sprintf(format, args...))
	}
}

func indented(lines []string) string {
	if len(lines) == 0 {
		return "\n\t(nothing in its log)"
	}
	return "\n\t" + strings.Join(lines, "\n\t")
}
