package engine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/homeostat-dev/homeostat/engine/plan"
	"github.com/homeostat-dev/homeostat/engine/report"
	"github.com/homeostat-dev/homeostat/operator"
)

// Pass brings one parent to rest. It is a state machine: Step gives the next
// API operation, Done takes its answer, and each round asks Sync again on a
// world into which the answers are folded:
//
//	members ─▶ decide ─▶ children ─▶ own spec ─▶ status ─▶ events ─▶ end
//	              ▲          │           │          │
//	              └──────────┴───────────┴──────────┘ while anything was written
//
// The order is the contract: children are settled before the status is saved,
// and Sync acts on a saved status only in the round after.
type Pass struct {
	core   *Core
	memory *parent
	number int64
	woken  string
	now    time.Time
	record PassRecord

	parent   *unstructured.Unstructured
	selects  *selected
	decision *operator.Decision
	failure  *operator.Failure
	problems []plan.Problem
	waiting  []operator.Ref
	taken    []operator.Ref
	until    time.Time

	ops      []plan.Op
	prunes   int // how many of ops, from the end, delete what is no longer listed
	position int
	rounds   int
	telling  bool
	over     bool
	// announcing is true of a pass that only tells news.
	announcing bool

	refusals
}

func newPass(c *Core, p *parent, now time.Time) *Pass {
	return &Pass{core: c, memory: p, woken: p.woken, now: now, refusals: refusals{refused: map[operator.Ref]plan.Problem{}}}
}

// Parent names the parent.
func (p *Pass) Parent() types.NamespacedName { return p.memory.name }

// Number tells the pass from all others of its core, in logs.
func (p *Pass) Number() int64 { return p.number }

// Tells reports whether the pass only tells what earlier ones did.
func (p *Pass) Tells() bool { return p.announcing }

// Woken says what caused the pass.
func (p *Pass) Woken() string { return p.woken }

// Step is the next operation to carry out; more is false when the pass is over.
// Its answer must be given to Done before Step is called again.
func (p *Pass) Step() (op plan.Op, more bool) {
	for !p.over {
		if p.position < len(p.ops) {
			return p.ops[p.position], true
		}
		p.ops, p.prunes, p.position = nil, 0, 0
		p.advance()
	}
	return plan.Op{}, false
}

// Done takes the answer to the operation that Step gave last.
func (p *Pass) Done(result plan.Result) {
	op := p.ops[p.position]
	p.position++
	p.record.add(op, result)
	if op.Verb == plan.Tell && (result.Err == nil || apierrors.IsAlreadyExists(result.Err)) {
		p.memory.told[op.Name] = true
		return
	}
	if result.Err == nil {
		p.memory.news.note(op, result)
		p.fold(op, result.Object)
		return
	}
	if p.position <= len(p.ops)-p.prunes { // Something wanted is not there: nothing is pruned yet.
		p.ops, p.prunes = p.ops[:len(p.ops)-p.prunes], 0
	}
	switch verdict := p.judge(op, result.Err); verdict {
	case verdictGone:
		p.note(p.core.world.Gone(op.Ref(), op.UID))
	case verdictReread:
		p.ops = slices.Insert(p.ops, p.position, reading(op))
	case verdictOver:
		p.over = true
	}
}

// fold puts the answer to an operation into the world at once: the echo that
// will come by watch is then no news, and the next round decides on it.
func (p *Pass) fold(op plan.Op, object *unstructured.Unstructured) {
	if op.Verb == plan.Read && op.Kind.GroupVersionKind == p.core.operator.Parent.GroupVersionKind {
		p.live = true
	}
	if op.Ref().Kind != p.core.operator.Parent.GroupVersionKind {
		p.memory.fights.note(op, p.now)
	}
	// Services, claims and others answer a deletion with the object as it was; one
	// that is only on its way out says so.
	if object == nil || op.Verb == plan.Delete && object.GetDeletionTimestamp() == nil {
		p.note(p.core.world.Gone(op.Ref(), op.UID))
		return
	}
	if op.Verb == plan.Read {
		p.memory.fights.witness(object, p.core.operator.Manager())
	}
	op.Prove(&p.memory.memo, object)
	p.note(p.core.world.Put(object))
}

// advance fills ops with what to do next, or ends the pass.
func (p *Pass) advance() {
	c := p.core
	p.parent = c.world.Get(operator.Ref{Kind: c.operator.Parent.GroupVersionKind, Namespace: p.memory.name.Namespace, Name: p.memory.name.Name})
	if p.telling || p.parent == nil || p.parent.GetUID() != p.memory.uid {
		p.over = true
		return
	}
	if p.announcing {
		p.announcement()
		return
	}
	if p.selects = c.selected(p.memory.name); p.selects == nil {
		p.over = true // Deleted this moment: it selects nothing, which must release nothing.
		return
	}
	if p.unstable == nil {
		if p.ops = p.members(); len(p.ops) > 0 && (p.ops[0].Verb == plan.Read || p.round(p.ops[0].String())) {
			return
		}
		p.ops = nil
	}
	if p.decide(); len(p.ops) > 0 || p.over {
		return
	}
	if p.ops = p.sets(); len(p.ops) > 0 {
		return
	}
	if op, ok := c.shape.Write(p.facts(), &p.memory.memo); ok && p.statusRefused == nil {
		if p.unstable != nil || p.round("its status") {
			p.ops = []plan.Op{op}
		}
		return // Once out of rounds, the next step reports just that.
	}
	p.tell()
}

// decide asks Sync, until it takes no more names for free that are taken, and
// plans its children.
func (p *Pass) decide() {
	if err := cmp.Or(p.selects.err, p.blind(), p.badStatus); err != nil {
		p.fail(err)
		return
	}
	for p.unstable == nil {
		request := p.request()
		decision, err := p.core.operator.Decide(request)
		if err != nil {
			p.fail(err)
			return
		}
		p.decision, p.failure, p.until = &decision, nil, decision.Until
		made := plan.Make(p.input(request, decision))
		if p.learn(made.Taken) {
			continue
		}
		p.problems, p.waiting = made.Problems, made.Waiting
		p.ops = p.allowed(made)
		if len(p.ops) > 0 && !p.round(p.ops[0].String()) {
			p.ops = nil
			continue
		}
		return
	}
	p.fail(p.unstable)
}

// blind is the failure of an operator that may not see a kind it needs: what it
// cannot see is not absent.
func (p *Pass) blind() error {
	for _, k := range p.core.operator.Kinds() {
		if err := p.core.world.Missing(k.GroupVersionKind); err != nil && !apierrors.IsNotFound(err) {
			return operator.Stall("CannotWatch", "the operator may not list or watch %v; apply the role that its manifests command prints", k)
		}
	}
	return nil
}

// sets plans the fields of the parent's own spec that Sync writes: after the
// children and before the status.
func (p *Pass) sets() []plan.Op {
	if _, no := p.refused[plan.RefOf(p.parent)]; no || p.decision == nil || p.statusRefused != nil || p.parent.GetDeletionTimestamp() != nil {
		return nil
	}
	op, ok := plan.SetParent(p.core.operator, p.parent, p.decision.Parent)
	if !ok || !p.round("its own spec") {
		return nil
	}
	return []plan.Op{op}
}

// round counts a round in which something is written and reports whether there
// may be one.
func (p *Pass) round(what string) bool {
	if p.rounds++; p.rounds <= p.core.options.MaxRounds+p.conflicts {
		return true
	}
	p.unstable = &operator.Failure{
		Kind: operator.FailureUnstable, Reason: "Unstable",
		Message: fmt.Sprintf("Sync changed its answer %d times about a world that only it changed, the last time about %s; this is a defect of operator %s",
			p.core.options.MaxRounds, what, p.core.operator.Name),
	}
	p.fail(p.unstable)
	return false
}

// learn remembers the names that turned out to be taken; true means that Sync
// must be asked again because some are new to it.
func (p *Pass) learn(taken []operator.Ref) bool {
	news := false
	for _, ref := range taken {
		// One that keeps choosing taken names is told no more: report them as they are.
		if len(p.taken) < 10*p.core.options.MaxRounds && !slices.Contains(p.taken, ref) {
			p.taken, news = append(p.taken, ref), true
		}
	}
	return news
}

// fail records why Sync has no usable answer. Children stay as they are.
func (p *Pass) fail(err error) {
	p.decision, p.problems, p.waiting, p.until = nil, nil, nil, time.Time{}
	p.failure = operator.AsFailure(err)
	if panicked, ok := errors.AsType[*operator.Panicked](err); ok {
		p.failure.Message = fmt.Sprintf("%.200s; this is a defect of operator %s, its log has the stack", p.failure.Message, p.core.operator.Name)
		p.stack = panicked.Stack
	}
}

// allowed are the planned operations that this pass may still carry out:
// nothing that was refused in it, and no pruning while anything is missing.
func (p *Pass) allowed(made plan.Plan) []plan.Op {
	ops := made.Ops
	p.prunes = made.Prunes
	if len(p.refused)+len(made.Problems) > 0 {
		ops, p.prunes = ops[:len(ops)-made.Prunes], 0
	}
	return p.peaceful(slices.DeleteFunc(ops, func(op plan.Op) bool { _, no := p.refused[op.Ref()]; return no }))
}

// tell plans the events that have become true since the last pass, and ends.
func (p *Pass) tell() {
	p.telling = true
	facts := p.facts()
	still, planned := map[string]bool{}, map[string]bool{}
	for _, e := range report.Events(facts) {
		op, err := report.Tell(p.core.operator, facts, e)
		switch {
		case err != nil || planned[op.Name]:
		case p.memory.told[op.Name]:
			still[op.Name] = true
		case !p.terminating:
			planned[op.Name] = true
			p.ops = append(p.ops, op)
		}
	}
	p.memory.told = still // Those of p.ops join them once they are told.
	p.forget()
}

func (p *Pass) facts() report.Facts {
	return report.Facts{
		Parent: p.parent, Decision: p.decision, Failure: p.failure, Problems: slices.Concat(p.problems, p.sortedRefusals()),
		Waiting: p.waiting, Standing: p.core.world.Get, Now: p.now,
	}
}

func (p *Pass) request() operator.Request {
	c := p.core
	namespace := p.parent.GetNamespace()
	var related []*unstructured.Unstructured
	seen := map[operator.Ref]bool{} // Two Reads of a kind may select the same object.
	for i, r := range c.operator.Reads {
		for _, o := range c.world.Select(r.Kind.GroupVersionKind, namespace, p.selects.reads[i]) {
			if ref := plan.RefOf(o); !seen[ref] {
				seen[ref] = true
				related = append(related, o)
			}
		}
	}
	return operator.Request{
		Parent:   p.parent,
		Children: c.operator.Objects(namespace, p.children()),
		Related:  c.operator.Objects(namespace, related),
		Now:      p.now.UTC().Truncate(time.Microsecond),
		Deleting: p.parent.GetDeletionTimestamp() != nil,
		Taken:    slices.Clone(p.taken),
	}
}

func (p *Pass) input(r operator.Request, d operator.Decision) plan.Input {
	return plan.Input{
		Operator: p.core.operator, Parent: p.parent, Desired: d.Children, Children: p.children(),
		Standing: p.core.world.Get, Missing: p.core.world.Missing, Memo: &p.memory.memo,
	}
}

// children are the objects that the parent controls and, where a rule adopts,
// that still match it.
func (p *Pass) children() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, rule := range p.core.operator.Children {
		controlled := p.core.world.Controlled(rule.Kind.GroupVersionKind, p.memory.uid)
		if rule.Adopt != nil {
			matches := p.selects.adopts[rule.Kind.GroupVersionKind]
			controlled = slices.DeleteFunc(controlled, func(o *unstructured.Unstructured) bool {
				return !matches.Matches(p.parent.GetNamespace(), o)
			})
		}
		out = append(out, controlled...)
	}
	return out
}

// forget drops the proofs about children that are no more.
func (p *Pass) forget() {
	live := map[types.UID]bool{p.memory.uid: true}
	for _, o := range p.children() {
		live[o.GetUID()] = true
	}
	p.memory.memo.Forget(live)
	p.memory.fights.forget(p.now)
}

// wants are the names at which the pass wants children.
func (p *Pass) wants() []operator.Ref {
	refs := slices.Clone(p.taken)
	if p.decision != nil {
		for _, d := range p.decision.Children {
			refs = append(refs, d.Ref())
		}
	}
	return refs
}

// settled reports whether the parent is at rest as desired.
func (p *Pass) settled() bool {
	return p.transient == nil && p.failure == nil && len(p.problems) == 0 && len(p.refused) == 0 && p.statusRefused == nil
}

func reading(op plan.Op) plan.Op {
	return plan.Op{Verb: plan.Read, Kind: op.Kind, Namespace: op.Namespace, Name: op.Name, UID: op.UID, Reason: "the cache was behind: " + string(op.Verb) + " met another version"}
}
