package machine

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/homeostat-dev/homeostat/operator"
	"github.com/homeostat-dev/homeostat/operators/machine/v1alpha1"
)

// lever is anything that can be flipped: a Switch, or the machine's own switch.
type lever struct {
	name       string
	uid        types.UID
	generation int64
	position   string
	seen       v1alpha1.Sighting
}

func leversOf(switches []*v1alpha1.Switch) []lever {
	var out []lever
	for _, s := range switches {
		out = append(out, lever{
			name: s.Name, uid: s.UID, generation: s.Generation, position: s.Spec.Position, seen: s.Status.Sighting,
		})
	}
	return out
}

// step is what a machine does now.
type step struct {
	flip      *v1alpha1.Flip
	flippedAt time.Time
	// move is the lever to put down in this pass, because the flip is saved.
	move   *lever
	until  time.Time
	events []operator.Event
}

// record adds to a status what has to be saved of the step.
func (s step) record(status v1alpha1.MachineStatus) v1alpha1.MachineStatus {
	status.Flip = s.flip
	if !s.flippedAt.IsZero() {
		status.FlippedAt = micro(s.flippedAt)
	}
	return status
}

// nextStep decides from what is saved. A flip takes three rounds: it is saved
// with the time of the pass; seen saved with that very time, the lever is moved;
// seen moved in a later pass, the flip is over. The rest of five seconds counts
// from that later pass, because only then is it known to lie after the write,
// however long the write took.
func nextStep(now time.Time, saved v1alpha1.MachineStatus, levers []lever) step {
	s := step{flip: saved.Flip}
	if saved.FlippedAt != nil {
		s.flippedAt = saved.FlippedAt.Time
	}
	if s.flip != nil {
		return s.inFlight(now, levers)
	}
	l, at := firstDue(levers)
	if rested := s.flippedAt.Add(interval); at.Before(rested) {
		at = rested
	}
	switch {
	case l == nil:
	case now.Before(at):
		s.until = at
	default:
		s.flip = &v1alpha1.Flip{Switch: l.name, UID: l.uid, Generation: l.generation, At: *micro(now)}
	}
	return s
}

// inFlight is the step while a flip is saved.
func (s step) inFlight(now time.Time, levers []lever) step {
	l := find(levers, s.flip.UID)
	stillUp := l != nil && l.generation == s.flip.Generation && l.position != down
	switch {
	case stillUp && s.flip.At.Time.Equal(now):
		s.move = l
		return s
	case stillUp: // The pass that saved it did not get to move it.
		again := *s.flip
		again.At = *micro(now)
		s.flip = &again
		return s
	}
	if l != nil && l.position == down && l.generation == s.flip.Generation+1 {
		s.events = []operator.Event{flipped(*s.flip)}
	}
	if now.After(s.flip.At.Time) {
		s.flip, s.flippedAt = nil, now
	} else {
		s.until = s.flip.At.Add(time.Microsecond)
	}
	return s
}

func flipped(f v1alpha1.Flip) operator.Event {
	what := "the switch"
	if f.Switch != "" {
		what = "switch " + f.Switch
	}
	return operator.Event{
		Reason: "Flipped", Message: fmt.Sprintf("Put %s down", what),
		Key: fmt.Sprintf("%s/%d", f.UID, f.Generation),
	}
}

func find(levers []lever, uid types.UID) *lever {
	for i := range levers {
		if levers[i].uid == uid {
			return &levers[i]
		}
	}
	return nil
}

// firstDue is the lever that was seen up first, as it stands now, and when it is
// due. One that nobody has seen yet in its present position is not due: when it
// is seen, its status changes, and the machine is asked again.
func firstDue(levers []lever) (*lever, time.Time) {
	var first *lever
	for i := range levers {
		l := &levers[i]
		if l.position == down || l.seen.SeenAt == nil || l.seen.SeenGeneration != l.generation {
			continue
		}
		if first == nil || l.seen.SeenAt.Before(first.seen.SeenAt) {
			first = l
		}
	}
	if first == nil {
		return nil, time.Time{}
	}
	return first, first.seen.SeenAt.Add(interval)
}
