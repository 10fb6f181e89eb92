package engine

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/homeostat-dev/homeostat/engine/plan"
	"github.com/homeostat-dev/homeostat/operator"
)

// fights are the fields of one parent's children that somebody keeps changing
// and we keep setting back. Two writers that each insist would go on for ever,
// at full speed; ours gives up first and says so.
type fights map[fightKey]*fight

type fightKey struct {
	ref  operator.Ref
	path string
}

// fight is a field that was set back. What is wanted of the child stayed the
// same over all its rounds: a change of the spec, of what Sync reads or of time
// makes another value, and a new fight.
type fight struct {
	desired string
	rounds  int
	last    time.Time
	// others are the field managers that own the field too, once known.
	others []string
}

const (
	// mostRounds is how often a field is set back before we stop. People who
	// edit by hand do not come this far; a controller does in a second.
	mostRounds = 8
	// fightWindow is how long a fight is remembered after its last round; then
	// we try again.
	fightWindow = 10 * time.Minute
)

// note counts the rounds of a write that was carried out. A child that is made
// anew because it differs counts like one that is changed.
func (f fights) note(op plan.Op, now time.Time) {
	for _, c := range op.Changes {
		key := fightKey{op.Ref(), c.Path}
		old := f[key]
		if old == nil || old.desired != op.Desired() || now.Sub(old.last) > fightWindow {
			old = &fight{desired: op.Desired()}
			f[key] = old
		}
		old.rounds, old.last = old.rounds+1, now
	}
}

// lost is the field for which an operation has been carried out often enough.
func (f fights) lost(op plan.Op, now time.Time) (string, *fight) {
	for _, c := range op.Changes {
		g := f[fightKey{op.Ref(), c.Path}]
		if g != nil && g.rounds >= mostRounds && g.desired == op.Desired() && now.Sub(g.last) <= fightWindow {
			return c.Path, g
		}
	}
	return "", nil
}

// forget drops what is over.
func (f fights) forget(now time.Time) {
	for k, g := range f {
		if now.Sub(g.last) > fightWindow {
			delete(f, k)
		}
	}
}

// peaceful takes the operations out of a plan that would only go on with a
// fight, and reports each as a problem. The object is read live first, for the
// name of the other writer: caches keep our own entries only.
func (p *Pass) peaceful(ops []plan.Op) []plan.Op {
	var out []plan.Op
	for _, op := range ops {
		path, lost := p.memory.fights.lost(op, p.now)
		switch {
		case lost == nil:
			out = append(out, op)
		case lost.others == nil:
			read := reading(op)
			read.Reason = "to learn who else writes " + path
			p.prunes = 0
			return []plan.Op{read}
		default:
			p.problems = append(p.problems, plan.Problem{Ref: op.Ref(), Reason: "Fighting", Human: true,
				Message: fmt.Sprintf("%s of %v was set back %d times and changed again by %s; it is left for %v: stop one of the two, or leave the field to the other",
					path, op.Ref(), lost.rounds, strings.Join(lost.others, ", "), fightWindow)})
		}
	}
	if len(out) < len(ops) {
		out, p.prunes = out[:len(out)-p.prunes], 0 // What is wanted is not all there.
	}
	return out
}

// witness takes from a live object who else owns the fields we fight about.
func (f fights) witness(object *unstructured.Unstructured, manager string) {
	for k, g := range f {
		if k.ref != plan.RefOf(object) || g.rounds < mostRounds {
			continue
		}
		if g.others = plan.Managers(object, k.path, manager); len(g.others) == 0 {
			g.others = []string{"somebody who leaves no trace"}
		}
	}
}
