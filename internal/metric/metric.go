// Package metric is the table of the metrics that Homeostat publishes, and the
// one place where they are registered. It never decides what is measured when.
// Its invariant: a metric that is not in the table does not exist, and no label
// names a single object. The reference page and the dashboard are made from the
// same table.
package metric

//go:generate go run ./gen ../../docs

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

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
			c.counters[s.Name] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: s.Name, Help: s.Help}, s.labels())
			metrics.Registry.MustRegister(c.counters[s.Name])
		case Histogram:
			c.histograms[s.Name] = prometheus.NewHistogramVec(prometheus.HistogramOpts{
				Name: s.Name, Help: s.Help, Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
			}, s.labels())
			metrics.Registry.MustRegister(c.histograms[s.Name])
		}
	}
	return c
}

func (s Spec) labels() []string {
	out := make([]string, 0, len(s.Labels))
	for _, l := range s.Labels {
		out = append(out, l.Name)
	}
	return out
}

// Prepare makes the counters and histograms of an operator exist, at zero.
func Prepare(operator string) {
	for _, s := range Table {
		for _, values := range s.series(operator) {
			switch s.Kind {
			case Counter:
				registered.counters[s.Name].WithLabelValues(values...)
			case Histogram:
				registered.histograms[s.Name].WithLabelValues(values...)
			}
		}
	}
}

// series are all combinations of the values that labels have from the start.
func (s Spec) series(operator string) [][]string {
	out := [][]string{{operator}}
	for _, l := range s.Labels[1:] {
		var longer [][]string
		for _, prefix := range out {
			for _, v := range l.Values {
				longer = append(longer, append(prefix[:len(prefix):len(prefix)], v))
			}
		}
		out = longer
	}
	return out
}

// Count adds one to a counter of the table.
func Count(name string, labels ...string) { Add(name, 1, labels...) }

// Add adds to a counter of the table.
func Add(name string, n int, labels ...string) {
	registered.counters[name].WithLabelValues(labels...).Add(float64(n))
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
		for i, l := range s.labels() {
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
