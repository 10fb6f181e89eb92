package metric_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/homeostat-dev/homeostat/internal/metric"
)

func TestPreparedMetricsAreThereAtZero(t *testing.T) {
	const name = "prepared"
	metric.Prepare(name)
	defer metric.Observe(metric.OldestUnsynced, func() float64 { return 0 }, name)()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]int{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			ours := false
			for _, l := range m.GetLabel() {
				ours = ours || l.GetName() == "operator" && l.GetValue() == name
			}
			if !ours {
				continue
			}
			series[f.GetName()]++
			if v := m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount()); v != 0 {
				t.Errorf("%s is %v", m, v)
			}
		}
	}
	for _, s := range metric.Table {
		want := 1
		for _, l := range s.Labels[1:] {
			want *= len(l.Values)
		}
		if series[s.Name] != want || want == 0 {
			t.Errorf("%s has %d series, want %d", s.Name, series[s.Name], want)
		}
	}
}

// TestTable: what the page and the dashboard need is there, and no label names
// a single object.
func TestTable(t *testing.T) {
	for _, s := range metric.Table {
		if s.Help == "" || s.Title == "" || s.Unit == "" || !strings.HasPrefix(s.Name, "homeostat_") {
			t.Errorf("%s lacks a word", s.Name)
		}
		if len(s.Labels) == 0 || s.Labels[0].Name != "operator" {
			t.Errorf("%s is not by operator", s.Name)
		}
		for _, l := range s.Labels {
			if l.Help == "" || l.Name == "name" || l.Name == "namespace" {
				t.Errorf("%s: label %q", s.Name, l.Name)
			}
		}
		if (s.Kind == metric.Counter) != strings.HasSuffix(s.Name, "_total") {
			t.Errorf("%s is a %s", s.Name, s.Kind)
		}
	}
}
