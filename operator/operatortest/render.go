package operatortest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/homeostat-dev/homeostat/operator"
)

// sections are the expected sections in the order in which they are written.
var sections = []string{"status.yaml", "children.yaml", "parent.yaml", "until", "conditions.yaml", "events.yaml", "error"}

var noKind schema.GroupVersionKind

// renderAnswer writes an answer as sections, leaving out what is empty.
func renderAnswer(into map[string]string, prefix string, d operator.Decision, err error) {
	put := func(name, text string) {
		if text != "" {
			into[prefix+name] = text
		}
	}
	if err != nil {
		put("error", renderError(err))
		return
	}
	if d.Status != nil {
		put("status.yaml", toYAML(d.Status))
	}
	put("children.yaml", renderChildren(d.Children))
	if len(d.Parent) > 0 {
		fields := map[string]any{}
		for _, f := range d.Parent {
			fields[f.Path] = f.Value
		}
		put("parent.yaml", toYAML(fields))
	}
	if !d.Until.IsZero() {
		put("until", d.Until.UTC().Format(time.RFC3339Nano)+"\n")
	}
	if len(d.Conditions) > 0 {
		put("conditions.yaml", toYAML(conditionValues(d)))
	}
	if len(d.Events) > 0 {
		put("events.yaml", toYAML(eventValues(d)))
	}
}

func renderError(err error) string {
	var law *LawError
	if errors.As(err, &law) {
		return "broken law: " + law.Error() + "\n"
	}
	f := operator.AsFailure(err)
	text := fmt.Sprintf("%s %s: %s\n", f.Kind, f.Reason, f.Message)
	if f.After != 0 {
		text += fmt.Sprintf("after %s\n", f.After)
	}
	return text
}

func renderChildren(children []operator.Desired) string {
	var docs []string
	for _, c := range children {
		object, note := c.Object.Object, ""
		switch {
		case c.Keep:
			note = "# kept\n"
			object = map[string]any{
				"apiVersion": c.Object.GetAPIVersion(), "kind": c.Object.GetKind(),
				"metadata": map[string]any{"name": c.Object.GetName(), "namespace": c.Object.GetNamespace()},
			}
		case len(c.Set) > 0:
			note = fmt.Sprintf("# sets %s if still at version %s\n", strings.Join(c.Set, ", "), c.SetVersion)
		}
		docs = append(docs, note+toYAML(object))
	}
	return strings.Join(docs, "---\n")
}

func conditionValues(d operator.Decision) []map[string]any {
	var out []map[string]any
	for _, c := range d.Conditions {
		out = append(out, map[string]any{"type": c.Type, "status": string(c.Status), "reason": c.Reason, "message": c.Message})
	}
	return out
}

func eventValues(d operator.Decision) []map[string]any {
	var out []map[string]any
	for _, e := range d.Events {
		v := map[string]any{"reason": e.Reason, "message": e.Message}
		if e.Type != "" {
			v["type"] = e.Type
		}
		if e.Key != "" {
			v["key"] = e.Key
		}
		out = append(out, v)
	}
	return out
}

// answerValues is an answer as JSON values, for comparing.
func answerValues(d operator.Decision) map[string]any {
	children := map[string]any{}
	for _, c := range d.Children {
		children[c.Ref().String()] = map[string]any{"object": c.Object.Object, "keep": c.Keep, "set": c.Set, "setVersion": c.SetVersion}
	}
	parent := map[string]any{}
	for _, f := range d.Parent {
		parent[f.Path] = f.Value
	}
	until := ""
	if !d.Until.IsZero() {
		until = d.Until.UTC().Format(time.RFC3339Nano)
	}
	values := map[string]any{
		"status": d.Status, "children": children, "parent": parent, "until": until,
		"conditions": conditionValues(d), "events": eventValues(d),
	}
	return roundTrip(values)
}

// roundTrip gives values the one form that JSON gives them.
func roundTrip(values map[string]any) map[string]any {
	data, err := json.Marshal(values)
	out := map[string]any{}
	if err == nil {
		err = utiljson.Unmarshal(data, &out)
	}
	if err != nil {
		// Everything here has been JSON before.
		panic(fmt.Sprintf("operatortest: %v", err))
	}
	return out
}

func toYAML(v any) string {
	text, err := yaml.Marshal(v)
	if err != nil {
		return fmt.Sprintf("# cannot be written: %v\n", err)
	}
	return string(text)
}

// parseObjects reads documents between lines of "---"; kind is for those that
// name none.
func parseObjects(data []byte, kind schema.GroupVersionKind) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for i, doc := range strings.Split("\n"+string(data), "\n---") {
		object := map[string]any{}
		text, err := yaml.YAMLToJSONStrict([]byte(doc))
		if err == nil && string(text) != "null" {
			err = utiljson.Unmarshal(text, &object)
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", i+1, err)
		}
		if len(object) == 0 {
			continue
		}
		u := &unstructured.Unstructured{Object: object}
		if u.GroupVersionKind().Empty() {
			u.SetGroupVersionKind(kind)
		}
		if u.GetKind() == "" || u.GetAPIVersion() == "" {
			return nil, fmt.Errorf("document %d has no apiVersion or no kind", i+1)
		}
		out = append(out, u)
	}
	return out, nil
}
