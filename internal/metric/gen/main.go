// Command gen writes the reference page and the Grafana dashboard of the table
// of metrics into a folder. It reads nothing but the table; its invariant: the
// same table gives the same files, byte for byte.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/homeostat-dev/homeostat/internal/metric"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: gen FOLDER")
	}
	files, err := files(metric.Table)
	if err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(args[0], name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// files are what is made of the table, by name.
func files(table []metric.Spec) (map[string][]byte, error) {
	var board bytes.Buffer
	encoder := json.NewEncoder(&board)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(dashboard(table)); err != nil {
		return nil, fmt.Errorf("encode the dashboard: %w", err)
	}
	return map[string][]byte{"metrics.md": []byte(page(table)), "dashboard.json": board.Bytes()}, nil
}

func page(table []metric.Spec) string {
	var b strings.Builder
	b.WriteString(`# Metrics

<!-- Made from the table in internal/metric/table.go by make generate; do not edit. -->

An operator serves these metrics where ` + "`run --metrics-bind-address`" + ` says, at ` + "`/metrics`" + `, next to those of
controller-runtime, client-go and the Go runtime. No label names a single object: there are as many series for one parent
as for a hundred thousand. Counters and histograms are there from the start, at zero, for the values that are listed.
[dashboard.json](dashboard.json) is a Grafana dashboard with a panel for each.
`)
	for _, s := range table {
		_, _ = fmt.Fprintf(&b, "\n## %s\n\n%s A %s.\n\n| label | what it is | values |\n|---|---|---|\n", s.Name, s.Help, s.Kind)
		for _, l := range s.Labels {
			values := "any"
			if len(l.Values) > 0 {
				values = "`" + strings.Join(l.Values, "`, `") + "`"
			}
			_, _ = fmt.Fprintf(&b, "| `%s` | %s | %s |\n", l.Name, l.Help, values)
		}
	}
	return b.String()
}

type object = map[string]any

// dashboard is a Grafana dashboard with one panel for each metric, two abreast.
func dashboard(table []metric.Spec) object {
	const width, height = 12, 8
	source := object{"type": "prometheus", "uid": "${source}"}
	var panels []object
	for i, s := range table {
		targets := targets(s)
		for j := range targets {
			targets[j]["refId"] = string(rune('A' + j))
			targets[j]["datasource"] = source
		}
		panels = append(panels, object{
			"id": i + 1, "type": "timeseries", "title": s.Title, "description": s.Help, "datasource": source,
			"gridPos":     object{"x": i % 2 * width, "y": i / 2 * height, "w": width, "h": height},
			"fieldConfig": object{"defaults": object{"unit": s.Unit, "min": 0}, "overrides": []object{}},
			"options": object{
				"legend":  object{"displayMode": "list", "placement": "bottom", "showLegend": true},
				"tooltip": object{"mode": "multi", "sort": "desc"},
			},
			"targets": targets,
		})
	}
	return object{
		"title": "Homeostat", "uid": "homeostat", "tags": []string{"homeostat"}, "schemaVersion": 39, "editable": true,
		"time": object{"from": "now-1h", "to": "now"}, "refresh": "30s", "panels": panels,
		"templating": object{"list": []object{
			{"name": "source", "label": "Data source", "type": "datasource", "query": "prometheus"},
			{
				"name": "operator", "label": "Operator", "type": "query", "datasource": source, "refresh": 2, "sort": 1,
				"query":      fmt.Sprintf("label_values(%s, operator)", metric.Passes),
				"includeAll": true, "multi": true, "allValue": ".*", "current": object{"text": "All", "value": "$__all"},
			},
		}},
	}
}

// targets are the queries of a panel: a rate by the labels, the median and the
// 99th percentile, or the value as it is.
func targets(s metric.Spec) []object {
	var names, legend []string
	for _, l := range s.Labels {
		names = append(names, l.Name)
		legend = append(legend, "{{"+l.Name+"}}")
	}
	by, chosen := strings.Join(names, ", "), `{operator=~"$operator"}`
	switch s.Kind {
	case metric.Counter:
		return []object{{"expr": fmt.Sprintf("sum by (%s) (rate(%s%s[$__rate_interval]))%s", by, s.Name, chosen, busy(s)), "legendFormat": strings.Join(legend, " ")}}
	case metric.Histogram:
		var out []object
		for _, q := range []struct{ quantile, name string }{{"0.5", "p50"}, {"0.99", "p99"}} {
			out = append(out, object{
				"expr":         fmt.Sprintf("histogram_quantile(%s, sum by (le, %s) (rate(%s_bucket%s[$__rate_interval])))", q.quantile, by, s.Name, chosen),
				"legendFormat": strings.Join(legend, " ") + " " + q.name,
			})
		}
		return out
	}
	return []object{{"expr": fmt.Sprintf("max by (%s) (%s%s)", by, s.Name, chosen), "legendFormat": strings.Join(legend, " ")}}
}

// busy leaves out what stands still where there would be too many lines.
func busy(s metric.Spec) string {
	const most = 10
	lines := 1
	for _, l := range s.Labels[1:] {
		lines *= len(l.Values)
	}
	if lines > most {
		return " > 0"
	}
	return ""
}
