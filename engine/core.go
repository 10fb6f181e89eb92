package engine

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/homeostat-dev/homeostat/engine/plan"
	"github.com/homeostat-dev/homeostat/engine/report"
	"github.com/homeostat-dev/homeostat/engine/world"
	"github.com/homeostat-dev/homeostat/operator"
)

// Core runs one operator: it keeps the world, knows which parents an event
// concerns and when each is to be looked at, and hands out passes. It has no
// goroutine, no clock and no client; what it does depends on its inputs and
// their order alone. It is safe for use by many goroutines, so that passes of
// different parents may run at once.
type Core struct {
	operator *operator.Operator
	shape    *report.Shape
	world    *world.World
	options  CoreOptions

	mu      sync.Mutex
	parents map[types.NamespacedName]*parent
	byUID   map[types.UID]types.NamespacedName
	wanted  map[operator.Ref]map[types.NamespacedName]bool
	selects *selections
	queue   queue
	// woken are the parents that were woken since Next was asked last, which is
	// where time comes from.
	woken map[*parent]bool
	// passes is how many were handed out; their numbers.
	passes int64
	news   []*parent // those with news to tell, in the order in which they came
}

// CoreOptions tune a Core; the zero value is what most want.
type CoreOptions struct {
	// MaxRounds is how often Sync may change its answer within one pass before
	// it is called unstable. Zero: 16.
	MaxRounds int
	// FirstBackoff and MaxBackoff bound the wait before a parent that could not
	// be brought to rest is tried again; it doubles in between. Zero: 250 ms
	// and 5 min.
	FirstBackoff, MaxBackoff time.Duration
}

// mostHaste is the longest that news of others waits for a parent that fails.
const mostHaste = 5 * time.Second

// parent is what the core remembers about one parent. All of it may be lost.
type parent struct {
	name    types.NamespacedName
	uid     types.UID
	running bool
	again   bool
	// atOnce is true when again is for news that does not wait, notBefore is when
	// a failing parent may be woken by other news.
	atOnce    bool
	notBefore time.Time
	failures  int
	unsynced  time.Time // since when it is not as desired; zero while it is
	woken     string    // what woke it last, for people
	wants     []operator.Ref
	told      map[string]bool
	memo      plan.Memo
	fights    fights
	news      news
	last      *PassRecord // the last pass that ended, for people
	wrote     *PassRecord // the last of them that wrote more than a status
}

// NewCore validates the operator and makes a core that has observed nothing.
func NewCore(op *operator.Operator, o CoreOptions) (*Core, error) {
	if err := op.Validate(); err != nil {
		return nil, err
	}
	shape, err := report.ShapeOf(op)
	if err != nil {
		return nil, err
	}
	if o.MaxRounds == 0 {
		o.MaxRounds = 16
	}
	if o.FirstBackoff == 0 {
		o.FirstBackoff = 250 * time.Millisecond
	}
	if o.MaxBackoff == 0 {
		o.MaxBackoff = 5 * time.Minute
	}
	return &Core{
		operator: op, shape: shape, options: o,
		world:   world.New(op.Manager(), op.Kinds()),
		parents: map[types.NamespacedName]*parent{},
		byUID:   map[types.UID]types.NamespacedName{},
		wanted:  map[operator.Ref]map[types.NamespacedName]bool{},
		selects: newSelections(),
		queue:   newQueue(),
		woken:   map[*parent]bool{},
	}, nil
}

// Kinds are the kinds to list and watch for this core.
func (c *Core) Kinds() []operator.Kind { return c.operator.Kinds() }

// Replace takes a list of all objects of a kind, current at resourceVersion. A
// kind that was missing is served again then.
func (c *Core) Replace(kind schema.GroupVersionKind, objects []*unstructured.Unstructured, resourceVersion string) {
	missing := c.world.Missing(kind) != nil
	for _, change := range c.world.Replace(kind, objects, resourceVersion) {
		c.concern(change, types.NamespacedName{})
	}
	if missing {
		c.wakeAll(kind.Kind + " can be listed")
	}
}

// Observe takes a watch event: the object as it is now or, when it is deleted,
// as it was with the version of its deletion.
func (c *Core) Observe(kind schema.GroupVersionKind, object *unstructured.Unstructured, deleted bool) {
	if object.GroupVersionKind() != kind {
		return
	}
	record := c.world.Put
	if deleted {
		record = c.world.Remove
	}
	if change, news := record(object); news {
		c.concern(change, types.NamespacedName{})
	}
}

// Missing takes the news that a kind cannot be listed. Where it is not served
// parents go on without it; where it may not be seen they cannot be decided about.
func (c *Core) Missing(kind schema.GroupVersionKind, err error) {
	if c.world.SetMissing(kind, err) {
		c.wakeAll(kind.Kind + " cannot be listed")
	}
}

func (c *Core) wakeAll(why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range slices.SortedFunc(maps.Values(c.parents), func(a, b *parent) int { return compareNames(a.name, b.name) }) {
		c.wake(p, why, true)
	}
}

// concern wakes every parent that a change may matter to, except one: the one
// whose own write it is.
func (c *Core) concern(change world.Change, except types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range []*unstructured.Unstructured{change.Old, change.New} {
		if o == nil {
			continue
		}
		if o.GroupVersionKind() == c.operator.Parent.GroupVersionKind {
			c.concernParent(change, except) // And others of the kind may read it.
		}
		ref := plan.RefOf(o)
		why := fmt.Sprintf("%v %s", ref, what(change))
		names := map[types.NamespacedName]bool{}
		if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
			if name, ok := c.byUID[owner.UID]; ok {
				names[name] = true
			}
		}
		maps.Copy(names, c.wanted[ref])
		c.selects.concerned(o, names)
		for _, name := range slices.SortedFunc(maps.Keys(names), compareNames) {
			if p := c.parents[name]; p != nil && name != except {
				c.wake(p, why, false)
			}
		}
	}
}

// concernParent keeps the memory of a parent in step with the parent itself.
func (c *Core) concernParent(change world.Change, except types.NamespacedName) {
	if change.New == nil {
		c.forget(nameOf(change.Old))
		return
	}
	name := nameOf(change.New)
	p := c.parents[name]
	another := p == nil || p.uid != change.New.GetUID()
	if another {
		c.forget(name)
		p = &parent{name: name, uid: change.New.GetUID(), told: map[string]bool{}, fights: fights{}}
		c.parents[name] = p
		c.byUID[p.uid] = name
	}
	c.selects.set(c.operator, change.New)
	if another || name != except { // The pass that found another parent there is not its own.
		c.wake(p, "it "+what(change), true)
	}
}

func (c *Core) forget(name types.NamespacedName) {
	p := c.parents[name]
	if p == nil {
		return
	}
	c.want(p, nil)
	c.selects.drop(name)
	c.queue.remove(name)
	delete(c.byUID, p.uid)
	delete(c.parents, name)
}

// want records the names at which a parent wants children, so that it hears
// when somebody else's object there goes away.
func (c *Core) want(p *parent, refs []operator.Ref) {
	for _, r := range p.wants {
		delete(c.wanted[r], p.name)
		if len(c.wanted[r]) == 0 {
			delete(c.wanted, r)
		}
	}
	p.wants = refs
	for _, r := range refs {
		if c.wanted[r] == nil {
			c.wanted[r] = map[types.NamespacedName]bool{}
		}
		c.wanted[r][p.name] = true
	}
}

// selected is what a parent selects, as its latest version says; nil when it is
// not there any more.
func (c *Core) selected(name types.NamespacedName) *selected {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.selects.byParent[name]
}

// wake makes a parent due. One that keeps failing is woken at once by news of
// itself, or of a kind as a whole, and by other news not before it has waited a
// little where each attempt costs something: pods that come and go must not make
// it hammer the API server.
func (c *Core) wake(p *parent, why string, atOnce bool) {
	p.woken = why
	c.woken[p] = true
	switch {
	case p.running:
		p.again, p.atOnce = true, p.atOnce || atOnce
	case p.failures > 0 && !atOnce:
		c.queue.add(p.name, p.notBefore)
	default:
		c.queue.add(p.name, time.Time{})
	}
}

// Next hands out a pass for the parent that is due first, or says when the next
// one will be; the zero time means not before something is observed. A parent
// has one pass at a time.
func (c *Core) Next(now time.Time) (*Pass, time.Time) {
	if !c.world.Known() {
		return nil, time.Time{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for p := range c.woken {
		if p.unsynced.IsZero() {
			p.unsynced = now
		}
	}
	clear(c.woken)
	name, at, ok := c.queue.first(now)
	if !ok {
		if pass := c.telling(now); pass != nil {
			return pass, time.Time{}
		}
		return nil, at
	}
	c.queue.remove(name)
	p := c.parents[name]
	p.running, p.again, p.atOnce = true, false, false
	if p.unsynced.IsZero() {
		p.unsynced = now
	}
	c.passes++
	pass := newPass(c, p, now)
	pass.number = c.passes
	return pass, time.Time{}
}

// Finish takes back a pass that has nothing more to do and decides when its
// parent is looked at again.
func (c *Core) Finish(pass *Pass, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := pass.memory
	p.running = false
	if c.parents[p.name] != p {
		return // Deleted, or replaced by another of the same name.
	}
	if pass.announcing {
		c.told(pass)
		return
	}
	p.remember(pass, now)
	c.announce(p, now)
	if pass.decision != nil {
		c.want(p, pass.wants())
	}
	at := pass.until
	if pass.settled() {
		p.failures = 0
		if !p.again {
			p.unsynced = time.Time{}
		}
		if !at.IsZero() && !at.After(pass.now) {
			at = now.Add(c.options.FirstBackoff) // It breaks the time law; it must not break us.
		}
	} else {
		p.failures++
		p.notBefore = time.Time{}
		if pass.cost() {
			p.notBefore = now.Add(min(c.backoff(p), mostHaste))
		}
		retry := now.Add(pass.wait(c.backoff(p)))
		if !at.After(pass.now) || retry.Before(at) {
			at = retry
		}
	}
	switch {
	case p.again && (p.atOnce || p.failures == 0):
		c.queue.add(p.name, time.Time{})
	case p.again:
		c.queue.add(p.name, p.notBefore)
	case !at.IsZero():
		c.queue.add(p.name, at)
	}
}

// backoff doubles from the first to the longest and is spread by a fifth, by
// name, so that parents that failed together do not come back together.
func (c *Core) backoff(p *parent) time.Duration {
	d := c.options.MaxBackoff
	if shift := p.failures - 1; shift < 20 {
		d = min(d, c.options.FirstBackoff<<shift)
	}
	spread := uint64(14695981039346656037)
	for _, b := range []byte(p.name.String()) {
		spread = (spread ^ uint64(b)) * 1099511628211
	}
	return d - d/5*time.Duration(spread%100)/100
}

// OldestUnsynced is how long the parent that waits longest has not been as
// desired; zero when all are.
func (c *Core) OldestUnsynced(now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	var oldest time.Duration
	for _, p := range c.parents {
		if !p.unsynced.IsZero() {
			oldest = max(oldest, now.Sub(p.unsynced))
		}
	}
	return oldest
}

func what(c world.Change) string {
	switch {
	case c.Old == nil:
		return "appeared"
	case c.New == nil:
		return "was deleted"
	}
	return "changed"
}

func nameOf(o *unstructured.Unstructured) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}
