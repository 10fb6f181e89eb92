package sim

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/homeostat-dev/homeostat/operator"
)

// Scenario is a little world and what its users do in it.
type Scenario struct {
	Name string
	// API is what the server serves: built once, shared by all runs.
	API *API
	// Operators run in one process, each in a core of its own.
	Operators []*operator.Operator
	// Actors play the rest of the cluster.
	Actors []Actor
	// Script is what users do, one action after the other, each when the world
	// has come to rest or, where the action says so, earlier.
	Script []Action
	// Invariants must hold at every write.
	Invariants []Invariant
	// Prepare changes the server before anything happens, nil for nothing.
	Prepare func(*Server)
	// Patience is how far ahead the nearest timer must be for the world to count
	// as at rest. Zero: 30 minutes.
	Patience time.Duration
	// MaxSteps bounds a run. Zero: 5000.
	MaxSteps int
}

// Actor plays a part of the cluster. Step looks at the server as it is, makes
// at most one write, and reports whether it made one.
type Actor struct {
	Name string
	Step func(s *Server, now time.Time) bool
}

// Action is something that a user does.
type Action struct {
	Name string
	Do   func(c Client) error
	// When says that the time has come, before the world is at rest; nil: at rest.
	When func(s *Server) bool
}

// Invariant is a property of every write, given the server after it.
type Invariant struct {
	Name  string
	Holds func(r Record, s *Server) error
}

// FaultKind is what goes wrong with a write.
type FaultKind string

// The faults. A process that crashes forgets everything and starts again.
const (
	CrashBefore FaultKind = "crash before"
	CrashAfter  FaultKind = "crash after"
	// Lost writes, and answers with a timeout.
	Lost FaultKind = "response lost of"
	// The others answer without writing.
	Unsent   FaultKind = "connection refused at"
	Conflict FaultKind = "409 at"
	Internal FaultKind = "500 at"
	TooMany  FaultKind = "429 at"
)

// Fault is one thing that goes wrong: at the n-th write, counted from one over
// all cores.
type Fault struct {
	Kind  FaultKind
	Write int
	// Lists are what the process starts from after a crash.
	Lists Lists
}

func (f Fault) String() string {
	s := fmt.Sprintf("%s write %d", f.Kind, f.Write)
	if f.Kind == CrashBefore || f.Kind == CrashAfter {
		s += ", start from " + f.Lists.String()
	}
	return s
}

// Lists are the first lists of a process: those of a server that lags, which
// is legal when a process starts. The zero value is fresh.
type Lists struct {
	// Back is by how many versions of each kind.
	Back int
	// Kind, where given, is the only kind that lags.
	Kind schema.GroupVersionKind
}

func (l Lists) String() string {
	switch {
	case l.Back == 0:
		return "fresh lists"
	case l.Kind.Empty():
		return fmt.Sprintf("lists %d versions back", l.Back)
	}
	return fmt.Sprintf("a list of %s %d versions back", l.Kind.Kind, l.Back)
}

// Schedule says what happens in a run besides the script. The zero value is
// the fair schedule without faults.
type Schedule struct {
	Faults []Fault
	// Slow is a kind whose events arrive only when nothing else can happen;
	// empty: none.
	Slow schema.GroupVersionKind
	// Seed, where not zero, picks at random what happens next instead of taking turns.
	Seed uint64
}

func (s Schedule) String() string {
	text := "fair"
	if s.Seed != 0 {
		text = fmt.Sprintf("seed %d", s.Seed)
	}
	if !s.Slow.Empty() {
		text += ", slow " + s.Slow.Kind
	}
	for _, f := range s.Faults {
		text += ", " + f.String()
	}
	return text
}
