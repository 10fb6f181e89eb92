package plan

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/homeostat-dev/homeostat/operator"
)

// Hidden stands for a value of a Secret wherever an operation is shown.
const Hidden = "(hidden)"

// open are the fields of a Secret whose values may be shown. All others are
// hidden: an annotation may repeat what is in the data.
var open = []string{"type", "immutable", "metadata.labels", "metadata.ownerReferences", "metadata.finalizers"}

// isSecret reports whether values of the kind are not for showing.
func isSecret(k operator.Kind) bool { return k.Group == corev1.GroupName && k.Kind == "Secret" }

// concealed are the changes to an object of a kind as they may be shown.
func concealed(kind operator.Kind, changes []Change) []Change {
	if !isSecret(kind) {
		return changes
	}
	var out []Change
	for _, c := range changes {
		for _, l := range c.Fields() {
			if !mayShow(l.Path) {
				l.From, l.To = conceal(l.From), conceal(l.To)
			}
			out = append(out, l)
		}
	}
	return out
}

func mayShow(path string) bool {
	for _, o := range open {
		if path == o || strings.HasPrefix(path, o+".") || strings.HasPrefix(path, o+"[") {
			return true
		}
	}
	return false
}

func conceal(v any) any {
	if v == nil {
		return nil
	}
	return Hidden
}

// Shown is the body as it may be shown: that of a Secret has no values.
func (o Op) Shown() map[string]any {
	if !isSecret(o.Kind) || o.Body == nil {
		return o.Body
	}
	body := runtime.DeepCopyJSON(o.Body)
	for _, field := range []string{"data", "stringData"} {
		blank(body[field])
	}
	if meta, ok := body["metadata"].(map[string]any); ok {
		blank(meta["annotations"])
	}
	return body
}

// blank hides every value of a map.
func blank(v any) {
	values, _ := v.(map[string]any)
	for k := range maps.Keys(values) {
		values[k] = Hidden
	}
}
