package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// results are all that was measured in one run.
type results struct {
	options
	started time.Time
	// tried is what the floor took at each concurrency, best is the quickest.
	tried  map[int]time.Duration
	best   int
	sizes  [][]*result
	single *result
}

type contestant struct {
	kind   string
	atOnce int
}

func (c *conductor) all(ctx context.Context) (*results, error) {
	r := &results{options: c.options, started: time.Now(), tried: map[int]time.Duration{}}
	if err := c.findBest(ctx, r); err != nil {
		return nil, fmt.Errorf("floor: %w", err)
	}
	for i, size := range c.options.sizes {
		rounds := 1
		if i == 0 {
			rounds = c.rounds
		}
		one, err := c.size(ctx, r.best, size, rounds, i == len(c.options.sizes)-1)
		if err != nil {
			return nil, err
		}
		r.sizes = append(r.sizes, one)
		if i == 0 {
			if err := c.poison(ctx, one, size); err != nil {
				return nil, err
			}
		}
	}
	if c.alone > 0 {
		c.patience = 0 // It takes minutes, and what others took is in the table.
		var err error
		if r.single, err = c.once(ctx, contestant{kindHomeostat, 0}, c.alone, 0, false, false); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// findBest tries the floor at several concurrencies, after one try that only
// warms the API server up.
func (c *conductor) findBest(ctx context.Context, r *results) error {
	for _, atOnce := range []int{32, 8, 16, 32, 64, 8, 16, 32, 64} {
		one, err := c.once(ctx, contestant{kindPosts, atOnce}, c.options.sizes[0], 0, false, false)
		if err != nil {
			return err
		}
		if r.best == 0 {
			r.best = atOnce // The warm-up, which does not count.
			continue
		}
		if old, ok := r.tried[atOnce]; !ok || one.took < old {
			r.tried[atOnce] = one.took
		}
	}
	r.best = slices.MinFunc(sortedInts(r.tried), func(a, b int) int { return cmp.Compare(r.tried[a], r.tried[b]) })
	return nil
}

func (c *conductor) contestants(best int) []contestant {
	all := []contestant{{kindHomeostat, 0}, {kindByHand, 0}, {kindByHand, c.raised}, {kindApplies, best}}
	return slices.DeleteFunc(all, func(k contestant) bool { return !strings.HasPrefix(k.kind, c.only) })
}

// size runs everybody at one size, the floor first and last in each round.
func (c *conductor) size(ctx context.Context, best, parents, rounds int, quiet bool) ([]*result, error) {
	floor := contestant{kindPosts, best}
	order := slices.Concat([]contestant{floor}, c.contestants(best), []contestant{floor})
	runs := map[contestant][]*result{}
	for round := range rounds {
		for i, k := range order {
			last := round == rounds-1 && !(k == floor && i == 0)
			one, err := c.once(ctx, k, parents, 0, last && k.kind != kindApplies, last && quiet && (k.kind == kindHomeostat || k.kind == kindByHand))
			if err != nil {
				return nil, err
			}
			runs[k] = append(runs[k], one)
		}
	}
	out := []*result{median(runs[floor])}
	for _, k := range c.contestants(best) {
		out = append(out, median(runs[k]))
	}
	return out, nil
}

// median is the run in the middle, with the range of all and what only one of
// them measured.
func median(runs []*result) *result {
	sorted := slices.SortedFunc(slices.Values(runs), func(a, b *result) int { return cmp.Compare(a.took, b.took) })
	one := *sorted[(len(sorted)-1)/2]
	one.quickest, one.slowest = sorted[0].took, sorted[len(sorted)-1].took
	for _, r := range runs {
		if r.quiet != nil {
			one.quiet = r.quiet
		}
		if r.returns != nil {
			one.returns, one.follows = r.returns, r.follows
		}
	}
	return &one
}

// once runs one contestant on a namespace of its own, and again where others
// took much of the processors meanwhile.
func (c *conductor) once(ctx context.Context, k contestant, parents, poisoned int, latencies, quiet bool) (*result, error) {
	for try := 1; ; try++ {
		p, err := c.stage(ctx, k.kind, k.atOnce, parents, poisoned)
		if err != nil {
			return nil, err
		}
		r, err := p.converge(ctx)
		if err != nil {
			return nil, err
		}
		const much = 0.1
		if share := r.others() / r.processors[busyAll]; share > much && c.planeDir != "" && try <= c.patience {
			progress("others took %.0f %% of the processors: once more", 100*share)
			if err := p.end(ctx); err != nil {
				return nil, err
			}
			continue
		}
		return r, p.afterwards(ctx, r, latencies, quiet)
	}
}

// afterwards measures what is measured of a contestant that has converged, and
// ends it.
func (p *phase) afterwards(ctx context.Context, r *result, latencies, quiet bool) (err error) {
	if quiet {
		if r.quiet, err = p.rest(ctx); err != nil {
			return err
		}
	}
	if latencies {
		if p.kind == kindPosts {
			if _, err := p.ask("react"); err != nil {
				return err
			}
		}
		if err := p.measureLatencies(ctx, r); err != nil {
			return err
		}
	}
	return p.end(ctx)
}

// poison runs the operators with as many healthy parents as before and a tenth
// of that poisoned, half of them by a panic and half by a refused child.
func (c *conductor) poison(ctx context.Context, healthy []*result, parents int) error {
	for _, h := range healthy {
		if h.kind != kindHomeostat && h.kind != kindByHand {
			continue
		}
		var err error
		if h.poisoned, err = c.once(ctx, contestant{h.kind, h.atOnce}, parents, parents/10, true, false); err != nil {
			return err
		}
	}
	return nil
}

func sortedInts(m map[int]time.Duration) []int {
	var out []int
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
