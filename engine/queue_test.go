package engine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// TestTimersAndEventsDoNotStarveEachOther: first come, first served.
func TestTimersAndEventsDoNotStarveEachOther(t *testing.T) {
	q := newQueue()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	name := func(n string) types.NamespacedName { return types.NamespacedName{Name: n} }
	q.add(name("timer"), at)
	q.add(name("before"), time.Time{})
	_, _, _ = q.first(at)
	q.add(name("after"), time.Time{})
	var got []string
	for {
		n, _, ok := q.first(at)
		if !ok {
			break
		}
		got = append(got, n.Name)
		q.remove(n)
	}
	if diff := cmp.Diff([]string{"before", "timer", "after"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}
