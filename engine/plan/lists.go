package plan

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
)

// foreignEntries finds, among lists that are owned whole, those with an entry
// that nobody desires, and gives for each the list as it should stand: the
// desired entries, each on top of the observed one that it matches, so that
// what a server allocated (a nodePort) stays.
func foreignEntries(paths []string, desired, observed, owned map[string]any) map[string][]any {
	out := map[string][]any{}
	for _, path := range paths {
		want, _ := list(desired, path)
		have, ok := list(observed, path)
		if !ok || len(want) == 0 || !objects(want) || !objects(have) {
			continue // A list of scalars is atomic or a set: the apply settles it.
		}
		keys := keyFields(path, owned, want)
		if !slices.ContainsFunc(have, func(h any) bool { return match(keys, h, want) < 0 }) {
			continue
		}
		out[path] = overlaid(keys, want, have)
	}
	return out
}

func list(object map[string]any, path string) ([]any, bool) {
	v, _ := get(object, path)
	l, ok := v.([]any)
	return l, ok
}

func objects(list []any) bool {
	return !slices.ContainsFunc(list, func(e any) bool { _, ok := e.(map[string]any); return !ok })
}

// keyFields are the fields by which entries are told apart: those of our own
// managedFields entry, or where that is gone those of the built-in types, which
// key ports by number and protocol and everything else by name.
func keyFields(path string, owned map[string]any, want []any) []string {
	node := ownership(owned)
	for _, f := range fieldsOf(path) {
		node, _ = node.field(f)
	}
	if items := node.items(); len(items) > 0 {
		return slices.Sorted(maps.Keys(items[0].keys))
	}
	if strings.HasSuffix(path, "ports") {
		if _, ok := want[0].(map[string]any)["containerPort"]; ok {
			return []string{"containerPort", "protocol"}
		}
		return []string{"port", "protocol"}
	}
	return []string{"name"}
}

// match is the position of the entry with the same keys, or -1. A key that one
// side leaves out has its default there and matches.
func match(keys []string, entry any, list []any) int {
	e := entry.(map[string]any)
	return slices.IndexFunc(list, func(other any) bool {
		o := other.(map[string]any)
		for _, k := range keys {
			x, inE := e[k]
			y, inO := o[k]
			if inE && inO && !Equal(x, y) {
				return false
			}
		}
		return true
	})
}

// overlaid pairs each desired entry with the observed one that has its keys, and
// lays it on top.
func overlaid(keys []string, want, have []any) []any {
	used := map[int]bool{}
	pair := make([]int, len(want))
	for i, w := range want {
		pair[i] = match(keys, w, have)
		used[pair[i]] = true
	}
	out := make([]any, len(want))
	for i, w := range want {
		if pair[i] < 0 && keys[0] == "port" && len(want) == len(have) && !used[i] {
			pair[i] = i // A port whose number was edited keeps its nodePort.
		}
		entry := map[string]any{}
		if pair[i] >= 0 {
			entry = runtime.DeepCopyJSON(have[pair[i]].(map[string]any))
		}
		maps.Copy(entry, runtime.DeepCopyJSON(w.(map[string]any)))
		out[i] = entry
	}
	return out
}
