package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/homeostat-dev/homeostat/operator"
)

// The lists and maps of the generated objects that the API merges by key, and
// those it owns whole.
var (
	keyed  = map[string][]string{"containers": {"name"}, "env": {"name"}, "volumeMounts": {"mountPath"}, "volumes": {"name"}}
	atomic = []string{"args", "command", "selector"}
)

// random makes a Deployment, a Service or a ConfigMap with whatever fields.
func random(t testing.TB, r *rand.Rand) *unstructured.Unstructured {
	maybe := func(object map[string]any, k string, v any) {
		if r.IntN(2) == 0 {
			object[k] = v
		}
	}
	texts := func(prefix string) map[string]any {
		out := map[string]any{prefix: "v"}
		for i := range r.IntN(4) {
			out[fmt.Sprintf("%s-%d", prefix, i)] = fmt.Sprint(r.IntN(3))
		}
		return out
	}
	meta := map[string]any{"name": "x", "namespace": "default"}
	maybe(meta, "labels", texts("label"))
	maybe(meta, "annotations", texts("example.com/note"))
	o := map[string]any{"metadata": meta}
	switch r.IntN(3) {
	case 0:
		o["apiVersion"], o["kind"], o["data"] = "v1", "ConfigMap", texts("key")
		maybe(o, "immutable", false)
	case 1:
		o["apiVersion"], o["kind"] = "v1", "Service"
		o["spec"] = randomService(r, maybe, texts)
	default:
		o["apiVersion"], o["kind"] = "apps/v1", "Deployment"
		o["spec"] = randomDeployment(r, maybe, texts)
	}
	return object(t, canonical(o))
}

func randomService(r *rand.Rand, maybe func(map[string]any, string, any), texts func(string) map[string]any) map[string]any {
	spec := map[string]any{"selector": texts("app")}
	var ports []any
	for i := range 1 + r.IntN(3) {
		port := map[string]any{"name": fmt.Sprintf("p%d", i), "port": int64(80 + i)}
		maybe(port, "protocol", []string{"TCP", "UDP"}[r.IntN(2)])
		maybe(port, "targetPort", int64(8080))
		ports = append(ports, port)
	}
	spec["ports"] = ports
	maybe(spec, "type", "ClusterIP")
	maybe(spec, "publishNotReadyAddresses", true)
	return spec
}

func randomDeployment(r *rand.Rand, maybe func(map[string]any, string, any), texts func(string) map[string]any) map[string]any {
	var containers []any
	for i := range 1 + r.IntN(3) {
		c := map[string]any{"name": fmt.Sprintf("c%d", i), "image": "x:1"}
		maybe(c, "args", []any{"a", "b"})
		maybe(c, "resources", map[string]any{"limits": map[string]any{"memory": "64Mi"}})
		maybe(c, "ports", []any{map[string]any{"containerPort": int64(80)}, map[string]any{"containerPort": int64(53), "protocol": "UDP", "name": "dns"}})
		var env []any
		for k := range r.IntN(3) {
			env = append(env, map[string]any{"name": fmt.Sprintf("E%d", k), "value": "1"})
		}
		if env != nil {
			c["env"] = env
		}
		maybe(c, "volumeMounts", []any{map[string]any{"name": "v", "mountPath": "/v"}})
		containers = append(containers, c)
	}
	pod := map[string]any{"containers": containers, "volumes": []any{map[string]any{"name": "v", "emptyDir": map[string]any{}}}}
	maybe(pod, "nodeSelector", texts("disk"))
	maybe(pod, "hostNetwork", true)
	spec := map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"app": "x"}},
		"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "x"}}, "spec": pod},
	}
	maybe(spec, "replicas", int64(r.IntN(4)))
	maybe(spec, "strategy", map[string]any{"type": "Recreate"})
	return spec
}

// leaf is one value of a desired object that is owned as one, with how Compare
// names it and how to get rid of it.
type leaf struct {
	path   string
	change func()
	drop   func()
}

// leaves lists them, keys apart: who changes a key has made another entry.
func leaves(path, field string, o map[string]any, out *[]leaf) {
	for k, v := range o {
		p := join(path, k)
		switch {
		case notCompared[p], slices.Contains(keyed[field], k), strings.HasSuffix(field, "ports") && (k == "port" || k == "containerPort" || k == "protocol"):
		case slices.Contains(atomic, k):
			*out = append(*out, leaf{path: p, change: func() { o[k] = other(v) }, drop: func() { delete(o, k) }})
		default:
			switch v := v.(type) {
			case map[string]any:
				leaves(p, k, v, out)
			case []any:
				for _, e := range v {
					entry := e.(map[string]any)
					leaves(p+bracket(keysOf(k, entry)), k, entry, out)
				}
			default:
				*out = append(*out, leaf{path: p, change: func() { o[k] = other(v) }, drop: func() { delete(o, k) }})
			}
		}
	}
}

func keysOf(field string, entry map[string]any) map[string]any {
	keys := map[string]any{}
	for _, k := range keyed[field] {
		keys[k] = entry[k]
	}
	if field == "ports" {
		keys["protocol"] = "TCP"
		for _, k := range []string{"port", "containerPort", "protocol"} {
			if v, ok := entry[k]; ok {
				keys[k] = v
			}
		}
	}
	return keys
}

func other(v any) any {
	switch v := v.(type) {
	case string:
		if v == "64Mi" {
			return "65Mi"
		}
		return v + "x"
	case bool:
		return !v
	case int64:
		return v + 1000
	case []any:
		return append(slices.Clone(v), "x")
	case map[string]any:
		if _, ok := v["matchLabels"]; ok {
			return map[string]any{"matchLabels": map[string]any{"app": "y"}}
		}
		return map[string]any{"app": "y"}
	}
	return nil
}

// sorted leaves, so that a seed means one of them.
func leavesOf(o map[string]any) []leaf {
	var out []leaf
	leaves("", "", o, &out)
	slices.SortFunc(out, func(a, b leaf) int { return strings.Compare(a.path, b.path) })
	return out
}

// names reports whether a change at the path, or below an atomic value there, is listed.
func names(changes []Change, path string) bool {
	return slices.ContainsFunc(changes, func(c Change) bool {
		return c.Path == path || strings.HasPrefix(c.Path, path+".") || strings.HasPrefix(path, c.Path+".") || strings.HasPrefix(path, c.Path+"[")
	})
}

func TestCompareAgreesWithTheRealFieldManagerOnRandomObjects(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		desired := random(t, r)
		live := applied(t, nil, desired.Object, us)
		if changes := Compare(desired.Object, live.Object, Owned(live, us, ""), nil); len(changes) > 0 {
			t.Fatalf("seed %d: after an apply these differ: %v\n%s", seed, changes, canonical(desired.Object))
		}
		which := r.IntN(len(leavesOf(desired.Object)))
		path := leavesOf(desired.Object)[which].path

		hurt := edited(t, live, others, func(o map[string]any) {
			for _, l := range leavesOf(o) {
				if l.path == path {
					l.change()
				}
			}
		})
		if changes := Compare(desired.Object, hurt.Object, Owned(hurt, us, ""), nil); !names(changes, path) {
			t.Fatalf("seed %d: %s was edited by somebody else, Compare says %v", seed, path, paths(changes))
		}
		leavesOf(desired.Object)[which].drop()
		if changes := Compare(desired.Object, live.Object, Owned(live, us, ""), nil); !names(changes, path) {
			t.Fatalf("seed %d: %s is no longer desired, Compare says %v", seed, path, paths(changes))
		}
	}
}

// FuzzAPlanThatWasCarriedOutLeavesNothingToDo is the package's invariant, with
// edits by others and new wishes in between.
func FuzzAPlanThatWasCarriedOutLeavesNothingToDo(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed, uint8(seed%4))
	}
	f.Fuzz(func(t *testing.T, seed uint64, edits uint8) {
		r := rand.New(rand.NewPCG(seed, 2))
		h := newHouse(t, operator.Child{Kind: configMaps},
			operator.Child{Kind: services, OwnedLists: []string{"spec.ports"}},
			operator.Child{Kind: deployments, OwnedLists: []string{"spec.template.spec.containers"}, CreateOnly: []string{"spec.replicas"}})
		o := random(t, r)
		carryOut(t, h, o)
		for range edits % 5 {
			disturb(t, r, h, o)
			carryOut(t, h, o)
		}
	})
}

// disturb is an edit by somebody else, or another wish.
func disturb(t *testing.T, r *rand.Rand, h *house, o *unstructured.Unstructured) {
	all := leavesOf(o.Object)
	if len(all) == 0 {
		return // Everything was dropped before.
	}
	l := all[r.IntN(len(all))]
	standing := h.stands[RefOf(o)]
	switch r.IntN(4) {
	case 0:
		if l.path != "spec.selector" && !strings.HasSuffix(l.path, ".image") {
			l.drop()
		}
	case 1:
		l.change()
	case 2:
		h.put(edited(t, standing, others, func(o map[string]any) {
			for _, field := range []string{"spec/ports", "spec/template/spec/containers"} {
				path := strings.ReplaceAll(field, "/", ".")
				if l, ok := list(o, path); ok {
					extra := map[string]any{"name": "extra", "port": int64(9999), "protocol": "TCP"}
					if strings.HasSuffix(path, "containers") {
						extra = map[string]any{"name": "extra", "image": "evil"}
					}
					set(o, path, append(slices.Clone(l), any(extra)))
				}
			}
		}))
	default:
		h.put(edited(t, standing, others, func(o map[string]any) {
			for _, x := range leavesOf(o) {
				if x.path == l.path {
					x.change()
				}
			}
		}))
	}
}

// carryOut plans and performs until there is nothing to do, which must be soon.
func carryOut(t *testing.T, h *house, o *unstructured.Unstructured) {
	t.Helper()
	var done []string
	for range 4 {
		made := Make(h.input(wish(o)))
		if len(made.Ops) == 0 {
			desired := body(h.parent, wish(o))
			rule, _ := h.op.Child(o.GroupVersionKind())
			again := applied(t, h.stands[RefOf(o)], withoutUnowned(desired, h.stands[RefOf(o)], rule.CreateOnly), us)
			if again.GetResourceVersion() != h.stands[RefOf(o)].GetResourceVersion() {
				t.Fatalf("nothing is planned, and yet an apply changes something:\n%s\n%s", canonical(h.stands[RefOf(o)].Object), canonical(again.Object))
			}
			return
		}
		for _, op := range made.Ops {
			done = append(done, op.String())
			after := perform(t, h.stands[op.Ref()], op)
			op.Prove(&h.memo, after)
			h.stands[op.Ref()] = after
		}
	}
	t.Fatalf("it does not come to rest: %s", strings.Join(done, "; "))
}

// withoutUnowned is what an apply would send: create-only fields as they stand
// where they are ours, and not at all where they are not.
func withoutUnowned(desired map[string]any, standing *unstructured.Unstructured, createOnly []string) map[string]any {
	out, _ := applyBody(desired, standing, Owned(standing, us, ""), createOnly, nil)
	return out
}
