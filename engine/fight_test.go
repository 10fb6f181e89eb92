package engine_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/homeostat-dev/homeostat/operator"
)

// TestAFightIsGivenUp: somebody who changes a field as often as we set it back
// is named, and left alone for a while. A new wish starts anew.
func TestAFightIsGivenUp(t *testing.T) {
	wish := "ours"
	b := newBench(t, func(r operator.Request) (operator.Response, error) {
		return operator.Response{Children: []operator.Object{
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Data: map[string]string{"k": wish}},
		}}, nil
	})
	b.settle()
	meddle := func() (applies int) {
		c := b.objects[refOf(configMaps, "c")].DeepCopy()
		c.Object["data"] = map[string]any{"k": "theirs"}
		b.others(c)
		for _, did := range b.settle() {
			if strings.HasPrefix(did, "apply") {
				applies++
			}
		}
		b.now = b.now.Add(time.Second)
		return applies
	}
	total := 0
	for range 20 {
		total += meddle()
	}
	if total != 8 {
		t.Errorf("the field was set back %d times, want 8", total)
	}
	if said := b.said()["Stalled"]; said != "True Fighting" {
		t.Errorf("Stalled is %q", said)
	}
	wish = "ours again"
	if meddle() == 0 {
		t.Error("a new wish was not applied")
	}
	for range 10 {
		meddle()
	}
	if meddle() != 0 {
		t.Error("the new fight was not given up")
	}
	b.now = b.now.Add(time.Hour)
	if meddle() == 0 {
		t.Error("the fight is remembered for ever")
	}
}
