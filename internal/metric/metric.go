// Package metric is the table of the metrics that Homeostat publishes, and the
// one place where they are registered. It never decides what is measured when.
// Its invariant: a metric that is not in the table does not exist, and no label
// names a single object.
package metric

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// Spec describes one metric.
type Spec struct {
	Name   string
	Help   string
	Labels []string
	Kind   Kind
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
	Operations     = "homeostat_engine_operations_total"
	OldestUnsynced = "homeostat_engine_oldest_unsynced_seconds"
)

// Table is every metric.
var Table = []Spec{
	{Passes, "Passes over a parent by how they ended: settled or failed.", []string{"operator", "outcome"}, Counter},
	{PassDuration, "Time of a pass over a parent, its API calls included.", []string{"operator"}, Histogram},
	{Operations, "API operations by verb and by the reason of the answer; ok for success.", []string{"operator", "verb", "outcome"}, Counter},
	{OldestUnsynced, "How long the parent that waits longest has not been as desired; 0 when all are.", []string{"operator"}, Gauge},
}

// registered are the collectors of the table's counters and histograms; gauges
// are registered by whoever knows their value.
var registered = register()

type collectors struct {
	counters   map[string]*prometheus.CounterVec
	histograms map[string]*prometheus.HistogramVec
}

func register() collectors {
	c := collectors{counters: map[string]*prometheus.CounterVec{}, histograms: map[string]*prometheus.HistogramVec{}}
	for _, s := range Table {
		switch s.Kind {
		case Counter:
			c.counters[s.Name] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: s.Name, Help: s.Help}, s.Labels)
			metrics.Registry.MustRegister(c.counters[s.Name])
		case Histogram:
			c.histograms[s.Name] = prometheus.NewHistogramVec(prometheus.HistogramOpts{
				Name: s.Name, Help: s.Help, Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
			}, s.Labels)
			metrics.Registry.MustRegister(c.histograms[s.Name])
		}
	}
	return c
}

// Count adds one to a counter of the table.
func Count(name string, labels ...string) {
	registered.counters[name].WithLabelValues(labels...).Inc()
}

// Time records a duration in a histogram of the table.
func Time(name string, took time.Duration, labels ...string) {
	registered.histograms[name].WithLabelValues(labels...).Observe(took.Seconds())
}

// Observe publishes a gauge of the table, read when it is scraped, until the
// returned function is called.
func Observe(name string, read func() float64, labels ...string) (stop func()) {
	for _, s := range Table {
		if s.Name != name {
			continue
		}
		values := prometheus.Labels{}
		for i, l := range s.Labels {
			values[l] = labels[i]
		}
		gauge := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: s.Name, Help: s.Help, ConstLabels: values}, read)
		if metrics.Registry.Register(gauge) != nil {
			return func() {} // A second engine of the same operator in one process: the first one speaks for both.
		}
		return func() { metrics.Registry.Unregister(gauge) }
	}
	return func() {}
}
