package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/homeostat-dev/homeostat/engine"
	"github.com/homeostat-dev/homeostat/engine/plan"
	"github.com/homeostat-dev/homeostat/operator"
)

// Epoch is when every simulated world begins.
var Epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// restart is how long a process that died is away.
const restart = time.Second

// pause is how long a user looks at a world at rest before doing the next thing.
const pause = 10 * time.Second

// maxPasses is how many parents of one operator are worked on at once.
const maxPasses = 4

// run is one run of a scenario under a schedule.
type run struct {
	scenario Scenario
	schedule Schedule
	server   *Server
	now      time.Time
	random   *rand.Rand

	cores   []*process
	held    bool // deliveries wait until nothing else can happen
	idle    map[string]int64
	turn    map[string]int
	late    map[string]int // since which step a slow kind has had something to deliver
	script  []Action
	steps   int
	checked int
	outcome Outcome
	tell    func(format string, args ...any)
}

// process is one core with its caches' place in the watch streams.
type process struct {
	operator *operator.Operator
	core     *engine.Core
	cursors  map[schema.GroupVersionKind]int
	passes   []*engine.Pass
	next     time.Time
}

// move is one thing that can happen next.
type move struct {
	key string
	do  func() error
}

// Run runs a scenario under a schedule to its end.
func Run(scenario Scenario, schedule Schedule) *Outcome {
	return start(scenario, schedule, func(string, ...any) {}).finish()
}

func start(scenario Scenario, schedule Schedule, tell func(string, ...any)) *run {
	if scenario.Patience == 0 {
		scenario.Patience = 30 * time.Minute
	}
	if scenario.MaxSteps == 0 {
		scenario.MaxSteps = 5000
	}
	r := &run{
		scenario: scenario, schedule: schedule, server: NewServer(scenario.API), now: Epoch,
		idle: map[string]int64{}, turn: map[string]int{}, late: map[string]int{}, script: scenario.Script, tell: tell,
		outcome: Outcome{Scenario: scenario.Name, Schedule: schedule},
	}
	if schedule.Seed != 0 {
		r.random = rand.New(rand.NewPCG(schedule.Seed, 1))
	}
	if scenario.Prepare != nil {
		scenario.Prepare(r.server)
	}
	return r
}

func (r *run) finish() *Outcome {
	err := r.boot(Lists{})
	for err == nil && r.steps < r.scenario.MaxSteps {
		var more bool
		if more, err = r.step(); !more {
			break
		}
	}
	if err == nil && r.steps >= r.scenario.MaxSteps {
		err = fmt.Errorf("not at rest after %d steps and %v of virtual time", r.steps, r.now.Sub(Epoch))
	}
	r.outcome.Err = err
	r.outcome.Steps = r.steps
	r.outcome.Records = r.server.Records()
	r.outcome.End = masked(r.server)
	return &r.outcome
}

// boot starts the process: new cores, which know nothing but their first lists.
func (r *run) boot(lists Lists) error {
	r.cores, r.held = nil, lists.Back > 0
	for _, op := range r.scenario.Operators {
		core, err := engine.NewCore(op, engine.CoreOptions{})
		if err != nil {
			return fmt.Errorf("make a core: %w", err)
		}
		p := &process{operator: op, core: core, cursors: map[schema.GroupVersionKind]int{}}
		for _, k := range core.Kinds() {
			kind, back := k.GroupVersionKind, lists.Back
			if !lists.Kind.Empty() && lists.Kind != kind {
				back = 0
			}
			cut := max(0, len(r.server.Log(kind))-back)
			objects, version := r.server.At(kind, cut)
			if back == 0 {
				version = strconv.FormatInt(r.server.Revision(), 10)
			}
			core.Replace(kind, objects, version)
			if kind == op.Parent.GroupVersionKind && cut < len(r.server.Log(kind)) {
				r.outcome.Repeats++
			}
			p.cursors[kind] = cut
		}
		r.cores = append(r.cores, p)
	}
	return nil
}

// step lets one thing happen; more is false when the world is at rest and the
// script is over.
func (r *run) step() (more bool, err error) {
	moves := r.moves()
	switch {
	case len(moves) > 0:
		m := r.pick(moves)
		err = m.do()
	case r.held:
		r.held = false
		return true, nil
	case r.wait():
		return true, nil
	case len(r.script) > 0:
		err = r.act()
	default:
		return false, nil
	}
	r.steps++
	if err == nil {
		err = r.check()
	}
	return true, err
}

// moves are the things that can happen now. Deliveries of slow kinds are among
// them only when there is nothing else.
func (r *run) moves() []move {
	moves, slow := r.deliveries()
	for i, p := range r.cores {
		r.pull(p)
		if len(p.passes) > 0 {
			moves = append(moves, move{fmt.Sprintf("core %d", i), func() error { return r.advance(p) }})
		}
	}
	for _, a := range r.scenario.Actors {
		if r.idle[a.Name] != r.server.Revision() {
			moves = append(moves, move{"actor " + a.Name, func() error { r.let(a); return nil }})
		}
	}
	if len(r.script) > 0 && r.script[0].When != nil && r.script[0].When(r.server) {
		moves = append(moves, move{"user", r.act})
	}
	if len(moves) == 0 {
		return slow
	}
	return moves
}

func (r *run) deliveries() (moves, slow []move) {
	if r.held {
		return nil, nil
	}
	for i, p := range r.cores {
		for _, k := range p.core.Kinds() {
			kind := k.GroupVersionKind
			if p.cursors[kind] == len(r.server.Log(kind)) {
				continue
			}
			m := move{deliveryKey(i, kind), func() error { r.deliver(i, p, kind); return nil }}
			if kind == r.schedule.Slow && !r.overdue(m.key) {
				slow = append(slow, m)
			} else {
				moves = append(moves, m)
			}
		}
	}
	return moves, slow
}

// overdue reports whether a late event has been late for long enough: lag is
// long, but not without end.
func (r *run) overdue(key string) bool {
	since, waiting := r.late[key]
	if !waiting {
		since, r.late[key] = r.steps, r.steps
	}
	return r.steps-since > mostLate
}

// mostLate is how many things may happen before an event of a slow kind arrives.
const mostLate = 60

// pick takes turns, or draws.
func (r *run) pick(moves []move) move {
	if r.random != nil {
		return moves[r.random.IntN(len(moves))]
	}
	first := slices.MinFunc(moves, func(a, b move) int { return r.turn[a.key] - r.turn[b.key] })
	r.turn[first.key] = r.steps + 1
	return first
}

func deliveryKey(core int, kind schema.GroupVersionKind) string {
	return fmt.Sprintf("deliver %d %s", core, kind.Kind)
}

func (r *run) deliver(i int, p *process, kind schema.GroupVersionKind) {
	e := r.server.Log(kind)[p.cursors[kind]]
	p.cursors[kind]++
	delete(r.late, deliveryKey(i, kind))
	p.core.Observe(kind, e.Object.DeepCopy(), e.Type == watch.Deleted)
}

// pull takes the passes that are due.
func (r *run) pull(p *process) {
	for len(p.passes) < maxPasses {
		pass, at := p.core.Next(r.now)
		if p.next = at; pass == nil {
			return
		}
		p.passes = append(p.passes, pass)
	}
}

// advance carries out one operation of the pass whose turn it is.
func (r *run) advance(p *process) error {
	pass := p.passes[0]
	p.passes = slices.Delete(p.passes, 0, 1)
	op, more := pass.Step()
	if !more {
		p.core.Finish(pass, r.now)
		return nil
	}
	before := len(r.server.Records())
	result, crash, err := r.perform(op)
	r.narrate(op, before, result)
	if err != nil || crash != nil {
		if crash == nil {
			return err
		}
		r.tell("the process dies and starts again from %v", crash.Lists)
		r.now = r.now.Add(restart)
		return r.boot(crash.Lists)
	}
	pass.Done(result)
	p.passes = append(p.passes, pass)
	return nil
}

// perform carries out an operation, with the fault that the schedule has for it.
func (r *run) perform(op plan.Op) (result plan.Result, crash *Fault, err error) {
	if !op.Writes() {
		r.outcome.Reads++
		return r.server.Do(op, r.now), nil, nil
	}
	r.outcome.Writes++
	if op.Verb == plan.Tell {
		r.outcome.Told++
	}
	i := slices.IndexFunc(r.schedule.Faults, func(f Fault) bool { return f.Write == r.outcome.Writes })
	if i < 0 {
		if op.Verb != plan.Tell {
			r.outcome.SinceFault++
		}
		return r.server.Do(op, r.now), nil, nil
	}
	fault := &r.schedule.Faults[i]
	r.outcome.Hit++
	r.outcome.SinceFault = 0
	switch fault.Kind {
	case CrashBefore:
		return plan.Result{}, fault, nil
	case CrashAfter:
		return r.server.Do(op, r.now), fault, nil
	case Lost:
		answer := r.server.Do(op, r.now)
		if n := len(r.server.records); n > 0 {
			r.server.records[n-1].Lost = true
		}
		if answer.Err != nil {
			return answer, nil, nil
		}
	}
	return plan.Result{Err: refusal(fault.Kind, op)}, nil, nil
}

// refusal is the error that a client makes of a fault.
func refusal(kind FaultKind, op plan.Op) error {
	ref := op.Ref()
	switch kind {
	case Conflict:
		return conflict(ref, "simulated: somebody else was faster")
	case Internal:
		return apierrors.NewInternalError(fmt.Errorf("simulated"))
	case TooMany:
		return apierrors.NewTooManyRequests("simulated: too many requests", 1)
	case Unsent:
		return &url.Error{Op: "Patch", URL: "simulated:///" + ref.String(), Err: syscall.ECONNREFUSED}
	}
	return &url.Error{Op: "Patch", URL: "simulated:///" + ref.String(), Err: context.DeadlineExceeded}
}

// let gives an actor its turn.
func (r *run) let(a Actor) {
	before := len(r.server.Records())
	if !a.Step(r.server, r.now) {
		r.idle[a.Name] = r.server.Revision()
	}
	for _, record := range r.server.Records()[before:] {
		r.tell("%s", record)
	}
}

// act lets the user do the next thing.
func (r *run) act() error {
	action := r.script[0]
	r.script = r.script[1:]
	if action.When == nil {
		r.now = r.now.Add(pause)
	}
	before := len(r.server.Records())
	err := action.Do(r.server.As("user", r.now).Because(action.Name))
	r.tell("user: %s", action.Name)
	for _, record := range r.server.Records()[before:] {
		r.tell("  %s", record)
	}
	if err != nil {
		return fmt.Errorf("the script's %q: %w", action.Name, err)
	}
	return nil
}

// wait lets time pass to the nearest timer; false means that there is none near.
func (r *run) wait() bool {
	var next time.Time
	for _, p := range r.cores {
		if !p.next.IsZero() && (next.IsZero() || p.next.Before(next)) {
			next = p.next
		}
	}
	if next.IsZero() || next.Sub(r.now) > r.scenario.Patience {
		return false
	}
	if r.now = later(r.now, next); len(r.script) == 0 {
		r.outcome.Waits++
	}
	r.steps++
	return true
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// check holds what was written in the last step against the rules.
func (r *run) check() error {
	records := r.server.Records()
	for ; r.checked < len(records); r.checked++ {
		record := records[r.checked]
		if err := r.fair(record); err != nil {
			return fmt.Errorf("%v: %w", record, err)
		}
		for _, i := range r.scenario.Invariants {
			if err := i.Holds(record, r.server); err != nil {
				return fmt.Errorf("invariant %q at %v: %w", i.Name, record, err)
			}
		}
	}
	return nil
}

// narrate tells what an operation did.
func (r *run) narrate(op plan.Op, before int, result plan.Result) {
	records := r.server.Records()[before:]
	for _, record := range records {
		r.tell("%s", record)
	}
	switch {
	case result.Err != nil && (len(records) == 0 || records[0].Err == nil):
		r.tell("  %s %v answers: %v", op.Verb, op.Ref(), result.Err)
	case len(records) == 0:
		r.tell("%s reads %v: %s", "the core", op.Ref(), op.Reason)
	}
}

// object is what a record is about, as it was last.
func object(record Record) *unstructured.Unstructured {
	if record.After != nil {
		return record.After
	}
	return record.Before
}
