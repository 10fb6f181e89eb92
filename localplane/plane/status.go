package plane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/homeostat-dev/homeostat/localplane/filelock"
	"github.com/homeostat-dev/homeostat/localplane/node"
)

// The states of a plane.
const (
	// StateRunning: all processes run.
	StateRunning = "running"
	// StateStarting: a command is starting the plane.
	StateStarting = "starting"
	// StateDegraded: some processes have died; up starts them again.
	StateDegraded = "degraded"
	// StateStopped: no process runs; up starts the plane with its data.
	StateStopped = "stopped"
	// StateUnfinished: a start failed or was killed; up starts anew, down cleans up.
	StateUnfinished = "unfinished"
)

// Status describes a plane. Its JSON form is what programs read.
type Status struct {
	Name string `json:"name"`
	// State is one of the constants above.
	State string `json:"state"`
	// Message says what to do, unless the plane runs.
	Message string `json:"message,omitempty"`
	// Kubernetes is the version of the API server.
	Kubernetes string `json:"kubernetes,omitempty"`
	Server     string `json:"server,omitempty"`
	Kubeconfig string `json:"kubeconfig,omitempty"`
	Kubectl    string `json:"kubectl,omitempty"`
	Dir        string `json:"dir"`
	// AuditLog is empty when the plane keeps none.
	AuditLog string `json:"auditLog,omitempty"`
	Nodes    Nodes  `json:"nodes"`
	// New is true in the answer of an up that made the plane, and false in that
	// of one that found it, also when it started again what had died of it.
	New       bool            `json:"new,omitempty"`
	Processes []ProcessStatus `json:"processes,omitempty"`
}

// Nodes describes a plane's nodes.
type Nodes struct {
	// Provider is the description, such as simulated=1.
	Provider string `json:"provider"`
	// Notice is what a user must know about them.
	Notice string `json:"notice,omitempty"`
}

// ProcessStatus describes a process of a plane.
type ProcessStatus struct {
	Name  string `json:"name"`
	PID   int    `json:"pid"`
	Alive bool   `json:"alive"`
	Log   string `json:"log"`
}

// Status describes the plane of that name; [ErrNoPlane] when there is none.
// It takes no lock and changes nothing.
func (m *Manager) Status(name string) (Status, error) {
	if err := CheckName(name); err != nil {
		return Status{}, err
	}
	dir := m.dir(name)
	rec, err := load(dir)
	if errors.Is(err, os.ErrNotExist) {
		return Status{}, fmt.Errorf("%w: %q", ErrNoPlane, name)
	}
	damage := err
	status := Status{Name: name, Dir: dir}
	if damage == nil {
		status = describe(rec)
	}
	var dead []string
	for _, process := range processes(dir) {
		alive := process.Alive()
		status.Processes = append(status.Processes, ProcessStatus{
			Name: process.Name, PID: process.PID, Alive: alive, Log: process.Log,
		})
		if !alive {
			dead = append(dead, process.Name)
		}
	}
	switch {
	case damage == nil:
		status.State, status.Message = m.judge(rec, dead, len(status.Processes))
	case len(dead) < len(status.Processes):
		status.State, status.Message = StateDegraded, damage.Error()+"; take it down first (down), then up starts it anew"
	default:
		status.State, status.Message = StateUnfinished, damage.Error()+": up starts it anew, down cleans up"
	}
	return status, nil
}

func describe(rec *record) Status {
	status := Status{
		Name: rec.Name, Dir: rec.dir, Kubernetes: rec.Binaries.Version,
		Kubeconfig: rec.path("kubeconfig"), Kubectl: rec.Binaries.Path("kubectl"),
		Nodes: Nodes{Provider: rec.Nodes},
	}
	if port := rec.Ports[apiServerName]; port != 0 {
		status.Server = address(port)
	}
	if rec.Audit {
		status.AuditLog = rec.path("audit.log")
	}
	if provider, err := node.Parse(rec.Nodes); err == nil {
		status.Nodes.Notice = provider.Notice()
	}
	return status
}

func (m *Manager) judge(rec *record, dead []string, all int) (state, message string) {
	switch {
	case rec.Phase == phaseStarting && m.busy(rec.Name):
		return StateStarting, "another command is starting it"
	case rec.Phase == phaseStarting:
		return StateUnfinished, "its start failed or was killed: up starts it anew, down cleans up"
	case len(dead) == 0:
		return StateRunning, ""
	case len(dead) == all:
		return StateStopped, "none of its processes runs: up starts it again"
	}
	return StateDegraded, strings.Join(dead, ", ") + " died: up starts again what is missing"
}

// busy says whether another command holds the plane's lock.
func (m *Manager) busy(name string) bool {
	lock, err := filelock.TryAcquire(m.lockPath(name))
	if err != nil {
		return true
	}
	lock.Release()
	return false
}

// Names lists the planes, in order.
func (m *Manager) Names() ([]string, error) {
	entries, err := os.ReadDir(m.Root)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("list the planes in %s: %w", filepath.Clean(m.Root), err)
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() && validName.MatchString(entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}
