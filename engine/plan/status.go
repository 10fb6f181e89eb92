package plan

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/homeostat-dev/homeostat/operator"
)

// StatusOf is the operation that gives the parent a status; ok is false when it
// has it. It is fenced by the version of the parent: a status speaks about the
// spec it was made for.
func StatusOf(op *operator.Operator, parent *unstructured.Unstructured, status map[string]any, memo *Memo) (Op, bool) {
	desired := map[string]any{"status": status}
	manager := op.Manager()
	changes := Compare(desired, parent.Object, Owned(parent, manager, "status"), nil)
	if len(changes) == 0 || memo.Holds(desired, parent, manager, "status", nil) {
		return Op{}, false
	}
	meta := fence(parent)
	meta["name"] = parent.GetName()
	if parent.GetNamespace() != "" {
		meta["namespace"] = parent.GetNamespace()
	}
	return Op{
		Verb: Status, Kind: op.Parent, Namespace: parent.GetNamespace(), Name: parent.GetName(),
		UID: parent.GetUID(), ResourceVersion: parent.GetResourceVersion(), Manager: manager,
		Body: map[string]any{
			"apiVersion": parent.GetAPIVersion(), "kind": parent.GetKind(),
			"metadata": meta, "status": runtime.DeepCopyJSON(status),
		},
		Changes: changes, Reason: Describe(changes),
		desired: desired,
	}, true
}

// OwnsItem reports whether a managedFields entry lists the entry of a keyed
// list whose key field has the value.
func OwnsItem(owned map[string]any, path, key string, value any) bool {
	node := ownership(owned)
	for _, f := range fieldsOf(path) {
		node, _ = node.field(f)
	}
	for _, it := range node.items() {
		if Equal(it.keys[key], value) {
			return true
		}
	}
	return false
}
