package engine

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/homeostat-dev/homeostat/engine/plan"
	"github.com/homeostat-dev/homeostat/internal/metric"
)

// measure publishes what is read from the core on each scrape, until the
// returned function is called.
func (e *engine) measure() (stop func()) {
	name := e.core.operator.Name
	return metric.Observe(metric.OldestUnsynced, func() float64 {
		return e.core.OldestUnsynced(time.Now()).Seconds()
	}, name)
}

func (e *engine) count(pass *Pass, took time.Duration) {
	outcome := "settled"
	if pass.Err() != nil {
		outcome = "failed"
	}
	metric.Count(metric.Passes, e.core.operator.Name, outcome)
	metric.Time(metric.PassDuration, took, e.core.operator.Name)
}

func countOp(operatorName string, op plan.Op, result plan.Result) {
	outcome := "ok"
	if result.Err != nil {
		outcome = string(apierrors.ReasonForError(result.Err))
	}
	if outcome == "" {
		outcome = "unknown"
	}
	metric.Count(metric.Operations, operatorName, string(op.Verb), outcome)
}
