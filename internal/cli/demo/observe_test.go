package demo

import (
	"testing"
	"time"
)

// TestStopwatch shows that a state that is over before anybody asks is not missed.
func TestStopwatch(t *testing.T) {
	now := time.Unix(0, 0)
	o := &observer{world: World{}, clock: func() time.Time { now = now.Add(time.Second); return now }}
	size := 5
	is := func(want int) Condition {
		return func(World) (bool, string) { return size == want, "size is wrong" }
	}
	s := o.start(is(1), is(5))
	if got := o.instead(s); got != "size is wrong" {
		t.Errorf("instead of the first condition it saw %q", got)
	}
	for _, next := range []int{3, 1, 2, 5, 7} {
		o.change(func() { size = next })
	}
	select {
	case <-s.done:
	default:
		t.Fatal("both conditions held, one after the other; the stopwatch still runs")
	}
	if took := s.at[1].Sub(s.at[0]); took != time.Second {
		t.Errorf("from the first to the second condition it took %v, want %v", took, time.Second)
	}
}
