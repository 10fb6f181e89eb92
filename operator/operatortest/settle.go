package operatortest

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/homeostat-dev/homeostat/operator"
)

// MaxRounds is how often Sync is asked before it counts as unstable.
const MaxRounds = 16

// Settled is a world at rest.
type Settled struct {
	// World is the world into which every answer has been folded.
	World World
	// Decision is the answer to it: one that changes nothing.
	Decision operator.Decision
	// Rounds is how often Sync was asked.
	Rounds int
}

// Settle asks until nothing changes: each answer is folded into the world, the
// children first, then the fields of the parent, then the status, and Sync is
// asked again after each. Time stands still. The error is Sync's own, or a
// [LawError] when the operator does not come to rest or makes something that
// its CRD refuses. The world given is not changed.
func Settle(op *operator.Operator, w World) (Settled, error) {
	f := &folder{op: op, world: w.clone(), bases: map[operator.Ref]*unstructured.Unstructured{}}
	for _, c := range f.world.Children {
		f.bases[ref(c)] = c.DeepCopy()
	}
	change := ""
	for round := 1; round <= MaxRounds; round++ {
		d, err := op.Decide(f.world.Request(op))
		if err != nil {
			return Settled{World: f.world, Rounds: round}, err
		}
		if change, err = f.fold(d); err != nil {
			return Settled{World: f.world, Decision: d, Rounds: round}, err
		}
		if change == "" {
			return Settled{World: f.world, Decision: d, Rounds: round}, nil
		}
	}
	return Settled{World: f.world, Rounds: MaxRounds}, broken("unstable: after %d rounds %s", MaxRounds, change)
}

func (w World) clone() World {
	w.Parent = w.Parent.DeepCopy()
	w.Children, w.Related = deepCopies(w.Children), deepCopies(w.Related)
	w.Taken = slices.Clone(w.Taken)
	return w
}

func deepCopies(in []*unstructured.Unstructured) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, u := range in {
		out = append(out, u.DeepCopy())
	}
	return out
}

func ref(u *unstructured.Unstructured) operator.Ref {
	return operator.Ref{Kind: u.GroupVersionKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}

// folder folds answers into its world. A child is its base, what others have
// set in it, with the answer merged in: so a field that the answer drops falls
// back to what others had set.
type folder struct {
	op     *operator.Operator
	world  World
	bases  map[operator.Ref]*unstructured.Unstructured
	writes int
}

// fold writes the first part of the answer that changes anything and says what
// changed; "" when the world already is as the answer says.
func (f *folder) fold(d operator.Decision) (string, error) {
	if f.world.Parent.GetDeletionTimestamp() == nil {
		if change := f.foldChildren(d); change != "" {
			return change, nil
		}
		if change, err := f.foldParent(d); change != "" || err != nil {
			return change, err
		}
	}
	return f.foldStatus(d)
}

func (f *folder) foldChildren(d operator.Decision) string {
	change := ""
	note := func(format string, args ...any) {
		if change == "" {
			change = fmt.Sprintf(format, args...)
		}
	}
	wanted := map[operator.Ref]bool{}
	for _, c := range d.Children {
		wanted[c.Ref()] = true
		f.foldChild(c, note)
	}
	f.world.Children = slices.DeleteFunc(f.world.Children, func(u *unstructured.Unstructured) bool {
		if wanted[ref(u)] || !f.world.controlled(f.op, u) || u.GetDeletionTimestamp() != nil {
			return false
		}
		note("%v is removed", ref(u))
		delete(f.bases, ref(u))
		return true
	})
	return change
}

func (f *folder) foldChild(c operator.Desired, note func(string, ...any)) {
	if c.Keep || slices.Contains(f.world.Taken, c.Ref()) {
		return
	}
	rule, _ := f.op.Child(c.Object.GroupVersionKind())
	i := slices.IndexFunc(f.world.Children, func(u *unstructured.Unstructured) bool { return ref(u) == c.Ref() })
	if i < 0 {
		note("%v is created", c.Ref())
		f.world.Children = append(f.world.Children, f.create(c))
		return
	}
	observed := f.world.Children[i]
	if !f.world.controlled(f.op, observed) {
		note("%v is taken", c.Ref())
		f.world.Taken = append(f.world.Taken, c.Ref())
		return
	}
	if observed.GetDeletionTimestamp() != nil || rule.Update == operator.UpdateOnDelete {
		return
	}
	changed := f.applied(rule, c, observed)
	path, was, is := firstDifference(observed.Object, changed.Object)
	if path == "" {
		return
	}
	note("%v: %s goes from %s to %s", c.Ref(), path, was, is)
	if rule.Update == operator.UpdateRecreate {
		changed = f.create(c)
	}
	f.touch(observed, changed)
	f.world.Children[i] = changed
}

// applied is the observed child after an apply of the desired one.
func (f *folder) applied(rule operator.Child, c operator.Desired, observed *unstructured.Unstructured) *unstructured.Unstructured {
	owned := map[string]bool{}
	for _, p := range rule.OwnedLists {
		owned[p] = true
	}
	base := f.bases[c.Ref()]
	out := &unstructured.Unstructured{Object: mergeObject(base.Object, c.Object.Object, "", owned)}
	for _, p := range rule.CreateOnly {
		fields, err := operator.ParsePath(p)
		if err != nil {
			continue
		}
		from := observed.Object
		if slices.Contains(c.Set, p) && c.SetVersion == observed.GetResourceVersion() {
			from = c.Object.Object
		}
		copyField(from, out.Object, fields)
	}
	for _, field := range []string{"resourceVersion", "generation"} {
		copyField(observed.Object, out.Object, []string{"metadata", field})
	}
	return out
}

// create is the desired child as a server stores it.
func (f *folder) create(c operator.Desired) *unstructured.Unstructured {
	u := c.Object.DeepCopy()
	u.SetResourceVersion(f.nextVersion())
	u.SetUID(newUID(u, u.GetResourceVersion()))
	u.SetGeneration(1)
	u.SetCreationTimestamp(metav1.NewTime(f.world.Now.Truncate(time.Second)))
	own(f.world.Parent, u)
	base := &unstructured.Unstructured{Object: map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind()}}
	copyField(u.Object, base.Object, []string{"metadata"})
	unstructured.RemoveNestedField(base.Object, "metadata", "labels")
	unstructured.RemoveNestedField(base.Object, "metadata", "annotations")
	f.bases[ref(u)] = base
	return u
}

// touch counts the change as a server does.
func (f *folder) touch(before, after *unstructured.Unstructured) {
	if before.GetUID() != after.GetUID() {
		return
	}
	after.SetResourceVersion(f.nextVersion())
	if !reflect.DeepEqual(withoutMeta(before), withoutMeta(after)) {
		after.SetGeneration(before.GetGeneration() + 1)
	}
}

func (f *folder) nextVersion() string {
	f.writes++
	return strconv.Itoa(1_000_000 + f.writes)
}

func withoutMeta(u *unstructured.Unstructured) map[string]any {
	out := map[string]any{}
	for k, v := range u.Object {
		if k != "metadata" && k != "status" {
			out[k] = v
		}
	}
	return out
}

func (f *folder) foldParent(d operator.Decision) (string, error) {
	before, after := f.world.Parent, f.world.Parent.DeepCopy()
	for _, set := range d.Parent {
		if err := set.Apply(after); err != nil {
			return "", err
		}
	}
	return f.replaceParent(before, after)
}

func (f *folder) foldStatus(d operator.Decision) (string, error) {
	if d.Status == nil {
		return "", nil
	}
	before, after := f.world.Parent, f.world.Parent.DeepCopy()
	after.Object["status"] = roundTrip(d.Status)
	for _, engines := range []string{"conditions", "observedGeneration"} {
		copyField(before.Object, after.Object, []string{"status", engines})
	}
	if len(d.Status) == 0 && before.Object["status"] == nil {
		return "", nil
	}
	return f.replaceParent(before, after)
}

func (f *folder) replaceParent(before, after *unstructured.Unstructured) (string, error) {
	path, was, is := firstDifference(before.Object, after.Object)
	if path == "" {
		return "", nil
	}
	if err := checkStatus(f.op, after); err != nil {
		return "", err
	}
	f.touch(before, after)
	f.world.Parent = after
	return fmt.Sprintf("%s goes from %s to %s", path, was, is), nil
}
