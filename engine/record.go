package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/homeostat-dev/homeostat/engine/plan"
)

// The bounds of what is remembered of a pass: whole objects are never kept.
const (
	mostOperations = 8
	mostChanges    = 8
	mostValue      = 200
	mostTrouble    = 500
)

// Record is what the core remembers about one parent, for people. Nothing is
// decided by it, and it is gone with the process.
type Record struct {
	Operator  string `json:"operator"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`

	// Last is the last pass, nil before the first has ended; Wrote is the last that
	// wrote more than a status, nil where that is Last or where there was none.
	Last  *PassRecord `json:"last,omitempty"`
	Wrote *PassRecord `json:"wrote,omitempty"`

	// State is what the parent does now: running, due, waiting for Next, or
	// resting until something is observed.
	State State `json:"state"`
	// Next is when it is looked at again if nothing happens before, nil for never.
	Next *time.Time `json:"next,omitempty"`
	// Woken is what woke it since the last pass began, empty when nothing did.
	Woken string `json:"woken,omitempty"`
	// Failures is how many passes in a row did not bring it to rest.
	Failures int `json:"failures,omitempty"`
}

// State is what a parent does at a moment.
type State string

// The states of a parent.
const (
	Running State = "running"
	Due     State = "due"
	Waiting State = "waiting"
	Resting State = "resting"
)

// PassRecord is one pass over a parent.
type PassRecord struct {
	// Pass is the number that the log has for it.
	Pass int64 `json:"pass"`
	// Woken is what caused it.
	Woken string    `json:"woken"`
	Began time.Time `json:"began"`
	Ended time.Time `json:"ended"`
	// Rounds is how often something was written and Sync asked again.
	Rounds int `json:"rounds"`
	// Decided is what Sync answered last, nil when it had no usable answer.
	Decided *DecisionRecord `json:"decided,omitempty"`
	// Operations are the last ones that were carried out, in order; Omitted is
	// how many came before them.
	Operations []OperationRecord `json:"operations"`
	Omitted    int               `json:"omitted,omitempty"`
	// Settled is true when the parent was at rest as desired, Trouble is why not.
	Settled bool   `json:"settled"`
	Trouble string `json:"trouble,omitempty"`

	wrote bool
}

// DecisionRecord is a decision in numbers.
type DecisionRecord struct {
	// Children is how many children there ought to be.
	Children int `json:"children"`
	// Until is how long the answer holds while nothing changes, nil for ever.
	Until *time.Time `json:"until,omitempty"`
}

// OperationRecord is one operation with its answer.
type OperationRecord struct {
	Verb       string         `json:"verb"`
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Namespace  string         `json:"namespace,omitempty"`
	Name       string         `json:"name"`
	Reason     string         `json:"reason"`
	Changes    []ChangeRecord `json:"changes,omitempty"`
	// Omitted is how many changes there were besides.
	Omitted int `json:"omitted,omitempty"`
	// Answer is "ok" or what was wrong.
	Answer string `json:"answer"`
}

// ChangeRecord is one field of an operation. Values are JSON, cut where they are
// long; an empty one means that the field is absent. Equal values mean that the
// field is as it ought to be and is taken over.
type ChangeRecord struct {
	Path string `json:"path"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// Record is what is remembered about a parent; ok is false when there is none.
func (c *Core) Record(name types.NamespacedName) (r Record, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.parents[name]
	if p == nil {
		return Record{}, false
	}
	r = Record{
		Operator: c.operator.Name, Kind: c.operator.Parent.Kind, Namespace: name.Namespace, Name: name.Name,
		Last: p.last, State: Resting, Failures: p.failures,
	}
	if p.wrote != p.last {
		r.Wrote = p.wrote
	}
	timed := c.queue.timed[name]
	switch {
	case p.running:
		r.State = Running
	case c.queue.waiting[name] != nil:
		r.State = Due
	case timed != nil:
		r.State, r.Next = Waiting, moment(timed.at)
	}
	if p.again || r.State == Due {
		r.Woken = p.woken
	}
	return r, true
}

// remember keeps the record of a pass that has ended.
func (p *parent) remember(pass *Pass, now time.Time) {
	r := pass.record // A copy: what is kept must not hold on to the pass and its objects.
	r.Pass, r.Woken, r.Began, r.Ended, r.Rounds = pass.number, pass.woken, pass.now, now, pass.rounds
	if d := pass.decision; d != nil {
		r.Decided = &DecisionRecord{Children: len(d.Children), Until: moment(d.Until)}
	}
	if r.Operations == nil {
		r.Operations = []OperationRecord{} // A list, as JSON too.
	}
	r.Settled = pass.settled()
	switch err := pass.Err(); {
	case err == nil:
	case pass.transient != nil && len(r.Operations) > 0: // It ended with this operation.
		last := r.Operations[len(r.Operations)-1]
		r.Trouble = fmt.Sprintf("%s %s %s: %s", last.Verb, last.Kind, last.Name, last.Answer)
	default:
		r.Trouble = cut(err.Error(), mostTrouble)
	}
	if p.last = &r; r.wrote {
		p.wrote = &r
	}
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// add records an operation and its answer.
func (r *PassRecord) add(op plan.Op, result plan.Result) {
	if len(r.Operations) == mostOperations {
		r.Operations = slices.Delete(r.Operations, 0, 1)
		r.Omitted++
	}
	secret := op.Kind.Group == corev1.GroupName && op.Kind.Kind == "Secret"
	done := OperationRecord{
		Verb: string(op.Verb), APIVersion: op.Kind.GroupVersion().String(), Kind: op.Kind.Kind,
		Namespace: op.Namespace, Name: op.Name, Reason: cut(op.Reason, mostTrouble), Answer: answer(result.Err, secret),
	}
	for _, c := range op.Changes {
		for _, l := range c.Fields() {
			if len(done.Changes) == mostChanges {
				done.Omitted++
				continue
			}
			done.Changes = append(done.Changes, ChangeRecord{Path: cut(l.Path, mostValue), From: shown(l.From), To: shown(l.To)})
		}
	}
	r.Operations = append(r.Operations, done)
	r.wrote = r.wrote || result.Err == nil && op.Verb != plan.Read && op.Verb != plan.Tell && op.Verb != plan.Status
}

// answer is an error in words. What a server says about a Secret may quote it.
func answer(err error, secret bool) string {
	switch {
	case err == nil:
		return "ok"
	case secret:
		if reason := apierrors.ReasonForError(err); reason != "" {
			return string(reason)
		}
		return "no reason given"
	}
	return cut(err.Error(), mostTrouble)
}

// shown is a value as JSON, empty for one that is absent.
func shown(v any) string {
	switch s, isText := v.(string); {
	case v == nil:
		return ""
	case v == plan.Hidden:
		return plan.Hidden
	case isText && len(s) > mostValue:
		v = cut(s, mostValue) // Not all of a large value needs encoding; it is cut again below.
	}
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return cut(string(data), mostValue)
}

// cut is a text of at most so many bytes, in memory of its own where it was longer.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	most -= len("…")
	for most > 0 && text[most]&0xC0 == 0x80 {
		most--
	}
	return strings.Clone(text[:most]) + "…"
}
