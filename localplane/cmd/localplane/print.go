package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/homeostat-dev/homeostat/localplane/plane"
)

const (
	formatTable = "table"
	formatJSON  = "json"
	formatYAML  = "yaml"
)

func checkFormat(format string) error {
	switch format {
	case "", formatTable, formatJSON, formatYAML:
		return nil
	}
	return usagef("--output=%s: want table, json or yaml", format)
}

// print writes a value in the format; a table is for [app.printAll].
func (a *app) print(format string, value any) error {
	var content []byte
	var err error
	if format == formatYAML {
		content, err = yaml.Marshal(value)
	} else {
		content, err = json.MarshalIndent(value, "", "  ")
		content = append(content, '\n')
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", format, err)
	}
	_, err = a.stdout.Write(content)
	return err
}

// printAll shows planes.
func (a *app) printAll(format string, all []plane.Status) error {
	if format != formatTable && format != "" {
		return a.print(format, all)
	}
	if len(all) == 0 {
		_, err := fmt.Fprintf(a.stdout, "There are no planes. Start one with: %s up\n", a.program)
		return err
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(table, "NAME\tSTATE\tKUBERNETES\tSERVER\tNODES\tPROCESSES")
	for _, status := range all {
		alive := 0
		for _, process := range status.Processes {
			if process.Alive {
				alive++
			}
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d/%d\n", status.Name, status.State, orNone(status.Kubernetes),
			orNone(status.Server), orNone(status.Nodes.Provider), alive, len(status.Processes))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, status := range all {
		a.remark(status)
	}
	a.notices(all)
	return nil
}

// notices writes what the nodes of the planes are, each notice once.
func (a *app) notices(all []plane.Status) {
	var order []string
	names := map[string][]string{}
	for _, status := range all {
		notice := status.Nodes.Notice
		if notice == "" {
			continue
		}
		if names[notice] == nil {
			order = append(order, notice)
		}
		names[notice] = append(names[notice], status.Name)
	}
	for _, notice := range order {
		_, _ = fmt.Fprintf(a.stdout, "\n%s: %s\n", strings.Join(names[notice], ", "), notice)
	}
}

// remark writes what the table cannot say: why a plane does not run.
func (a *app) remark(status plane.Status) {
	if status.Message != "" {
		_, _ = fmt.Fprintf(a.stdout, "\n%s: %s\n", status.Name, status.Message)
	}
	if status.State == plane.StateDegraded {
		for _, process := range status.Processes {
			if !process.Alive {
				_, _ = fmt.Fprintf(a.stdout, "  log of %s: %s\n", process.Name, process.Log)
			}
		}
	}
}

func orNone(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// welcome tells what happened and how to use the plane.
func (a *app) welcome(status plane.Status, started []string, took time.Duration) error {
	name := ""
	if status.Name != plane.DefaultName {
		name = " " + status.Name
	}
	happened := fmt.Sprintf("is ready (in %.1fs)", took.Seconds())
	if len(started) == 0 {
		happened = "is already running"
	} else if len(started) < len(status.Processes) {
		happened = fmt.Sprintf("is ready again (in %.1fs): started %s", took.Seconds(), strings.Join(started, ", "))
	}
	lines := []string{
		fmt.Sprintf("Plane %q %s.", status.Name, happened),
		fmt.Sprintf("Kubernetes %s at %s", status.Kubernetes, status.Server),
		fmt.Sprintf("Nodes: %s. %s.", status.Nodes.Provider, status.Nodes.Notice),
		fmt.Sprintf("State: %s (thrown away by down; etcd does not sync to disk)", status.Dir),
	}
	if status.AuditLog != "" {
		lines = append(lines, "Audit: "+status.AuditLog)
	}
	lines = append(lines, "",
		fmt.Sprintf("  export KUBECONFIG=$(%s kubeconfig%s)", a.program, name),
		fmt.Sprintf("  %s kubectl%s -- get nodes", a.program, name),
		fmt.Sprintf("  %s down%s", a.program, name))
	_, err := fmt.Fprintln(a.stdout, strings.Join(lines, "\n"))
	return err
}
