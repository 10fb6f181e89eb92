package world_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/homeostat-dev/homeostat/engine/world"
	"github.com/homeostat-dev/homeostat/operator"
)

const manager = "homeostat-test"

var (
	configMaps = operator.KindOf[corev1.ConfigMap]("v1")
	pods       = operator.KindOf[corev1.Pod]("v1")
	kind       = configMaps.GroupVersionKind
)

func newWorld() *world.World { return world.New(manager, []operator.Kind{configMaps, pods}) }

// thing is a ConfigMap by name, UID and version.
func thing(name, uid, version string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(kind)
	u.SetNamespace("default")
	u.SetName(name)
	u.SetUID(types.UID(uid))
	u.SetResourceVersion(version)
	return u
}

func controlledBy(u *unstructured.Unstructured, uid types.UID) *unstructured.Unstructured {
	yes := true
	u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "X", Name: "x", UID: uid, Controller: &yes}})
	return u
}

func labelled(u *unstructured.Unstructured, k, v string) *unstructured.Unstructured {
	u.SetLabels(map[string]string{k: v})
	return u
}

func ref(name string) operator.Ref {
	return operator.Ref{Kind: kind, Namespace: "default", Name: name}
}

func stands(w *world.World) []string {
	var out []string
	for _, o := range w.All(kind) {
		out = append(out, fmt.Sprintf("%s %s@%s", o.GetName(), o.GetUID(), o.GetResourceVersion()))
	}
	return out
}

func TestWhatTheWorldBelieves(t *testing.T) {
	put := func(name, uid, version string) func(*world.World) bool {
		return func(w *world.World) bool { _, news := w.Put(thing(name, uid, version)); return news }
	}
	remove := func(name, uid, version string) func(*world.World) bool {
		return func(w *world.World) bool { _, news := w.Remove(thing(name, uid, version)); return news }
	}
	gone := func(name, uid string) func(*world.World) bool {
		return func(w *world.World) bool { _, news := w.Gone(ref(name), types.UID(uid)); return news }
	}
	list := func(version string, objects ...*unstructured.Unstructured) func(*world.World) bool {
		return func(w *world.World) bool { return len(w.Replace(kind, objects, version)) > 0 }
	}
	steps := func(all ...func(*world.World) bool) []func(*world.World) bool { return all }
	tests := map[string]struct {
		given []func(*world.World) bool
		want  []string
		last  bool // whether the last step was news
	}{
		"an event brings an object":                    {steps(put("a", "1", "5")), []string{"a 1@5"}, true},
		"a newer event replaces it":                    {steps(put("a", "1", "5"), put("a", "1", "6")), []string{"a 1@6"}, true},
		"versions are numbers, not text":               {steps(put("a", "1", "9"), put("a", "1", "10")), []string{"a 1@10"}, true},
		"the echo of a folded write is no news":        {steps(put("a", "1", "6"), put("a", "1", "6")), []string{"a 1@6"}, false},
		"an older event after a folded write is none":  {steps(put("a", "1", "6"), put("a", "1", "5")), []string{"a 1@6"}, false},
		"a deletion removes":                           {steps(put("a", "1", "5"), remove("a", "1", "6")), nil, true},
		"a deletion whose version is odd removes":      {steps(put("a", "1", "5"), remove("a", "1", "3")), nil, true},
		"a late event after a deletion":                {steps(put("a", "1", "5"), remove("a", "1", "7"), put("a", "1", "6")), nil, false},
		"a late answer after a deletion never seen":    {steps(remove("a", "1", "7"), put("a", "1", "6")), nil, false},
		"a late deletion of an older object":           {steps(put("a", "2", "9"), remove("a", "1", "8")), []string{"a 2@9"}, false},
		"a recreated object has another UID":           {steps(put("a", "1", "5"), remove("a", "1", "6"), put("a", "2", "7")), []string{"a 2@7"}, true},
		"a recreation whose deletion was not seen":     {steps(put("a", "1", "5"), put("a", "2", "7")), []string{"a 2@7"}, true},
		"our own call found it gone":                   {steps(put("a", "1", "5"), gone("a", "1")), nil, true},
		"an event after our own call found it gone":    {steps(put("a", "1", "5"), gone("a", "1"), put("a", "1", "6")), nil, false},
		"an event first told after it was found gone":  {steps(gone("a", "1"), put("a", "1", "6")), nil, false},
		"gone is one object, not the next of its name": {steps(put("a", "2", "7"), gone("a", "1")), []string{"a 2@7"}, false},
		"gone, nobody knows what, removes nothing":     {steps(put("a", "2", "7"), gone("a", "")), []string{"a 2@7"}, false},
		"a list drops what vanished":                   {steps(put("a", "1", "5"), put("b", "2", "6"), list("8", thing("b", "2", "6"))), []string{"b 2@6"}, true},
		"a list that tells nothing new":                {steps(put("b", "2", "6"), list("8", thing("b", "2", "6"))), []string{"b 2@6"}, false},
		"a list keeps our newer write":                 {steps(put("a", "1", "9"), list("8", thing("a", "1", "5"))), []string{"a 1@9"}, false},
		"a list keeps our newer creation":              {steps(put("a", "1", "9"), list("8")), []string{"a 1@9"}, false},
		"a list does not bring back the dead":          {steps(put("a", "1", "5"), gone("a", "1"), list("8", thing("a", "1", "5"))), nil, false},
		"a late answer after a list that had it not":   {steps(put("a", "1", "5"), list("8"), put("a", "1", "6")), nil, false},
		"a late first answer after a list without it":  {steps(list("8"), put("a", "1", "6")), nil, false},
		"a creation after a list":                      {steps(list("8"), put("a", "1", "9")), []string{"a 1@9"}, true},
		"a recreation, told by a list":                 {steps(put("a", "1", "5"), list("8", thing("a", "2", "7")), remove("a", "1", "6")), []string{"a 2@7"}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w, news := newWorld(), false
			for _, step := range tc.given {
				news = step(w)
			}
			if d := cmp.Diff(tc.want, stands(w)); d != "" {
				t.Errorf("the world differs (-want +got):\n%s", d)
			}
			if news != tc.last {
				t.Errorf("the last step was news: %v", news)
			}
		})
	}
}

func TestAChangeTellsFromWhatToWhat(t *testing.T) {
	w := newWorld()
	first, _ := w.Put(thing("a", "1", "5"))
	second, _ := w.Put(thing("a", "2", "6"))
	last, _ := w.Remove(thing("a", "2", "7"))
	if first.Old != nil || first.New.GetUID() != "1" || second.Old.GetUID() != "1" || second.New.GetUID() != "2" ||
		last.Old.GetUID() != "2" || last.New != nil {
		t.Errorf("got %v, %v, %v", first, second, last)
	}
	changes := w.Replace(kind, []*unstructured.Unstructured{thing("c", "3", "8"), thing("b", "4", "9")}, "9")
	if len(changes) != 2 || changes[0].New.GetName() != "b" {
		t.Errorf("changes of a list are not sorted: %v", changes)
	}
}

func TestIndicesMoveWithTheObject(t *testing.T) {
	byLabel := func(v string) operator.Selector { return operator.Selector{Labels: map[string]string{"app": v}} }
	count := func(w *world.World) map[string]int {
		return map[string]int{
			"of p": len(w.Controlled(kind, "p")), "of q": len(w.Controlled(kind, "q")),
			"x": len(w.Select(kind, "default", byLabel("x"))), "y": len(w.Select(kind, "default", byLabel("y"))),
			"elsewhere": len(w.Select(kind, "elsewhere", byLabel("x"))),
			"named":     len(w.Select(kind, "default", operator.Selector{Names: []string{"a"}})),
			"empty":     len(w.Select(kind, "default", operator.Selector{})),
		}
	}
	w := newWorld()
	w.Put(controlledBy(labelled(thing("a", "1", "1"), "app", "x"), "p"))
	want := map[string]int{"of p": 1, "of q": 0, "x": 1, "y": 0, "elsewhere": 0, "named": 1, "empty": 0}
	if d := cmp.Diff(want, count(w)); d != "" {
		t.Errorf("after the first (-want +got):\n%s", d)
	}
	w.Put(controlledBy(labelled(thing("a", "1", "2"), "app", "y"), "q"))
	want = map[string]int{"of p": 0, "of q": 1, "x": 0, "y": 1, "elsewhere": 0, "named": 1, "empty": 0}
	if d := cmp.Diff(want, count(w)); d != "" {
		t.Errorf("after relabelling and another owner (-want +got):\n%s", d)
	}
	w.Remove(thing("a", "1", "3"))
	want = map[string]int{"of p": 0, "of q": 0, "x": 0, "y": 0, "elsewhere": 0, "named": 0, "empty": 0}
	if d := cmp.Diff(want, count(w)); d != "" {
		t.Errorf("after deletion (-want +got):\n%s", d)
	}
}

func TestSelectionIsSortedAndNeedsEveryLabel(t *testing.T) {
	w := newWorld()
	for _, name := range []string{"c", "a", "b"} {
		o := thing(name, "uid-"+name, "1")
		o.SetLabels(map[string]string{"app": "x", "only": name})
		w.Put(o)
	}
	got := func(s operator.Selector) (names []string) {
		for _, o := range w.Select(kind, "default", s) {
			names = append(names, o.GetName())
		}
		return names
	}
	if d := cmp.Diff([]string{"a", "b", "c"}, got(operator.Selector{Labels: map[string]string{"app": "x"}})); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"b"}, got(operator.Selector{Labels: map[string]string{"app": "x", "only": "b"}})); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string(nil), got(operator.Selector{Labels: map[string]string{"app": "x"}, Names: []string{"z"}})); d != "" {
		t.Error(d)
	}
}

func TestKindsThatAreNotServed(t *testing.T) {
	w := newWorld()
	if w.Known() {
		t.Error("nothing was listed, and all is known")
	}
	w.Replace(kind, nil, "1")
	if w.Known() {
		t.Error("pods were not listed, and all is known")
	}
	if !w.SetMissing(pods.GroupVersionKind, errors.New("404")) || w.SetMissing(pods.GroupVersionKind, errors.New("404")) {
		t.Error("that a kind is missing is news once")
	}
	if !w.Known() || w.Missing(pods.GroupVersionKind) == nil || w.Missing(kind) != nil {
		t.Error("one kind is listed, the other known to be missing")
	}
	w.Replace(pods.GroupVersionKind, nil, "2")
	if w.Missing(pods.GroupVersionKind) != nil {
		t.Error("a list ends that a kind is missing")
	}
}

func TestOnlyOurManagedFieldsAreKeptAndWhatWasGivenIsNotChanged(t *testing.T) {
	entry := func(manager string) any { return map[string]any{"manager": manager, "operation": "Apply"} }
	tests := map[string]struct{ given, want []any }{
		"ours among others": {[]any{entry("kubectl"), entry(manager), entry("hpa")}, []any{entry(manager)}},
		"only others":       {[]any{entry("kubectl")}, nil},
		"both of ours":      {[]any{entry(manager), entry("x"), entry(manager)}, []any{entry(manager), entry(manager)}},
		"none":              {nil, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			given := labelled(thing("a", "1", "1"), "app", "x")
			if tc.given != nil {
				given.Object["metadata"].(map[string]any)["managedFields"] = tc.given
			}
			before := given.DeepCopy()
			w := newWorld()
			w.Put(given)
			if d := cmp.Diff(before.Object, given.Object); d != "" {
				t.Errorf("what was put in was changed:\n%s", d)
			}
			got, _, _ := unstructured.NestedSlice(w.Get(ref("a")).Object, "metadata", "managedFields")
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("entries differ (-want +got):\n%s", d)
			}
			if w.Get(ref("a")).GetLabels()["app"] != "x" {
				t.Error("the rest of the metadata is lost")
			}
		})
	}
}

func TestManyDeletionsAreBounded(t *testing.T) {
	w := newWorld()
	for i := range 5000 {
		w.Remove(thing("x", fmt.Sprint("uid-", i), "1"))
	}
	if _, news := w.Put(thing("x", "uid-4999", "2")); news {
		t.Error("one that went last came back")
	}
	if _, news := w.Put(thing("x", "uid-0", "2")); !news {
		t.Error("the first is still remembered: memory grows without bound")
	}
}
