package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// result is what was measured of one contestant at one size.
type result struct {
	kind            string
	atOnce, parents int
	took            time.Duration
	slowest         time.Duration // of other rounds
	quickest        time.Duration
	// p99 is when all but one in a hundred healthy parents were ready.
	p99        time.Duration
	requests   counts
	usage      usage
	processors map[string]float64

	quiet    counts // nil where it was not measured
	returns  []time.Duration
	follows  []time.Duration
	poisoned *result
}

// others are the processor seconds of everything that is no part of the benchmark.
func (r *result) others() float64 {
	p := r.processors
	return max(0, p[busyAll]-p["kube-apiserver"]-p["etcd"]-p["kube-controller-manager"]-p["kube-scheduler"]-p["kwok"]-p[busyBench]-r.usage.CPU)
}

// converge tells the contestant to begin and waits until every healthy parent's
// saved status counts its children.
func (p *phase) converge(ctx context.Context) (*result, error) {
	r := &result{kind: p.kind, atOnce: p.atOnce, parents: p.parents}
	p.audit.skip()
	p.drain()
	before := processors(p.planeDir)
	start := time.Now()
	if _, err := fmt.Fprintln(p.tell, "go"); err != nil {
		return nil, err
	}
	ready := make(map[string]time.Duration, p.parents)
	deadline := time.After(15 * time.Minute)
	for len(ready) < p.parents {
		select {
		case e := <-p.events:
			if e.Object.Kind == "Trio" && e.Object.Status.Count == childrenPerParent && ready[e.Object.Metadata.Name] == 0 {
				ready[e.Object.Metadata.Name] = e.seen.Sub(start)
			}
		case <-deadline:
			return nil, fmt.Errorf("contestant %s: %d of %d parents are ready after 15 minutes", p.kind, len(ready), p.parents)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	after := processors(p.planeDir)
	var all []time.Duration
	for _, d := range ready {
		all = append(all, d)
	}
	slices.Sort(all)
	r.took, r.p99 = all[len(all)-1], percentile(all, 99)
	r.quickest, r.slowest = r.took, r.took
	r.processors = since(after, before)
	var err error
	if r.usage, err = p.ask("usage"); err != nil {
		return nil, err
	}
	if err := p.settle(ctx); err != nil {
		return nil, err
	}
	if r.requests, err = p.audit.count(p.agent); err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	progress("%-28s %6d parents %8.2f s  %6d requests", label(r), p.parents, r.took.Seconds(), r.requests.total())
	return r, nil
}

func (p *phase) drain() {
	for {
		select {
		case <-p.events:
		default:
			return
		}
	}
}

func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, len(sorted)*p/100)]
}

// rest counts what is asked for while nothing happens.
func (p *phase) rest(ctx context.Context) (counts, error) {
	p.audit.skip()
	if err := pause(ctx, p.options.quiet); err != nil {
		return nil, err
	}
	return p.audit.count(p.agent)
}

// returns deletes children one at a time and waits for each to be there again.
func (p *phase) measureReturns(ctx context.Context) ([]time.Duration, error) {
	return p.oneByOne(func(i int) (func(event) bool, error) {
		name, deleted := childName(parentName(i), i%childrenPerParent), false
		done := func(e event) bool {
			if e.Object.Kind != "ConfigMap" || e.Object.Metadata.Name != name {
				return false
			}
			deleted = deleted || e.Type == "DELETED"
			return deleted && e.Type == "ADDED"
		}
		return done, p.api.send(ctx, p.api.client.Delete(), nil, append(configMaps(p.namespace), name)...)
	})
}

// follows edits parents one at a time and waits for all children to have changed.
func (p *phase) measureFollows(ctx context.Context) ([]time.Duration, error) {
	p.edits++
	return p.oneByOne(func(i int) (func(event) bool, error) {
		value := fmt.Sprintf("edit-%d-%d", p.edits, i)
		changed := map[string]bool{}
		done := func(e event) bool {
			if e.Object.Kind == "ConfigMap" && e.Object.Data.Value == value {
				changed[e.Object.Metadata.Name] = true
			}
			return len(changed) == childrenPerParent
		}
		body, err := json.Marshal(map[string]any{"spec": map[string]any{"value": value}})
		if err != nil {
			return nil, err
		}
		return done, p.api.send(ctx, p.api.client.Patch(types.MergePatchType), body, append(trios(p.namespace), parentName(i))...)
	})
}

// oneByOne measures from an act until an event that ends it, for healthy parents
// one after another, with a moment of rest between them.
func (p *phase) oneByOne(act func(int) (func(event) bool, error)) ([]time.Duration, error) {
	var all []time.Duration
	for i := 0; len(all) < min(p.latencies, p.parents); i++ {
		if p.isPoisoned(i) {
			continue
		}
		<-time.After(10 * time.Millisecond) // What the last one left to do, such as a status, is not this one's.
		p.drain()
		start := time.Now()
		done, err := act(i)
		if err != nil {
			return nil, err
		}
		took, err := p.awaitEvent(start, done)
		if err != nil {
			return nil, fmt.Errorf("contestant %s, %s: %w", p.kind, parentName(i), err)
		}
		all = append(all, took)
	}
	slices.Sort(all)
	return all, nil
}

func (p *phase) awaitEvent(start time.Time, done func(event) bool) (time.Duration, error) {
	deadline := time.After(30 * time.Second)
	for {
		select {
		case e := <-p.events:
			if done(e) {
				return e.seen.Sub(start), nil
			}
		case <-deadline:
			return 0, fmt.Errorf("nothing happened within 30 s")
		}
	}
}

// latencies measures returns and follows of a contestant that has converged.
func (p *phase) measureLatencies(ctx context.Context, r *result) (err error) {
	if r.returns, err = p.measureReturns(ctx); err != nil {
		return err
	}
	r.follows, err = p.measureFollows(ctx)
	return err
}
