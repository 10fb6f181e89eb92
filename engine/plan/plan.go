package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/homeostat-dev/homeostat/operator"
)

// Input is everything a plan for one parent depends on.
type Input struct {
	Operator *operator.Operator
	Parent   *unstructured.Unstructured
	// Desired is the decided list of children.
	Desired []operator.Desired
	// Children are the objects that the parent controls.
	Children []*unstructured.Unstructured
	// Standing is what stands at a name, whoever it belongs to; nil for nothing.
	Standing func(operator.Ref) *unstructured.Unstructured
	// Missing says why a kind is not served; nil when it is.
	Missing func(schema.GroupVersionKind) error
	Memo    *Memo
}

// Plan is what to do for one parent's children.
type Plan struct {
	// Ops are the operations, changes first, deletions of what is no longer
	// listed last: nothing is pruned until all that is wanted is there.
	Ops []Op
	// Prunes is how many of Ops, counted from the end, are such deletions.
	Prunes int
	// Taken are the desired names at which somebody else's object stands.
	Taken []operator.Ref
	// Problems are the children for which nothing can be done.
	Problems []Problem
	// Waiting are children on their way out that will be made anew.
	Waiting []operator.Ref
}

// Problem is a child that cannot be made as desired.
type Problem struct {
	Ref operator.Ref
	// Reason is one CamelCase word, Message what is wrong and what to do.
	Reason, Message string
	// Human is true when it will not pass by itself.
	Human bool
}

// Make plans.
func Make(in Input) Plan {
	var p Plan
	wanted := map[operator.Ref]bool{}
	if in.Parent.GetDeletionTimestamp() != nil {
		return p // Children of a parent that is going go with it.
	}
	for _, d := range in.Desired {
		wanted[d.Ref()] = true
		if !d.Keep {
			p.child(in, d)
		}
	}
	for _, c := range in.Children {
		if ref := RefOf(c); !wanted[ref] && c.GetDeletionTimestamp() == nil {
			rule, _ := in.Operator.Child(ref.Kind)
			p.Ops = append(p.Ops, deletion(rule.Kind, c, "no longer listed"))
			p.Prunes++
		}
	}
	return p
}

// RefOf names an object.
func RefOf(o *unstructured.Unstructured) operator.Ref {
	return operator.Ref{Kind: o.GroupVersionKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
}

func (p *Plan) child(in Input, d operator.Desired) {
	ref := d.Ref()
	rule, _ := in.Operator.Child(ref.Kind)
	standing := in.Standing(ref)
	switch {
	case standing == nil:
		if err := in.Missing(ref.Kind); err != nil {
			p.Problems = append(p.Problems, Problem{Ref: ref, Reason: "KindNotServed", Human: true,
				Message: fmt.Sprintf("the API server does not serve %v %s; install its CustomResourceDefinition", rule.Kind, ref.Kind.Version)})
			return
		}
		p.Ops = append(p.Ops, creation(in, rule, d))
	case !metav1.IsControlledBy(standing, in.Parent):
		p.foreign(ref, standing)
	case standing.GetDeletionTimestamp() != nil:
		p.Waiting = append(p.Waiting, ref)
	case rule.Update == operator.UpdateOnDelete:
	default:
		p.change(in, rule, d, standing)
	}
}

func (p *Plan) foreign(ref operator.Ref, standing *unstructured.Unstructured) {
	who := "controlled by nobody"
	if c := metav1.GetControllerOf(standing); c != nil {
		who = fmt.Sprintf("controlled by %s %s", c.Kind, c.Name)
	}
	p.Taken = append(p.Taken, ref)
	p.Problems = append(p.Problems, Problem{Ref: ref, Reason: "ForeignOwner", Human: true,
		Message: fmt.Sprintf("%v exists and is %s; it is left alone: delete or rename it", ref, who)})
}

func creation(in Input, rule operator.Child, d operator.Desired) Op {
	desired := body(in.Parent, d)
	sent := runtime.DeepCopyJSON(desired)
	sent["metadata"].(map[string]any)["resourceVersion"] = "1"
	return Op{
		Verb: Create, Kind: rule.Kind, Namespace: d.Object.GetNamespace(), Name: d.Object.GetName(),
		Manager: in.Operator.Manager(), Body: sent, Reason: "it is not there",
		desired: desired, skip: rule.CreateOnly,
	}
}

// body is what Sync sets plus the reference that makes the parent its controller.
func body(parent *unstructured.Unstructured, d operator.Desired) map[string]any {
	object := d.Object.DeepCopy()
	object.SetOwnerReferences([]metav1.OwnerReference{*ControllerRef(parent)})
	return object.Object
}

// ControllerRef is the reference by which children name their parent.
func ControllerRef(parent *unstructured.Unstructured) *metav1.OwnerReference {
	return metav1.NewControllerRef(parent, parent.GroupVersionKind())
}

// change plans at most one operation for a child that stands: a fenced write
// that clears lists owned whole, or an apply, or a deletion where the rule is
// to recreate. What remains is planned on the result.
func (p *Plan) change(in Input, rule operator.Child, d operator.Desired, standing *unstructured.Unstructured) {
	manager := in.Operator.Manager()
	desired := body(in.Parent, d)
	sets := settable(d, standing)
	skip := skipped(rule.CreateOnly, sets)
	owned := Owned(standing, manager, "")
	op := Op{
		Kind: rule.Kind, Namespace: standing.GetNamespace(), Name: standing.GetName(),
		UID: standing.GetUID(), Manager: manager, desired: desired, skip: skip,
	}
	if lists := foreignEntries(rule.OwnedLists, desired, standing.Object, owned); len(lists) > 0 && rule.Update == operator.UpdateInPlace {
		p.Ops = append(p.Ops, strip(op, lists, standing))
		return
	}
	changes := concealed(rule.Kind, Compare(desired, standing.Object, owned, skip))
	if len(changes) == 0 || in.Memo.Holds(desired, standing, manager, "", skip) {
		return
	}
	if rule.Update == operator.UpdateRecreate {
		anew := deletion(rule.Kind, standing, "to be made anew: "+Describe(changes)+" cannot change in place")
		anew.Changes, anew.desired = changes, desired
		p.Ops = append(p.Ops, anew)
		return
	}
	op.Verb, op.Changes, op.Reason = Apply, changes, Describe(changes)+" as desired"
	op.seen = standing.GetResourceVersion()
	op.Body, op.ResourceVersion = applyBody(desired, standing, owned, rule.CreateOnly, sets)
	p.Ops = append(p.Ops, op)
}

// settable are the create-only fields that may be written now: asked for on the
// version that still stands.
func settable(d operator.Desired, standing *unstructured.Unstructured) []string {
	if d.SetVersion == standing.GetResourceVersion() {
		return d.Set
	}
	return nil
}

func skipped(createOnly, sets []string) []string {
	var out []string
	for _, path := range createOnly {
		written := false
		for _, s := range sets {
			written = written || s == path
		}
		if !written {
			out = append(out, path)
		}
	}
	return out
}

// applyBody is desired with its create-only fields as an apply must carry them.
// Leaving one out while we own it would remove or reset it; repeating it once
// somebody else owns it would take it back. So: while our entry lists it, the
// observed value is repeated, fenced by the version it was observed in.
func applyBody(desired map[string]any, standing *unstructured.Unstructured, owned map[string]any, createOnly, sets []string) (map[string]any, string) {
	out := runtime.DeepCopyJSON(desired)
	meta := out["metadata"].(map[string]any)
	meta["uid"] = string(standing.GetUID())
	version := ""
	if len(sets) > 0 {
		version = standing.GetResourceVersion()
	}
	for _, path := range skipped(createOnly, sets) {
		unstructured.RemoveNestedField(out, fieldsOf(path)...)
		if !OwnsPath(owned, path) {
			continue
		}
		if value, ok := get(standing.Object, path); ok {
			set(out, path, value)
			version = standing.GetResourceVersion()
		}
	}
	if version != "" {
		meta["resourceVersion"] = version
	}
	return out, version
}

func strip(op Op, lists map[string][]any, standing *unstructured.Unstructured) Op {
	op.Verb, op.ResourceVersion = Strip, standing.GetResourceVersion()
	op.Body = map[string]any{"metadata": fence(standing)}
	paths := slices.Sorted(maps.Keys(lists))
	for _, path := range paths {
		observed, _ := get(standing.Object, path)
		op.Changes = append(op.Changes, Change{Path: path, From: observed, To: lists[path]})
		set(op.Body, path, lists[path])
	}
	op.Changes = concealed(op.Kind, op.Changes)
	op.Reason = "entries of others in " + strings.Join(paths, ", ")
	return op
}

// fence is the metadata of a merge patch that means this very object as it is.
func fence(o *unstructured.Unstructured) map[string]any {
	return map[string]any{"uid": string(o.GetUID()), "resourceVersion": o.GetResourceVersion()}
}

func deletion(kind operator.Kind, o *unstructured.Unstructured, reason string) Op {
	return Op{Verb: Delete, Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), Reason: reason}
}

// SetParent is the operation that writes fields of the parent's own spec; ok is
// false when the parent has them.
func SetParent(op *operator.Operator, parent *unstructured.Unstructured, sets []operator.FieldSet) (Op, bool) {
	body := map[string]any{"metadata": fence(parent)}
	var changes []Change
	for _, s := range sets {
		if observed, _ := get(parent.Object, s.Path); !Equal(observed, s.Value) {
			set(body, s.Path, s.Value)
			changes = append(changes, Change{Path: s.Path, From: observed, To: s.Value})
		}
	}
	return Op{
		Verb: Set, Kind: op.Parent, Namespace: parent.GetNamespace(), Name: parent.GetName(), Manager: op.Manager(),
		UID: parent.GetUID(), ResourceVersion: parent.GetResourceVersion(), Body: body,
		Changes: concealed(op.Parent, changes), Reason: Describe(changes) + " as decided",
	}, len(changes) > 0
}
