package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Campaign says which schedules a torture goes through.
type Campaign struct {
	// Faults are injected at every write of the reference.
	Faults []FaultKind
	// Lists are what a process that crashed starts from, each in turn.
	Lists []Lists
	// Slow are kinds whose events are late, each in a run without faults and,
	// with every fault at every write, where SlowFaults is set.
	Slow       []schema.GroupVersionKind
	SlowFaults bool
	// Seeds are random orders without faults, Pairs are random orders with two
	// random faults; both count from one.
	Seeds, Pairs int
}

// Thorough is every fault at every write, starts from fresh lists, from lists a
// few versions back and from the very first ones, of all kinds and of each
// alone, each kind late, and a number of random orders and pairs of faults.
func Thorough(random int, kinds ...schema.GroupVersionKind) Campaign {
	const all = 1 << 20
	c := Campaign{
		Faults: []FaultKind{CrashBefore, CrashAfter, Lost, Unsent, Conflict, Internal, TooMany},
		Lists:  []Lists{{}, {Back: 1}, {Back: 4}, {Back: all}},
		Slow:   kinds, Seeds: random, Pairs: random,
	}
	for _, k := range kinds {
		c.Lists = append(c.Lists, Lists{Kind: k, Back: all})
	}
	return c
}

// Report is what came of a torture.
type Report struct {
	Reference *Outcome
	Schedules int
	Failures  []Failure
}

// Failure is a schedule under which a rule was broken.
type Failure struct {
	Schedule Schedule
	Err      error
}

// Torture runs the scenario without faults and then under every schedule of the
// campaign. It stops after the first few failures.
func Torture(scenario Scenario, campaign Campaign) Report {
	report := Report{Reference: Run(scenario, Schedule{}), Schedules: 1}
	if report.Reference.Err != nil {
		report.Failures = []Failure{{Err: report.Reference.Err}}
		return report
	}
	for _, schedule := range campaign.schedules(report.Reference.Writes) {
		report.Schedules++
		outcome := Run(scenario, schedule)
		if err := outcome.Against(report.Reference); err != nil {
			report.Failures = append(report.Failures, Failure{Schedule: schedule, Err: err})
		}
		if len(report.Failures) == mostFailures {
			break
		}
	}
	return report
}

const mostFailures = 3

// schedules are those of the campaign for a reference of so many writes.
func (c Campaign) schedules(writes int) []Schedule {
	var out []Schedule
	for _, f := range c.faults(writes) {
		out = append(out, Schedule{Faults: []Fault{f}})
	}
	for _, kind := range c.Slow {
		out = append(out, Schedule{Slow: kind})
		if c.SlowFaults {
			for _, f := range c.faults(writes) {
				out = append(out, Schedule{Slow: kind, Faults: []Fault{f}})
			}
		}
	}
	for seed := 1; seed <= c.Seeds; seed++ {
		out = append(out, Schedule{Seed: uint64(seed)})
	}
	for seed := 1; seed <= c.Pairs; seed++ {
		out = append(out, c.pair(uint64(seed), writes))
	}
	return out
}

func (c Campaign) faults(writes int) []Fault {
	var out []Fault
	for n := 1; n <= writes; n++ {
		for _, kind := range c.Faults {
			if kind != CrashBefore && kind != CrashAfter {
				out = append(out, Fault{Kind: kind, Write: n})
				continue
			}
			for _, lists := range c.Lists {
				out = append(out, Fault{Kind: kind, Write: n, Lists: lists})
			}
		}
	}
	return out
}

// pair draws two faults, the second soon after the first, and an order.
func (c Campaign) pair(seed uint64, writes int) Schedule {
	random := rand.New(rand.NewPCG(seed, 2))
	s := Schedule{Seed: seed}
	if len(c.Slow) > 0 && random.IntN(2) == 0 {
		s.Slow = c.Slow[random.IntN(len(c.Slow))]
	}
	at := 1 + random.IntN(writes)
	for range 2 {
		f := Fault{Kind: c.Faults[random.IntN(len(c.Faults))], Write: at}
		if f.Kind == CrashBefore || f.Kind == CrashAfter {
			f.Lists = c.Lists[random.IntN(len(c.Lists))]
		}
		s.Faults = append(s.Faults, f)
		at += 1 + random.IntN(4)
	}
	return s
}

// Err is nil when every schedule kept the rules; otherwise it tells the first
// failure as a story.
func (r Report) Err(scenario Scenario) error {
	if len(r.Failures) == 0 {
		return nil
	}
	var b strings.Builder
	for _, f := range r.Failures {
		fmt.Fprintf(&b, "simulated: schedule %v: %v\n", f.Schedule, f.Err)
	}
	return fmt.Errorf("%d of %d simulated schedules of %s break a rule\n%s\n%s",
		len(r.Failures), r.Schedules, r.Reference.Scenario, b.String(), Story(scenario, r.Failures[0].Schedule))
}
