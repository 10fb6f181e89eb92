package engine

import (
	"cmp"
	"container/heap"
	"container/list"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// queue holds the parents to look at: those that are due, first come first
// served, and those with a timer. A timer that has run out takes its place
// behind all that already wait, so that neither timers nor events can starve
// the other. Each parent is in it once.
type queue struct {
	ready   *list.List
	waiting map[types.NamespacedName]*list.Element
	timers  timers
	timed   map[types.NamespacedName]*timer
	count   int
}

type timer struct {
	name     types.NamespacedName
	at       time.Time
	order    int
	position int
}

func newQueue() queue {
	return queue{ready: list.New(), waiting: map[types.NamespacedName]*list.Element{}, timed: map[types.NamespacedName]*timer{}}
}

// add makes a parent due, at once when the time is zero. The earlier of two
// times holds.
func (q *queue) add(name types.NamespacedName, at time.Time) {
	old := q.timed[name]
	switch {
	case q.waiting[name] != nil, old != nil && !at.IsZero() && !at.Before(old.at):
		return
	case old != nil:
		q.remove(name)
	}
	if at.IsZero() {
		q.waiting[name] = q.ready.PushBack(name)
		return
	}
	q.count++
	t := &timer{name: name, at: at, order: q.count}
	q.timed[name] = t
	heap.Push(&q.timers, t)
}

func (q *queue) remove(name types.NamespacedName) {
	if e := q.waiting[name]; e != nil {
		q.ready.Remove(e)
		delete(q.waiting, name)
	}
	if t := q.timed[name]; t != nil {
		heap.Remove(&q.timers, t.position)
		delete(q.timed, name)
	}
}

// first is the parent that is due first. With none due, ok is false and at is
// when the next timer runs out, zero for never.
func (q *queue) first(now time.Time) (name types.NamespacedName, at time.Time, ok bool) {
	for len(q.timers) > 0 && !q.timers[0].at.After(now) {
		name := q.timers[0].name
		q.remove(name)
		q.add(name, time.Time{})
	}
	if e := q.ready.Front(); e != nil {
		return e.Value.(types.NamespacedName), time.Time{}, true
	}
	if len(q.timers) > 0 {
		return types.NamespacedName{}, q.timers[0].at, false
	}
	return types.NamespacedName{}, time.Time{}, false
}

// timers is a heap by time, then by the order of adding.
type timers []*timer

func (h timers) Len() int { return len(h) }

func (h timers) Less(i, j int) bool {
	return cmp.Or(h[i].at.Compare(h[j].at), cmp.Compare(h[i].order, h[j].order)) < 0
}

func (h timers) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].position, h[j].position = i, j
}

func (h *timers) Push(x any) {
	t := x.(*timer)
	t.position = len(*h)
	*h = append(*h, t)
}

func (h *timers) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
