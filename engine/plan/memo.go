package plan

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Memo remembers what the API server proved: after it took an apply, the object
// it answered with is what that apply makes, however differently it may be
// written down (1000m and 1). Without it such a field would be applied for
// ever. It is lost in a crash; then each such child costs one apply that
// changes nothing. What Compare sees to be equal needs no proof and is given
// none. The zero Memo is ready to use.
type Memo struct {
	proofs map[proofKey]proof
}

type proofKey struct {
	uid         types.UID
	subresource string
}

type proof struct{ desired, owned [sha256.Size]byte }

// Prove records that an apply of desired left the object as it is in result.
func (m *Memo) Prove(desired map[string]any, result *unstructured.Unstructured, manager, subresource string, skip []string) {
	key := proofKey{result.GetUID(), subresource}
	if len(Compare(desired, result.Object, Owned(result, manager, subresource), skip)) == 0 {
		delete(m.proofs, key)
		return
	}
	if m.proofs == nil {
		m.proofs = map[proofKey]proof{}
	}
	m.proofs[key] = newProof(desired, result, manager, subresource, skip)
}

// Holds reports whether an apply of desired is known to change nothing although
// Compare finds changes. It is dearer than Compare: ask it last.
func (m *Memo) Holds(desired map[string]any, observed *unstructured.Unstructured, manager, subresource string, skip []string) bool {
	p, ok := m.proofs[proofKey{observed.GetUID(), subresource}]
	return ok && p == newProof(desired, observed, manager, subresource, skip)
}

// Forget drops what is known about objects that are not among the live ones.
func (m *Memo) Forget(live map[types.UID]bool) {
	for k := range m.proofs {
		if !live[k.uid] {
			delete(m.proofs, k)
		}
	}
}

func newProof(desired map[string]any, object *unstructured.Unstructured, manager, subresource string, skip []string) proof {
	owned := Owned(object, manager, subresource)
	h := sha256.New()
	project(h, "", object.Object, owned, skip)
	p := proof{desired: sha256.Sum256([]byte(canonical(without(desired, skip))))}
	h.Sum(p.owned[:0])
	return p
}

// project writes the owned part of a value, and nothing else of it.
func project(w io.Writer, path string, value any, owned ownership, skip []string) {
	for _, s := range skip {
		if s == path {
			return
		}
	}
	if owned.whole() {
		_, _ = io.WriteString(w, canonical(value))
		return
	}
	for _, e := range owned.elements() {
		_, _ = fmt.Fprintf(w, "%s=", e)
		node, _ := owned.child(e)
		switch v := value.(type) {
		case map[string]any:
			k := strings.TrimPrefix(e, "f:")
			project(w, join(path, k), v[k], node, skip)
		case []any:
			projectItem(w, path, e, v, node)
		}
	}
}

func projectItem(w io.Writer, path, element string, list []any, node ownership) {
	for position, entry := range list {
		one := ownership{element: map[string]any(node)}
		if object, ok := entry.(map[string]any); ok {
			if items := one.items(); len(items) == 1 && items[0].has(object) {
				_, _ = fmt.Fprintf(w, "@%d", position)
				project(w, path+"[]", object, node, nil)
			}
		} else if valueElement(entry) == element {
			_, _ = io.WriteString(w, "1")
		}
	}
}

func digest(v any) string {
	sum := sha256.Sum256([]byte(canonical(v)))
	return string(sum[:])
}

// canonical is a value as JSON with sorted keys. Values come from JSON, so
// encoding cannot fail.
func canonical(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%v", v)
	}
	return string(data)
}
