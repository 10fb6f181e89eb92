package plan

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Leaves are the fields that differ inside a change, for people. What an object
// has besides what is wanted in it, such as defaults, is no difference; a list
// of another length is one leaf. No leaves: the value is there, and what is
// missing is that it is recorded as ours.
func (c Change) Leaves() []Change {
	if c.From == Hidden && c.To == Hidden {
		return []Change{c} // What they were is not known here.
	}
	switch wanted := c.To.(type) {
	case map[string]any:
		if there, ok := c.From.(map[string]any); ok {
			var out []Change
			for _, k := range slices.Sorted(maps.Keys(wanted)) {
				out = append(out, Change{join(c.Path, k), there[k], wanted[k]}.Leaves()...)
			}
			return out
		}
	case []any:
		if there, ok := c.From.([]any); ok && len(there) == len(wanted) {
			var out []Change
			for i := range wanted {
				out = append(out, Change{fmt.Sprintf("%s[%d]", c.Path, i), there[i], wanted[i]}.Leaves()...)
			}
			return out
		}
	}
	if reflect.DeepEqual(c.From, c.To) {
		return nil
	}
	return []Change{c}
}

// Fields are the leaves of a change, or the change itself where it has none.
func (c Change) Fields() []Change {
	if leaves := c.Leaves(); len(leaves) > 0 {
		return leaves
	}
	return []Change{c}
}
