// Package world is what an engine has observed: the objects of the kinds it
// watches, as far as events have told, with its own writes already in them. It
// never calls anything and never decides. Its invariants: an object never goes
// back to an older version, one known to be deleted never comes back, and what
// was put in is never changed, so that readers may share it.
package world

import (
	"cmp"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/homeostat-dev/homeostat/operator"
)

// World holds the objects. It is safe for use by many goroutines.
type World struct {
	// manager is whose managedFields entries are kept; those of others are
	// dropped, they are half of an object's size.
	manager string

	mu    sync.RWMutex
	kinds map[schema.GroupVersionKind]*shelf
}

// name is an object's place within its kind.
type name struct{ namespace, name string }

// shelf holds the objects of one kind.
type shelf struct {
	listed  bool
	version string // of the latest list
	missing error
	objects map[name]*unstructured.Unstructured
	owned   map[types.UID]map[name]bool
	labels  map[[2]string]map[name]bool
	gone    graves
}

// graves are the UIDs last known to be deleted, which no late event and no late
// answer to a write may bring back. It is bounded: what is late is late by
// moments, and a list settles the rest.
type graves struct {
	set   map[types.UID]bool
	order []types.UID
}

const mostGraves = 4096

func (g *graves) add(uid types.UID) {
	if uid == "" || g.set[uid] {
		return
	}
	g.set[uid] = true
	if g.order = append(g.order, uid); len(g.order) > mostGraves {
		delete(g.set, g.order[0])
		g.order = g.order[1:]
	}
}

// Change is what became of one object: from Old to New, nil for absent.
type Change struct{ Old, New *unstructured.Unstructured }

// New makes an empty world of the kinds.
func New(manager string, kinds []operator.Kind) *World {
	w := &World{manager: manager, kinds: map[schema.GroupVersionKind]*shelf{}}
	for _, k := range kinds {
		w.kinds[k.GroupVersionKind] = newShelf()
	}
	return w
}

func newShelf() *shelf {
	return &shelf{
		objects: map[name]*unstructured.Unstructured{}, owned: map[types.UID]map[name]bool{},
		labels: map[[2]string]map[name]bool{}, gone: graves{set: map[types.UID]bool{}},
	}
}

// Replace puts a complete list, current at version, in the place of all objects
// of a kind, and returns what changed. Objects that our own writes have already
// brought further than the list stay.
func (w *World) Replace(kind schema.GroupVersionKind, objects []*unstructured.Unstructured, version string) []Change {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.kinds[kind]
	s.listed, s.missing = true, nil
	var changes []Change
	listed := make(map[name]bool, len(objects))
	for _, o := range objects {
		listed[nameOf(o)] = true
		if c, ok := s.put(w.trim(o)); ok {
			changes = append(changes, c)
		}
	}
	for n, o := range s.objects {
		if !listed[n] && !newer(o.GetResourceVersion(), version) {
			s.remove(n)
			changes = append(changes, Change{Old: o})
		}
	}
	if s.version == "" || newer(version, s.version) {
		s.version = version
	}
	slices.SortFunc(changes, byName)
	return changes
}

// Put records an object as an event, a read or the answer to a write shows it.
// It reports false, and changes nothing, when the world already knows better.
func (w *World) Put(o *unstructured.Unstructured) (Change, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.kinds[o.GroupVersionKind()]
	if s.objects[nameOf(o)] == nil && s.version != "" && !newer(o.GetResourceVersion(), s.version) {
		return Change{}, false // The list, made later, no longer had it.
	}
	return s.put(w.trim(o))
}

// Remove records the event that an object was deleted; the object carries the
// version of the deletion.
func (w *World) Remove(o *unstructured.Unstructured) (Change, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.kinds[o.GroupVersionKind()]
	s.gone.add(o.GetUID())
	n := nameOf(o)
	old, ok := s.objects[n]
	if !ok || old.GetUID() != o.GetUID() {
		return Change{}, false
	}
	s.remove(n)
	return Change{Old: old}, true
}

// Gone records, from the answer to our own call, that the object with the UID
// is not there any more. Events that still show it are ignored from here on.
// Without a UID nothing follows: what stands now may be newer than the answer.
func (w *World) Gone(ref operator.Ref, uid types.UID) (Change, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.kinds[ref.Kind]
	n := name{ref.Namespace, ref.Name}
	old, ok := s.objects[n]
	if !ok || old.GetUID() != uid {
		s.gone.add(uid)
		return Change{}, false
	}
	s.gone.add(old.GetUID())
	s.remove(n)
	return Change{Old: old}, true
}

// SetMissing records why a kind cannot be listed; a list ends it. It reports
// whether that is news.
func (w *World) SetMissing(kind schema.GroupVersionKind, err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.kinds[kind]
	news := s.missing == nil
	s.missing = err
	return news
}

// Missing is why a kind cannot be listed, nil when it can.
func (w *World) Missing(kind schema.GroupVersionKind) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.kinds[kind].missing
}

// Known reports whether every kind has been listed or is known not to be served.
func (w *World) Known() bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for _, s := range w.kinds {
		if !s.listed && s.missing == nil {
			return false
		}
	}
	return true
}

// Get is the object that stands at a name, nil for none.
func (w *World) Get(ref operator.Ref) *unstructured.Unstructured {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.kinds[ref.Kind].objects[name{ref.Namespace, ref.Name}]
}

// All are the objects of a kind, sorted.
func (w *World) All(kind schema.GroupVersionKind) []*unstructured.Unstructured {
	w.mu.RLock()
	defer w.mu.RUnlock()
	s := w.kinds[kind]
	out := make([]*unstructured.Unstructured, 0, len(s.objects))
	for _, o := range s.objects {
		out = append(out, o)
	}
	operator.SortObjects(out)
	return out
}

// Controlled are the objects of a kind whose controller has the UID, sorted.
func (w *World) Controlled(kind schema.GroupVersionKind, uid types.UID) []*unstructured.Unstructured {
	w.mu.RLock()
	defer w.mu.RUnlock()
	s := w.kinds[kind]
	return s.pick(s.owned[uid], func(*unstructured.Unstructured) bool { return true })
}

// Select are the objects of a kind that a selector picks, sorted.
func (w *World) Select(kind schema.GroupVersionKind, parentNamespace string, selector operator.Selector) []*unstructured.Unstructured {
	w.mu.RLock()
	defer w.mu.RUnlock()
	s := w.kinds[kind]
	matches := func(o *unstructured.Unstructured) bool { return selector.Matches(parentNamespace, o) }
	if len(selector.Labels) > 0 {
		return s.pick(s.fewest(selector.Labels), matches)
	}
	if len(selector.Names) == 0 {
		return nil
	}
	all := map[name]bool{}
	for n := range s.objects {
		if slices.Contains(selector.Names, n.name) {
			all[n] = true
		}
	}
	return s.pick(all, matches)
}

// fewest are the names that have the rarest of the labels.
func (s *shelf) fewest(labels map[string]string) map[name]bool {
	var best map[name]bool
	first := true
	for k, v := range labels {
		if names := s.labels[[2]string{k, v}]; first || len(names) < len(best) {
			best, first = names, false
		}
	}
	return best
}

func (s *shelf) pick(names map[name]bool, keep func(*unstructured.Unstructured) bool) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for n := range names {
		if o := s.objects[n]; keep(o) {
			out = append(out, o)
		}
	}
	operator.SortObjects(out)
	return out
}

func (s *shelf) put(o *unstructured.Unstructured) (Change, bool) {
	n := nameOf(o)
	old := s.objects[n]
	if s.gone.set[o.GetUID()] || old != nil && !newer(o.GetResourceVersion(), old.GetResourceVersion()) {
		return Change{}, false
	}
	if old != nil {
		s.remove(n)
	}
	s.objects[n] = o
	if c := metav1.GetControllerOfNoCopy(o); c != nil {
		put(s.owned, c.UID, n)
	}
	for k, v := range o.GetLabels() {
		put(s.labels, [2]string{k, v}, n)
	}
	return Change{Old: old, New: o}, true
}

func (s *shelf) remove(n name) {
	o := s.objects[n]
	delete(s.objects, n)
	if c := metav1.GetControllerOfNoCopy(o); c != nil {
		drop(s.owned, c.UID, n)
	}
	for k, v := range o.GetLabels() {
		drop(s.labels, [2]string{k, v}, n)
	}
}

func put[K comparable](index map[K]map[name]bool, k K, n name) {
	if index[k] == nil {
		index[k] = map[name]bool{}
	}
	index[k][n] = true
}

func drop[K comparable](index map[K]map[name]bool, k K, n name) {
	delete(index[k], n)
	if len(index[k]) == 0 {
		delete(index, k)
	}
}

// trim drops the managedFields entries of others, on a shallow copy.
func (w *World) trim(o *unstructured.Unstructured) *unstructured.Unstructured {
	meta, ok := o.Object["metadata"].(map[string]any)
	entries, has := meta["managedFields"].([]any)
	if !ok || !has {
		return o
	}
	var ours []any
	for _, e := range entries {
		if entry, ok := e.(map[string]any); ok && entry["manager"] == w.manager {
			ours = append(ours, e)
		}
	}
	object, metadata := copyMap(o.Object), copyMap(meta)
	object["metadata"] = metadata
	delete(metadata, "managedFields")
	if len(ours) > 0 {
		metadata["managedFields"] = ours
	}
	return &unstructured.Unstructured{Object: object}
}

func copyMap(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// newer reports whether version a is later than b. Versions of one resource
// compare as numbers (KEP-5504); where one is not well formed, the later seen
// counts as newer, unless they are the same.
func newer(a, b string) bool {
	c, err := resourceversion.CompareResourceVersion(a, b)
	if err != nil {
		return a != b
	}
	return c > 0
}

func nameOf(o *unstructured.Unstructured) name { return name{o.GetNamespace(), o.GetName()} }

func byName(a, b Change) int {
	x, y := cmp.Or(a.New, a.Old), cmp.Or(b.New, b.Old)
	return cmp.Or(cmp.Compare(x.GetNamespace(), y.GetNamespace()), cmp.Compare(x.GetName(), y.GetName()))
}
