package verb

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/homeostat-dev/homeostat/engine"
	"github.com/homeostat-dev/homeostat/engine/plan"
)

// proposal is what one operator would do for one object.
type proposal struct {
	operator string
	engine.Proposal
}

// totals count what proposals would do.
type totals struct{ create, change, delete, failing int }

func total(all []proposal) totals {
	var t totals
	for _, p := range all {
		if p.Err != nil {
			t.failing++
		}
		for _, op := range p.Ops {
			switch op.Verb {
			case plan.Create:
				t.create++
			case plan.Delete:
				t.delete++
			case plan.Tell, plan.Read: // An event is news, not a change; a read is neither.
			default:
				t.change++
			}
		}
	}
	return t
}

// shownOp is an operation as -o json and yaml show it.
type shownOp struct {
	Verb       string         `json:"verb"`
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"`
	Namespace  string         `json:"namespace,omitempty"`
	Name       string         `json:"name"`
	Reason     string         `json:"reason"`
	Changes    []plan.Change  `json:"changes,omitempty"`
	Body       map[string]any `json:"body,omitempty"`
}

// shownProposal is a proposal as -o json and yaml show it.
type shownProposal struct {
	Operator   string    `json:"operator"`
	Kind       string    `json:"kind"`
	Namespace  string    `json:"namespace,omitempty"`
	Name       string    `json:"name"`
	Operations []shownOp `json:"operations"`
	Error      string    `json:"error,omitempty"`
}

func show(w io.Writer, format string, all []proposal) error {
	if format == "text" {
		_, err := io.WriteString(w, text(all))
		return err
	}
	return encode(w, format, shown(all))
}

func shown(all []proposal) []shownProposal {
	out := make([]shownProposal, 0, len(all))
	for _, p := range all {
		s := shownProposal{
			Operator: p.operator, Kind: p.Parent.Kind.Kind, Namespace: p.Parent.Namespace, Name: p.Parent.Name,
			Operations: make([]shownOp, 0, len(p.Ops)),
		}
		if p.Err != nil {
			s.Error = p.Err.Error()
		}
		for _, op := range p.Ops {
			s.Operations = append(s.Operations, shownOp{
				Verb: string(op.Verb), APIVersion: op.Kind.GroupVersion().String(), Kind: op.Kind.Kind,
				Namespace: op.Namespace, Name: op.Name, Reason: op.Reason, Changes: op.Changes, Body: op.Shown(),
			})
		}
		out = append(out, s)
	}
	return out
}

// text has a block for each object that is not as desired, and a line that sums up.
func text(all []proposal) string {
	var b strings.Builder
	for _, p := range all {
		if len(p.Ops) == 0 && p.Err == nil {
			continue
		}
		_, _ = fmt.Fprintf(&b, "%v (operator %s)\n", p.Parent, p.operator)
		for _, op := range p.Ops {
			_, _ = fmt.Fprintf(&b, "  %v\n", op)
			for _, line := range difference(op) {
				_, _ = fmt.Fprintf(&b, "      %s\n", line)
			}
		}
		if p.Err != nil {
			_, _ = fmt.Fprintf(&b, "  ! %v\n", p.Err)
		}
		b.WriteString("\n")
	}
	t := total(all)
	_, _ = fmt.Fprintf(&b, "%s: %d to create, %d to change, %d to delete", objects(len(all)), t.create, t.change, t.delete)
	if t.failing > 0 {
		_, _ = fmt.Fprintf(&b, ", %d failing", t.failing)
	}
	return b.String() + "\n"
}

func objects(n int) string {
	if n == 1 {
		return "1 object"
	}
	return fmt.Sprintf("%d objects", n)
}

// difference are the lines that say what an operation changes: its fields or,
// of a creation, the whole object.
func difference(op plan.Op) []string {
	var lines []string
	if op.Verb == plan.Create {
		body := map[string]any{}
		for k, v := range op.Shown() {
			if k != "apiVersion" && k != "kind" {
				body[k] = v
			}
		}
		data, err := yaml.Marshal(withoutFence(body))
		if err != nil {
			return []string{err.Error()}
		}
		for line := range strings.Lines(string(data)) {
			lines = append(lines, "+ "+strings.TrimSuffix(line, "\n"))
		}
		return lines
	}
	for _, c := range op.Changes {
		leaves := c.Leaves()
		if len(leaves) == 0 {
			lines = append(lines, c.Path+": "+unowned)
		}
		for _, l := range leaves {
			lines = append(lines, fmt.Sprintf("%s: %s → %s", l.Path, value(l.From), value(l.To)))
		}
	}
	return lines
}

// unowned is what is said of a value that is there, but not recorded as ours.
const unowned = "as it is, to be owned"

// withoutFence leaves out what only makes the write safe.
func withoutFence(body map[string]any) map[string]any {
	meta, ok := body["metadata"].(map[string]any)
	if !ok {
		return body
	}
	kept := map[string]any{}
	for k, v := range meta {
		if k != "resourceVersion" && k != "uid" && k != "ownerReferences" {
			kept[k] = v
		}
	}
	body["metadata"] = kept
	return body
}

func value(v any) string {
	if v == nil {
		return "(absent)"
	}
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
