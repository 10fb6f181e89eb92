package metric

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/homeostat-dev/homeostat/engine/plan"
)

// Spec describes one metric.
type Spec struct {
	Name   string
	Help   string
	Labels []Label
	Kind   Kind
	// Title and Unit are those of its panel on the dashboard; units are Grafana's.
	Title, Unit string
}

// Label is a label of a metric. The first of each metric is the operator.
type Label struct {
	Name, Help string
	// Values are those that are there from the start, at zero, so that the first
	// occurrence is an increase. Others may come.
	Values []string
}

// Kind is how a metric is counted.
type Kind string

// The kinds of metrics in the table.
const (
	Counter   Kind = "counter"
	Histogram Kind = "histogram"
	Gauge     Kind = "gauge"
)

// The names of the metrics.
const (
	Passes         = "homeostat_engine_passes_total"
	PassDuration   = "homeostat_engine_pass_duration_seconds"
	Rounds         = "homeostat_engine_rounds_total"
	Operations     = "homeostat_engine_operations_total"
	Events         = "homeostat_engine_events_total"
	OldestUnsynced = "homeostat_engine_oldest_unsynced_seconds"
)

// The outcomes that are no reason of an answer.
const (
	OK      = "ok"
	Unknown = "unknown"
	Settled = "settled"
	Failed  = "failed"
)

// Table is every metric.
var Table = []Spec{
	{Passes, "Passes over a parent by how they ended.",
		[]Label{byOperator, {"outcome", "settled when the parent was at rest as desired, failed otherwise", []string{Settled, Failed}}},
		Counter, "Passes", "ops"},
	{PassDuration, "Time of a pass over a parent, its API calls included.", []Label{byOperator}, Histogram, "Time of a pass", "s"},
	{Rounds, "Rounds in which something was written and Sync was asked again.", []Label{byOperator}, Counter, "Rounds", "ops"},
	{Operations, "API operations by verb and outcome.",
		[]Label{byOperator, {"verb", "what was done", verbs}, {"outcome", "ok, or the reason of the answer; unknown where it gave none", outcomes}},
		Counter, "API operations", "ops"},
	{Events, "Events told about parents.",
		[]Label{byOperator, {"type", "the event's type", []string{"Normal", "Warning"}}}, Counter, "Events told", "ops"},
	{OldestUnsynced, "How long the parent that waits longest has not been as desired; 0 when all are.", []Label{byOperator}, Gauge, "Oldest parent not as desired", "s"},
}

var byOperator = Label{Name: "operator", Help: "the operator's name"}

var verbs = []string{
	string(plan.Create), string(plan.Apply), string(plan.Strip), string(plan.Adopt), string(plan.Release),
	string(plan.Set), string(plan.Delete), string(plan.Status), string(plan.Tell), string(plan.Read),
}

// outcomes are those that are common enough to be watched for.
var outcomes = []string{
	OK, Unknown, string(metav1.StatusReasonConflict), string(metav1.StatusReasonForbidden),
	string(metav1.StatusReasonInvalid), string(metav1.StatusReasonNotFound), string(metav1.StatusReasonTooManyRequests),
}
