package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/homeostat-dev/homeostat/engine/plan"
	"github.com/homeostat-dev/homeostat/operator"
)

// Outcome is what came of a run.
type Outcome struct {
	Scenario string
	Schedule Schedule
	// Steps, Writes and Reads count what happened: everything, and the
	// operations of the cores. SinceFault counts the writes after the last fault,
	// Events apart; Told is how many of all Writes are Events.
	Steps, Writes, Reads, SinceFault, Told int
	// Waits counts how often time had to pass after the script was over.
	Waits int
	// Repeats is how often the process started from a list in which a parent was
	// older than it is. Such a process lives through the past once more: it may
	// make again what was made since, and delete it again. When only children are
	// older, nothing is repeated: the fences of the writes see to that.
	Repeats int
	// Hit is how many of the schedule's faults came to pass.
	Hit int
	// Records are all writes, End the objects at the end with what may differ
	// from run to run masked.
	Records []Record
	End     map[operator.Ref]map[string]any
	// Err is the first rule that was broken, nil when none was.
	Err error
}

// allowance is how many more writes than the reference a run may need after its
// last fault: a conflict costs a read and a second attempt, a fault's trace in
// the conditions costs two writes.
const allowance = 12

// Against holds an outcome against the one without faults: it must end in the
// same state, with the same objects created and deleted by the cores, after
// about as many writes.
func (o *Outcome) Against(reference *Outcome) error {
	if o.Err != nil {
		return o.Err
	}
	if err := sameEnd(reference.End, o.End); err != nil {
		return err
	}
	made, again := count(reference.Records, Record.Created), count(o.Records, Record.Created)
	if diff := cmp.Diff(made, forgive(made, again, made, o.Repeats)); diff != "" {
		return fmt.Errorf("the cores created other objects (-reference +run, with how often):\n%s", diff)
	}
	went, goes := count(reference.Records, Record.Deleted), count(o.Records, Record.Deleted)
	if diff := cmp.Diff(went, forgive(went, goes, made, o.Repeats)); diff != "" {
		return fmt.Errorf("the cores deleted other objects (-reference +run, with how often):\n%s", diff)
	}
	if writes := reference.Writes - reference.Told; o.SinceFault > writes+allowance {
		return fmt.Errorf("%d writes after the last fault, the whole reference has %d", o.SinceFault, writes)
	}
	return nil
}

// sameEnd compares two ends; it names every object that is there in one only,
// and shows the first of those that differ.
func sameEnd(want, got map[operator.Ref]map[string]any) error {
	var differs []string
	refs := maps.Clone(want)
	maps.Copy(refs, got)
	for _, ref := range slices.SortedFunc(maps.Keys(refs), compareRefs) {
		switch {
		case got[ref] == nil:
			differs = append(differs, fmt.Sprintf("%v is missing", ref))
		case want[ref] == nil:
			differs = append(differs, fmt.Sprintf("%v is too many", ref))
		case !cmp.Equal(want[ref], got[ref]):
			differs = append(differs, fmt.Sprintf("%v is another (-reference +run):\n%s", ref, cmp.Diff(want[ref], got[ref])))
		}
	}
	if len(differs) == 0 {
		return nil
	}
	return fmt.Errorf("it ends in another state: %s", strings.Join(differs, "; "))
}

func compareRefs(a, b operator.Ref) int { return strings.Compare(a.String(), b.String()) }

// forgive is got with the repetitions taken out that starts from the past may
// cause: of what the reference made too. How many writes they take is bounded
// by the allowance.
func forgive(want, got, made map[string]int, repeats int) map[string]int {
	if repeats == 0 {
		return got
	}
	out := maps.Clone(got)
	for name := range made {
		if out[name] = min(got[name], want[name]); out[name] == 0 {
			delete(out, name)
		}
	}
	return out
}

// count is how often the cores did something to each object, Events apart: what
// went wrong may be told. What is made for a parent that is already gone, before
// the core can know, does not count either: it goes with the parent.
func count(records []Record, is func(Record) bool) map[string]int {
	out := map[string]int{}
	for _, r := range records {
		if r.Op != nil && r.Op.Verb != plan.Tell && !r.Stillborn && is(r) {
			out[r.Ref.String()]++
		}
	}
	return out
}

// fair checks one write of a core: that it is fenced, and that the object is
// not somebody else's.
func (r *run) fair(record Record) error {
	op := record.Op
	if op == nil || op.Verb == plan.Tell {
		return nil
	}
	if !fencedOp(*op) {
		return fmt.Errorf("the write has no fence: neither an exclusive creation nor the UID of what it means")
	}
	parents := r.parentsOf(record)
	if !record.Changed() || record.Before == nil || slices.Contains(parents, record.Ref.Kind.Kind) {
		return nil
	}
	controller := controllerOf(record.Before)
	if controller == nil && op.Verb == plan.Adopt {
		return nil
	}
	if controller == nil || !slices.Contains(parents, controller.Kind) {
		return fmt.Errorf("the object is not the operator's: its controller is %s", nameOfController(controller))
	}
	after := controllerOf(object(record))
	if after != nil && after.UID != controller.UID {
		return fmt.Errorf("the object passes from one controller to another in one write")
	}
	return nil
}

// parentsOf are the kinds that the operator behind a write looks after.
func (r *run) parentsOf(record Record) []string {
	var kinds []string
	for _, op := range r.scenario.Operators {
		if op.Manager() == record.Who || record.Who == defaultManager {
			kinds = append(kinds, op.Parent.Kind)
		}
	}
	return kinds
}

func nameOfController(c *metav1.OwnerReference) string {
	if c == nil {
		return "nobody"
	}
	return c.Kind + " " + c.Name
}

func fencedOp(op plan.Op) bool {
	switch op.Verb {
	case plan.Create:
		return version(op.Body) == absentVersion
	case plan.Delete:
		return op.UID != ""
	}
	uid, _, _ := unstructured.NestedString(op.Body, "metadata", "uid")
	return uid != ""
}

func version(values map[string]any) string {
	v, _, _ := unstructured.NestedString(values, "metadata", "resourceVersion")
	return v
}

// masked is every object, Events apart, without what legitimately differs from
// run to run: versions, moments, and UIDs, which become the names of what they
// stand for.
func masked(s *Server) map[operator.Ref]map[string]any {
	uids := map[types.UID]string{}
	for _, log := range s.logs {
		for _, e := range log {
			uids[e.Object.GetUID()] = "<uid of " + refOf(e.Object).String() + ">"
		}
	}
	out := map[operator.Ref]map[string]any{}
	for ref, o := range s.objects {
		if ref.Kind.Kind == "Event" {
			continue
		}
		m := mask{uids: uids, generation: o.GetGeneration()}
		o = o.DeepCopy()
		sortByName(o)
		values := o.Object
		meta, _ := values["metadata"].(map[string]any)
		delete(meta, "resourceVersion")
		delete(meta, "generation")
		out[ref], _ = m.value(values).(map[string]any)
	}
	return out
}

// sortByName puts the entries of managedFields, which a server orders by time,
// into an order that does not depend on it.
func sortByName(o *unstructured.Unstructured) {
	entries := o.GetManagedFields()
	slices.SortFunc(entries, func(a, b metav1.ManagedFieldsEntry) int {
		return strings.Compare(a.Manager+string(a.Operation)+a.Subresource, b.Manager+string(b.Operation)+b.Subresource)
	})
	o.SetManagedFields(entries)
}

// mask is what to mask in one object.
type mask struct {
	uids       map[types.UID]string
	generation int64
}

func (m mask) value(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			inner := v[k]
			delete(v, k)
			if k == "observedGeneration" {
				v[k] = fmt.Sprintf("<current: %t>", inner == m.generation)
				continue
			}
			v[m.text(k)] = m.value(inner)
		}
	case []any:
		for i := range v {
			v[i] = m.value(v[i])
		}
	case string:
		return m.text(v)
	}
	return v
}

func (m mask) text(text string) string {
	if name, ok := m.uids[types.UID(text)]; ok {
		return name
	}
	if _, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return "<time>"
	}
	if strings.Contains(text, "-") && strings.Contains(text, "{") { // The key of a list's entry in managedFields.
		for _, uid := range slices.Sorted(maps.Keys(m.uids)) {
			text = strings.ReplaceAll(text, string(uid), m.uids[uid])
		}
	}
	return text
}
