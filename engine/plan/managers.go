package plan

import (
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Managers are the field managers, apart from one, that own a field of an object
// or something below it, sorted. A path into a keyed list, such as
// spec.ports[port=80], counts as the list.
func Managers(object *unstructured.Unstructured, path, except string) []string {
	path, _, _ = strings.Cut(path, "[")
	var out []string
	for _, e := range object.GetManagedFields() {
		if e.Manager == except || e.FieldsV1 == nil || e.Subresource != "" {
			continue
		}
		var fields map[string]any
		if json.Unmarshal(e.FieldsV1.GetRawBytes(), &fields) == nil && OwnsPath(fields, path) && !slices.Contains(out, e.Manager) {
			out = append(out, e.Manager)
		}
	}
	slices.Sort(out)
	return out
}
