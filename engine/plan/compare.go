package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// notCompared are the fields that name an object; managedFields never lists them.
var notCompared = map[string]bool{
	"apiVersion": true, "kind": true,
	"metadata.name": true, "metadata.namespace": true, "metadata.uid": true, "metadata.resourceVersion": true,
}

// Compare lists the fields in which observed is not what an apply of desired
// would leave: a desired field that is absent, different or not ours, and a
// field that is ours and no longer desired. owned is our managedFields entry;
// skip are paths that are never compared. No change means equal. Values that a
// server normalises (1000m and 1) count as changes here; the Memo knows better.
func Compare(desired, observed, owned map[string]any, skip []string) []Change {
	c := comparison{skip: skip}
	c.maps("", desired, observed, owned)
	return c.changes
}

type comparison struct {
	skip    []string
	changes []Change
}

func (c *comparison) change(path string, from, to any) {
	c.changes = append(c.changes, Change{Path: path, From: from, To: to})
}

func (c *comparison) maps(path string, desired, observed map[string]any, owned ownership) {
	for _, k := range slices.Sorted(maps.Keys(desired)) {
		p := join(path, k)
		if notCompared[p] || slices.Contains(c.skip, p) {
			continue
		}
		node, ours := owned.field(k)
		c.value(p, desired[k], observed[k], node, ours)
	}
	for _, e := range owned.elements() {
		k, ok := strings.CutPrefix(e, "f:")
		p := join(path, k)
		if _, wanted := desired[k]; ok && !wanted && !notCompared[p] && !slices.Contains(c.skip, p) {
			c.change(p, observed[k], nil)
		}
	}
}

// value compares one field. Where it differs as a whole the change is the whole
// value: nothing below it says more.
func (c *comparison) value(path string, desired, observed any, node ownership, ours bool) {
	switch {
	case !ours:
		c.leaves(path, desired, observed)
	case node.whole():
		if !Equal(desired, observed) {
			c.change(path, observed, desired)
		}
	default:
		switch d := desired.(type) {
		case map[string]any:
			o, _ := observed.(map[string]any)
			c.maps(path, d, o, node)
		case []any:
			o, _ := observed.([]any)
			c.list(path, d, o, node)
		default:
			c.change(path, observed, desired)
		}
	}
}

// leaves reports a value that is not ours yet, field by field, so that a person
// sees what is new and what is only taken over.
func (c *comparison) leaves(path string, desired, observed any) {
	d, ok := desired.(map[string]any)
	if !ok || len(d) == 0 {
		c.change(path, observed, desired)
		return
	}
	o, _ := observed.(map[string]any)
	for _, k := range slices.Sorted(maps.Keys(d)) {
		if p := join(path, k); !notCompared[p] && !slices.Contains(c.skip, p) {
			c.leaves(p, d[k], o[k])
		}
	}
}

// list compares a list that is merged: by key, or as a set of scalars. A list
// that is owned whole never comes here.
func (c *comparison) list(path string, desired, observed []any, owned ownership) {
	items := owned.items()
	if len(items) == 0 {
		c.set(path, desired, observed, owned)
		return
	}
	left := slices.Clone(items)
	last := -1
	for i, d := range desired {
		entry, _ := d.(map[string]any)
		at := slices.IndexFunc(left, func(it item) bool { return it.has(entry) })
		if at < 0 {
			c.change(fmt.Sprintf("%s[%d]", path, i), nil, d)
			continue
		}
		it := left[at]
		left = slices.Delete(left, at, at+1)
		position := it.find(observed)
		if position < 0 {
			c.change(path+bracket(it.keys), nil, d)
			continue
		}
		if position < last {
			c.change(path, "order", "order")
		}
		last = position
		c.value(path+bracket(it.keys), d, observed[position], it.fields, true)
	}
	for _, it := range left {
		if at := it.find(observed); at >= 0 {
			c.change(path+bracket(it.keys), observed[at], nil)
		} else {
			c.change(path+bracket(it.keys), nil, nil)
		}
	}
}

func (c *comparison) set(path string, desired, observed []any, owned ownership) {
	for _, d := range desired {
		_, ours := owned.child(valueElement(d))
		if !ours || !slices.ContainsFunc(observed, func(o any) bool { return Equal(o, d) }) {
			c.change(fmt.Sprintf("%s[%v]", path, d), nil, d)
		}
	}
	for _, e := range owned.elements() {
		if !slices.ContainsFunc(desired, func(d any) bool { return valueElement(d) == e }) {
			c.change(fmt.Sprintf("%s[%s]", path, strings.TrimPrefix(e, "v:")), e, nil)
		}
	}
}

func valueElement(v any) string { return "v:" + canonical(v) }

func join(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}

// bracket writes key fields as people do: [name=web], [port=80,protocol=TCP].
func bracket(keys map[string]any) string {
	parts := make([]string, 0, len(keys))
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		parts = append(parts, fmt.Sprintf("%s=%v", k, keys[k]))
	}
	return "[" + strings.Join(parts, ",") + "]"
}
