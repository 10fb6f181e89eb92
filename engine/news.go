package engine

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/homeostat-dev/homeostat/engine/plan"
	"github.com/homeostat-dev/homeostat/engine/report"
	"github.com/homeostat-dev/homeostat/operator"
)

const (
	// mostDeeds bounds what is kept to be told, mostNamed what one event names of
	// each sort; of more it gives the number.
	mostDeeds = 32
	mostNamed = 3
	// mostNews is how many events on changes a parent gets in newsWindow: one that
	// changes all the time must not fill the cluster with them.
	mostNews   = 10
	newsWindow = 10 * time.Minute
)

// The sorts of changes to children, which are the reasons of the events, in the
// order in which they are told.
const (
	created   = "Created"
	recreated = "Recreated"
	changed   = "Changed"
	adopted   = "Adopted"
	released  = "Released"
	deleted   = "Deleted"
)

var sorts = []struct{ reason, word string }{
	{created, "made"}, {recreated, "deleted, to be made anew,"}, {changed, "changed"}, {adopted, "adopted"}, {released, "released"}, {deleted, "deleted"},
}

// news is what was done to the children of a parent and is still to be told:
// one event for all of it, when no parent waits to be looked at.
type news struct {
	deeds   []deed
	counts  map[string]int
	pending bool // The core has it on its list.

	// What was told in the current window, and what was done and left untold
	// since because it was too much.
	since          time.Time
	told, withheld int
}

// deed is one change to a child.
type deed struct {
	reason string
	ref    operator.Ref
	fields string
	// version tells it from the same change at another time.
	version string
}

// note takes an operation that was carried out, if it changed a child.
func (n *news) note(op plan.Op, result plan.Result) {
	d := deed{ref: op.Ref(), version: string(op.UID)}
	switch op.Verb {
	case plan.Create:
		d.reason = created
	case plan.Apply, plan.Strip:
		d.reason, d.fields = changed, plan.Describe(op.Changes)
	case plan.Adopt:
		d.reason = adopted
	case plan.Release:
		d.reason = released
	case plan.Delete:
		if d.reason = deleted; len(op.Changes) > 0 {
			d.reason, d.fields = recreated, plan.Describe(op.Changes)
		}
	default:
		return
	}
	if result.Object != nil {
		if op.Verb == plan.Apply && result.Object.GetResourceVersion() == op.Seen() {
			return // The server calls equal what looked different.
		}
		d.version += "/" + result.Object.GetResourceVersion()
	}
	if n.counts == nil {
		n.counts = map[string]int{}
	}
	n.counts[d.reason]++
	if len(n.deeds) < mostDeeds {
		n.deeds = append(n.deeds, d)
	}
}

// due reports whether there is something to tell now. What is too much is counted.
func (n *news) due(now time.Time) bool {
	if now.Sub(n.since) >= newsWindow {
		n.since, n.told = now, 0
	}
	if len(n.deeds) > 0 && n.told >= mostNews {
		for _, count := range n.counts {
			n.withheld += count
		}
		n.deeds, n.counts = nil, nil
	}
	return len(n.deeds) > 0
}

// event is all of it, which is then no news any more.
func (n *news) event(namespace string) operator.Event {
	e := operator.Event{Type: corev1.EventTypeNormal}
	var parts []string
	for _, sort := range sorts {
		if n.counts[sort.reason] == 0 {
			continue
		}
		parts = append(parts, sort.word+" "+n.named(sort.reason, namespace))
		if e.Reason != "" {
			e.Reason = changed // Several sorts.
			continue
		}
		e.Reason = sort.reason
	}
	if n.withheld > 0 {
		parts = append(parts, fmt.Sprintf("%d changes before that were not told", n.withheld))
	}
	var key strings.Builder
	for _, d := range n.deeds {
		_, _ = fmt.Fprintf(&key, "%s\x00%v\x00%s\x00", d.reason, d.ref, d.version)
	}
	e.Message, e.Key = strings.Join(parts, "; "), "change\x00"+key.String()
	n.told++
	n.withheld, n.deeds, n.counts = 0, nil, nil
	return e
}

// named are the children of one sort: by name, or how many.
func (n *news) named(reason, namespace string) string {
	if count := n.counts[reason]; count > mostNamed {
		return fmt.Sprintf("%d children", count)
	}
	var out strings.Builder
	kind := ""
	for _, d := range n.deeds {
		if d.reason != reason {
			continue
		}
		if out.Len() > 0 {
			out.WriteString(", ")
		}
		if d.ref.Kind.Kind != kind {
			kind = d.ref.Kind.Kind
			out.WriteString(kind + " ")
		}
		if d.ref.Namespace != namespace {
			out.WriteString(d.ref.Namespace + "/")
		}
		out.WriteString(d.ref.Name)
		if d.fields != "" {
			out.WriteString(" (" + d.fields + ")")
		}
	}
	if out.Len() == 0 { // Not among those that were kept.
		return fmt.Sprintf("%d others", n.counts[reason])
	}
	return out.String()
}

// announce puts a parent on the list of those with news.
func (c *Core) announce(p *parent, now time.Time) {
	if p.news.due(now) && !p.news.pending {
		p.news.pending = true
		c.news = append(c.news, p)
	}
}

// telling is a pass that does nothing but tell the news of a parent, nil when
// there are none. It comes when no parent is due: news must not delay work.
func (c *Core) telling(now time.Time) *Pass {
	for len(c.news) > 0 {
		p := c.news[0]
		c.news = c.news[1:]
		p.news.pending = false
		if c.parents[p.name] != p || p.running {
			continue // Gone, or at work: then it comes back when that is done.
		}
		pass := newPass(c, p, now)
		c.passes++
		pass.announcing, pass.number = true, c.passes
		if timer := c.queue.timed[p.name]; timer != nil {
			pass.until = timer.at
			c.queue.remove(p.name) // A parent has one pass at a time.
		}
		p.running, p.again, p.atOnce = true, false, false
		return pass
	}
	return nil
}

// told takes back a pass of telling: everything else is as it was.
func (c *Core) told(pass *Pass) {
	p := pass.memory
	switch {
	case p.again && (p.atOnce || p.failures == 0):
		c.queue.add(p.name, time.Time{})
	case p.again:
		c.queue.add(p.name, p.notBefore)
	}
	if !pass.until.IsZero() {
		c.queue.add(p.name, pass.until) // The earlier time holds.
	}
}

// announcement plans the event.
func (p *Pass) announcement() {
	p.telling = true
	event := p.memory.news.event(p.parent.GetNamespace())
	if p.parent.GetDeletionTimestamp() != nil || event.Message == "" {
		return // Who deletes a parent knows what becomes of it.
	}
	if op, err := report.Tell(p.core.operator, report.Facts{Parent: p.parent, Now: p.now}, event); err == nil {
		p.ops = []plan.Op{op}
	}
}
