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
	metric.Prepare(name)
	return metric.Observe(metric.OldestUnsynced, func() float64 {
		return e.core.OldestUnsynced(time.Now()).Seconds()
	}, name)
}

func (e *engine) count(pass *Pass, took time.Duration) {
	outcome := metric.Settled
	if pass.Err() != nil {
		outcome = metric.Failed
	}
	metric.Count(metric.Passes, e.core.operator.Name, outcome)
	metric.Add(metric.Rounds, pass.rounds, e.core.operator.Name)
	metric.Time(metric.PassDuration, took, e.core.operator.Name)
}

func countOp(operatorName string, op plan.Op, result plan.Result) {
	outcome := metric.OK
	if result.Err != nil {
		outcome = string(apierrors.ReasonForError(result.Err))
	}
	if outcome == "" {
		outcome = metric.Unknown
	}
	metric.Count(metric.Operations, operatorName, string(op.Verb), outcome)
	if op.Verb == plan.Tell && result.Err == nil {
		kind, _ := op.Body["type"].(string)
		metric.Count(metric.Events, operatorName, kind)
	}
}
