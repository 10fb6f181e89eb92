package plan

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ownership is a node of the FieldsV1 tree of one managedFields entry: keys
// "f:<field>", "k:<JSON of key fields>", "v:<JSON of a set's member>" and "."
// for the node itself; a node without children is a field owned whole. The
// format is documented with metav1.FieldsV1.
type ownership map[string]any

// Owned is what a manager owns by server-side apply in an object, or in its
// subresource; nil when it has no entry.
func Owned(object *unstructured.Unstructured, manager, subresource string) map[string]any {
	meta, _ := object.Object["metadata"].(map[string]any)
	entries, _ := meta["managedFields"].([]any)
	for _, e := range entries {
		entry, ok := e.(map[string]any)
		if !ok || entry["manager"] != manager || entry["operation"] != "Apply" {
			continue
		}
		if sub, _ := entry["subresource"].(string); sub != subresource {
			continue
		}
		if fields, ok := entry["fieldsV1"].(map[string]any); ok {
			return fields
		}
	}
	return nil
}

// field is the subtree of a field; ok is false when it is not owned.
func (o ownership) field(name string) (ownership, bool) { return o.child("f:" + name) }

func (o ownership) child(element string) (ownership, bool) {
	node, ok := o[element].(map[string]any)
	return node, ok
}

// whole reports whether the node is owned as one value, with nothing below it.
func (o ownership) whole() bool {
	for k := range o {
		if k != "." {
			return false
		}
	}
	return true
}

// elements are the node's children in a fixed order, "." apart.
func (o ownership) elements() []string {
	keys := slices.Sorted(maps.Keys(o))
	return slices.DeleteFunc(keys, func(k string) bool { return k == "." })
}

// item is one owned entry of a keyed list.
type item struct {
	element string
	keys    map[string]any
	fields  ownership
}

// items are the owned entries of a list that is merged by key; nil for other lists.
func (o ownership) items() []item {
	var out []item
	for _, e := range o.elements() {
		raw, ok := strings.CutPrefix(e, "k:")
		if !ok {
			continue
		}
		var keys map[string]any
		if json.Unmarshal([]byte(raw), &keys) != nil {
			continue
		}
		fields, _ := o.child(e)
		out = append(out, item{element: e, keys: keys, fields: fields})
	}
	return out
}

// has reports whether a list entry has the key fields; one that leaves a key
// field out has whatever its schema's default is, and matches.
func (i item) has(entry map[string]any) bool {
	for k, v := range i.keys {
		if got, ok := entry[k]; ok && !Equal(got, v) {
			return false
		}
	}
	return true
}

// find is the position in a list of the entry with the item's keys, or -1.
func (i item) find(list []any) int {
	return slices.IndexFunc(list, func(e any) bool {
		entry, ok := e.(map[string]any)
		return ok && i.has(entry)
	})
}

// Equal compares JSON values; whole numbers are equal whatever their Go type.
func Equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, Equal)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, Equal)
	}
	if x, ok := number(a); ok {
		y, ok := number(b)
		return ok && cmp.Compare(x, y) == 0
	}
	return a == b
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	case int:
		return float64(v), true
	case int32:
		return float64(v), true
	}
	return 0, false
}
