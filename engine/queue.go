package engine

import (
	"cmp"
	"container/heap"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// queue orders parents by when they are due, and those due at the same time by
// when they were added. Each is in it once; adding an earlier time moves it.
type queue struct {
	items  []*due
	byName map[types.NamespacedName]*due
	count  int
}

type due struct {
	name     types.NamespacedName
	at       time.Time
	order    int
	position int
}

func newQueue() queue { return queue{byName: map[types.NamespacedName]*due{}} }

func (q *queue) add(name types.NamespacedName, at time.Time) {
	if d := q.byName[name]; d != nil {
		if at.Before(d.at) {
			d.at = at
			heap.Fix((*byDue)(q), d.position)
		}
		return
	}
	q.count++
	d := &due{name: name, at: at, order: q.count}
	q.byName[name] = d
	heap.Push((*byDue)(q), d)
}

func (q *queue) remove(name types.NamespacedName) {
	if d := q.byName[name]; d != nil {
		heap.Remove((*byDue)(q), d.position)
		delete(q.byName, name)
	}
}

func (q *queue) first() (types.NamespacedName, time.Time, bool) {
	if len(q.items) == 0 {
		return types.NamespacedName{}, time.Time{}, false
	}
	return q.items[0].name, q.items[0].at, true
}

// byDue makes the queue a heap.
type byDue queue

func (h *byDue) Len() int { return len(h.items) }

func (h *byDue) Less(i, j int) bool {
	a, b := h.items[i], h.items[j]
	return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.order, b.order)) < 0
}

func (h *byDue) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	h.items[i].position, h.items[j].position = i, j
}

func (h *byDue) Push(x any) {
	d := x.(*due)
	d.position = len(h.items)
	h.items = append(h.items, d)
}

func (h *byDue) Pop() any {
	last := h.items[len(h.items)-1]
	h.items = h.items[:len(h.items)-1]
	return last
}

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
