package plan

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// us is the manager under test, others somebody else.
const (
	us     = "homeostat-test"
	others = "kubectl-edit"
)

var converter = applyconfigurations.NewTypeConverter(scheme.Scheme)

// object reads YAML as an API server reads JSON: whole numbers are int64.
func object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return u
}

// applied is what a real API server's field manager makes of a forced apply;
// live is nil where nothing stands.
func applied(t testing.TB, live *unstructured.Unstructured, body map[string]any, manager string) *unstructured.Unstructured {
	t.Helper()
	config := (&unstructured.Unstructured{Object: body}).DeepCopy()
	for _, f := range []string{"uid", "resourceVersion"} { // Fences are checked by perform and are not merged.
		unstructured.RemoveNestedField(config.Object, "metadata", f)
	}
	before := live
	if before == nil {
		before = &unstructured.Unstructured{Object: map[string]any{}}
		before.SetGroupVersionKind(config.GroupVersionKind())
	}
	fields := managedfieldstest.NewFakeFieldManager(converter, config.GroupVersionKind())
	after, err := fields.Apply(before.DeepCopy(), config, manager, true)
	if err != nil {
		t.Fatalf("apply of %v: %v", body, err)
	}
	return stored(t, live, after)
}

// edited is what the field manager makes of somebody's update.
func edited(t testing.TB, live *unstructured.Unstructured, manager string, edit func(o map[string]any)) *unstructured.Unstructured {
	t.Helper()
	changed := live.DeepCopy()
	edit(changed.Object)
	fields := managedfieldstest.NewFakeFieldManager(converter, live.GroupVersionKind())
	after, err := fields.Update(live.DeepCopy(), changed, manager)
	if err != nil {
		t.Fatalf("update: %v", err)
	}
	return stored(t, live, after)
}

// stored defaults and versions an object; an unchanged one keeps its version.
func stored(t testing.TB, live *unstructured.Unstructured, after any) *unstructured.Unstructured {
	t.Helper()
	u := typed(t, object(t, canonical(after.(*unstructured.Unstructured).Object)))
	if live == nil {
		u.SetUID(types.UID("uid-of-" + u.GetName()))
		u.SetResourceVersion("1")
		defaults(u)
		return u
	}
	u.SetUID(live.GetUID())
	u.SetResourceVersion(live.GetResourceVersion())
	defaults(u)
	if !sameButTimes(u, live) {
		n, err := strconv.Atoi(live.GetResourceVersion())
		if err != nil {
			t.Fatal(err)
		}
		u.SetResourceVersion(strconv.Itoa(n + 1))
	}
	return u
}

// typed is the object as a server with Go types serves it: what is empty and may
// be left out is not there.
func typed(t testing.TB, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	if !scheme.Scheme.Recognizes(u.GroupVersionKind()) {
		return u
	}
	o, err := scheme.Scheme.New(u.GroupVersionKind())
	if err != nil {
		t.Fatal(err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o); err != nil {
		t.Fatal(err)
	}
	values, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	dropNulls(values)
	delete(values, "status")
	return object(t, canonical(values))
}

func dropNulls(v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if e == nil {
				delete(v, k)
			}
			dropNulls(e)
		}
	case []any:
		for _, e := range v {
			dropNulls(e)
		}
	}
}

func sameButTimes(a, b *unstructured.Unstructured) bool {
	a, b = a.DeepCopy(), b.DeepCopy()
	for _, o := range []*unstructured.Unstructured{a, b} {
		entries := o.GetManagedFields()
		for i := range entries {
			entries[i].Time = nil
		}
		o.SetManagedFields(entries)
	}
	return equality.Semantic.DeepEqual(a.Object, b.Object)
}

// defaults are the few that a server sets and that matter to comparing.
func defaults(u *unstructured.Unstructured) {
	each := func(path string, f func(map[string]any)) {
		l, _ := list(u.Object, path)
		for _, e := range l {
			f(e.(map[string]any))
		}
	}
	initial := func(m map[string]any, k string, v any) {
		if _, ok := m[k]; !ok {
			m[k] = v
		}
	}
	node := int64(30000)
	each("spec.ports", func(p map[string]any) {
		initial(p, "protocol", "TCP")
		initial(p, "targetPort", p["port"])
		initial(p, "nodePort", node)
		node++
	})
	each("spec.template.spec.containers", func(c map[string]any) {
		initial(c, "terminationMessagePath", "/dev/termination-log")
		ports, _ := c["ports"].([]any)
		for _, p := range ports {
			initial(p.(map[string]any), "protocol", "TCP")
		}
		if cpu, ok := get(c, "resources.limits.cpu"); ok && cpu == "1000m" {
			set(c, "resources.limits.cpu", "1") // The server normalises.
		}
	})
	if u.GetKind() == "Deployment" {
		if _, ok := get(u.Object, "spec.replicas"); !ok {
			set(u.Object, "spec.replicas", int64(1))
		}
	}
}

// perform carries out an operation against what stands, fences included.
func perform(t testing.TB, live *unstructured.Unstructured, op Op) *unstructured.Unstructured {
	t.Helper()
	if live != nil && op.UID != "" && op.UID != live.GetUID() {
		t.Fatalf("%v means another object", op)
	}
	if live != nil && op.ResourceVersion != "" && op.ResourceVersion != live.GetResourceVersion() {
		t.Fatalf("%v means version %s, there is %s", op, op.ResourceVersion, live.GetResourceVersion())
	}
	switch op.Verb {
	case Create:
		if live != nil {
			t.Fatalf("%v meets an object", op)
		}
		return applied(t, nil, op.Body, op.Manager)
	case Apply:
		return applied(t, live, op.Body, op.Manager)
	case Strip:
		return edited(t, live, op.Manager, func(o map[string]any) { merge(o, op.Body) })
	case Delete:
		return nil
	}
	t.Fatalf("%v is not for a child", op)
	return nil
}

// merge is a JSON merge patch.
func merge(into, patch map[string]any) {
	for k, v := range patch {
		p, isMap := v.(map[string]any)
		o, wasMap := into[k].(map[string]any)
		switch {
		case v == nil:
			delete(into, k)
		case isMap && wasMap:
			merge(o, p)
		default:
			into[k] = v
		}
	}
}

// at is the map or value at a path in which a list entry is written [name].
func at(o map[string]any, path string) map[string]any {
	var v any = o
	for _, f := range strings.Split(path, "/") {
		switch x := v.(type) {
		case map[string]any:
			v = x[f]
		case []any:
			for _, e := range x {
				if m := e.(map[string]any); fmt.Sprint(m["name"]) == f {
					v = m
				}
			}
		}
	}
	return v.(map[string]any)
}
