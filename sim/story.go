package sim

import (
	"fmt"
	"strings"
	"time"
)

// String is the record on one line, as a story tells it.
func (r Record) String() string {
	what := r.Verb
	if r.Op != nil {
		what = string(r.Op.Verb)
	}
	if r.Subresource != "" && what != r.Subresource {
		what += " " + r.Subresource + " of"
	}
	s := fmt.Sprintf("%s: %s %v", r.Who, what, r.Ref)
	if r.Reason != "" && r.Op != nil {
		s += fmt.Sprintf(" (%s)", r.Reason)
	}
	switch {
	case r.Err != nil:
		s += fmt.Sprintf(" → refused: %v", r.Err)
	case !r.Changed():
		s += " → no change"
	case r.After == nil:
		s += " → gone"
	default:
		s += " → version " + r.After.GetResourceVersion()
	}
	if r.Lost {
		s += ", response lost"
	}
	return s
}

// Story runs the schedule again and tells what happened, one line for each
// thing, for whoever has to understand a failure.
func Story(scenario Scenario, schedule Schedule) string {
	var b strings.Builder
	fmt.Fprintf(&b, "simulated: scenario %s, schedule %v\n", scenario.Name, schedule)
	var r *run
	r = start(scenario, schedule, func(format string, args ...any) {
		at := r.now.Sub(Epoch).Truncate(time.Millisecond)
		fmt.Fprintf(&b, "%10v %4d  %s\n", at, r.steps, fmt.Sprintf(format, args...))
	})
	o := r.finish()
	fmt.Fprintf(&b, "simulated: the end after %d steps, %d writes and %d reads of the cores", o.Steps, o.Writes, o.Reads)
	if o.Err != nil {
		fmt.Fprintf(&b, ": %v", o.Err)
	}
	return shortened(b.String()) + "\n"
}

// shortened leaves out the middle of a story that does not end.
func shortened(story string) string {
	const most = 150
	lines := strings.Split(story, "\n")
	if len(lines) <= most {
		return story
	}
	middle := fmt.Sprintf("           ... %d lines ...", len(lines)-most)
	return strings.Join(append(append(lines[:most/2:most/2], middle), lines[len(lines)-most/2:]...), "\n")
}
