package operatortest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// mergeObject is base with the fields of want, roughly as a server-side apply
// merges them: objects field by field, lists of named entries by name, all
// other lists whole. In a list that is owned whole only wanted entries stay.
func mergeObject(base, want map[string]any, path string, owned map[string]bool) map[string]any {
	out := runtime.DeepCopyJSON(base)
	for k, v := range want {
		below := k
		if path != "" {
			below = path + "." + k
		}
		out[k] = mergeValue(out[k], v, below, owned)
	}
	return out
}

func mergeValue(base, want any, path string, owned map[string]bool) any {
	switch want := want.(type) {
	case map[string]any:
		old, ok := base.(map[string]any)
		if !ok {
			old = map[string]any{}
		}
		return mergeObject(old, want, path, owned)
	case []any:
		old, _ := base.([]any)
		if named(want) && named(old) {
			return mergeList(old, want, path, owned)
		}
	}
	return runtime.DeepCopyJSONValue(want)
}

func mergeList(base, want []any, path string, owned map[string]bool) []any {
	var out []any
	used := map[string]bool{}
	for _, w := range want {
		var old any
		if i := slices.IndexFunc(base, func(b any) bool { return nameOf(b) == nameOf(w) }); i >= 0 {
			old = base[i]
		}
		used[nameOf(w)] = true
		out = append(out, mergeValue(old, w, path, owned))
	}
	for _, b := range base {
		if !used[nameOf(b)] && !owned[path] {
			out = append(out, b)
		}
	}
	return out
}

func named(list []any) bool {
	return !slices.ContainsFunc(list, func(e any) bool { return nameOf(e) == "" })
}

func nameOf(entry any) string {
	object, _ := entry.(map[string]any)
	name, _ := object["name"].(string)
	return name
}

// copyField makes a field of to what it is in from, absence included.
func copyField(from, to map[string]any, fields []string) {
	value, found, err := unstructured.NestedFieldCopy(from, fields...)
	if err != nil || !found {
		unstructured.RemoveNestedField(to, fields...)
		return
	}
	// It cannot fail: to has objects where from has them, or nothing.
	_ = unstructured.SetNestedField(to, value, fields...)
}

// firstDifference is the path of the first difference, in the order of field
// names, with both values in JSON; "" when there is none.
func firstDifference(a, b map[string]any) (path, was, is string) {
	for _, k := range slices.Sorted(maps.Keys(union(a, b))) {
		x, inA := a[k]
		y, inB := b[k]
		if reflect.DeepEqual(x, y) && inA == inB {
			continue
		}
		xs, xIs := x.(map[string]any)
		ys, yIs := y.(map[string]any)
		if !xIs || !yIs {
			return k, shown(x, inA), shown(y, inB)
		}
		below, was, is := firstDifference(xs, ys)
		return k + "." + below, was, is
	}
	return "", "", ""
}

func union(a, b map[string]any) map[string]any {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]any{}
	}
	maps.Copy(out, b)
	return out
}

func shown(v any, there bool) string {
	if !there {
		return "nothing"
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if len(text) > 200 {
		return string(text[:200]) + "…"
	}
	return string(text)
}
