package manifest

import (
	"encoding/json"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Format is how objects are written.
type Format string

// The formats: YAML documents, or one JSON List.
const (
	YAML Format = "yaml"
	JSON Format = "json"
)

// Write writes objects, without the fields that only a server fills in.
func Write(w io.Writer, format Format, objects []runtime.Object) error {
	items := make([]any, 0, len(objects))
	for _, o := range objects {
		values, err := plain(o)
		if err != nil {
			return err
		}
		items = append(items, values)
	}
	switch format {
	case JSON:
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	case YAML:
		return writeYAML(w, items)
	}
	return fmt.Errorf("output %q is not known: use yaml or json", format)
}

func writeYAML(w io.Writer, items []any) error {
	for i, item := range items {
		data, err := yaml.Marshal(item)
		if err != nil {
			return fmt.Errorf("encode: %w", err)
		}
		if i > 0 {
			data = append([]byte("---\n"), data...)
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
	}
	return nil
}

// plain is an object as JSON values, without an empty status and null times.
func plain(o runtime.Object) (map[string]any, error) {
	values, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", o, err)
	}
	if _, observed := o.(*unstructured.Unstructured); !observed {
		delete(values, "status")
	}
	dropEmpty(values)
	return values, nil
}

// dropEmpty removes null times and the empty structs that Go writes for values
// that were not set.
func dropEmpty(values map[string]any) {
	for k, v := range values {
		switch v := v.(type) {
		case nil:
			if k == "creationTimestamp" {
				delete(values, k)
			}
		case map[string]any:
			dropEmpty(v)
			if len(v) == 0 && (k == "strategy" || k == "resources" || k == "spec") {
				delete(values, k)
			}
		case []any:
			for _, e := range v {
				if m, ok := e.(map[string]any); ok {
					dropEmpty(m)
				}
			}
		}
	}
}
