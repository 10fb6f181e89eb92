package plan

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func fieldsOf(path string) []string { return strings.Split(path, ".") }

// get is the value at a path; ok is false when it is absent.
func get(object map[string]any, path string) (any, bool) {
	v, ok, err := unstructured.NestedFieldNoCopy(object, fieldsOf(path)...)
	return v, ok && err == nil
}

func set(object map[string]any, path string, value any) {
	// It fails only where a parent of the path is no map; such an object is
	// refused by the API server with a better message than ours.
	_ = unstructured.SetNestedField(object, runtime.DeepCopyJSONValue(value), fieldsOf(path)...)
}

// without is a copy of an object that lacks the paths.
func without(object map[string]any, paths []string) map[string]any {
	if len(paths) == 0 {
		return object
	}
	out := runtime.DeepCopyJSON(object)
	for _, p := range paths {
		unstructured.RemoveNestedField(out, fieldsOf(p)...)
	}
	return out
}

// OwnsPath reports whether a managedFields entry lists a path or something below it.
func OwnsPath(owned map[string]any, path string) bool {
	node := ownership(owned)
	for _, f := range fieldsOf(path) {
		next, ok := node.field(f)
		if !ok {
			return false
		}
		node = next
	}
	return true
}
