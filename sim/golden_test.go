package sim_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/homeostat-dev/homeostat/sim"
)

func goldenRows() []goldenRow {
	return append(append(createRows(), updateRows()...), append(deleteRows(), applyRows()...)...)
}

func createRows() []goldenRow {
	return []goldenRow{
		{name: "create a custom resource", when: creates(pairA), want: "201 generation 1"},
		{name: "create a ConfigMap", when: creates(configMapA), want: "201 generation 0"},
		{name: "create what exists", given: pairA, when: creates(pairA), want: "409 AlreadyExists"},
		{name: "create with a resourceVersion", when: func(c sim.Client, _ *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return c.Create(with(sim.Parse(pairA), "resourceVersion", "5"))
		}, want: "500 InternalError"},
		{name: "create in an absent namespace", when: creates("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: nowhere}}"), want: "404 NotFound"},
		{name: "create in a terminating namespace", when: terminating(configMapA), want: "403 Forbidden", also: cause("NamespaceTerminating")},
		{name: "create with two controllers", when: creates(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, ownerReferences: [
 {apiVersion: v1, kind: Pod, name: p, uid: u1, controller: true}, {apiVersion: v1, kind: Pod, name: q, uid: u2, controller: true}]}}`), want: "422 Invalid"},
		{name: "create with an absent owner", when: creates(`{apiVersion: v1, kind: ConfigMap, metadata: {name: a, ownerReferences: [
 {apiVersion: v1, kind: Pod, name: p, uid: u1}]}}`), want: "201 generation 0"},
		{name: "create with an unknown field", when: creates("{apiVersion: sim.example.com/v1, kind: Pair, metadata: {name: a}, spec: {keys: [x], nope: 1}}"),
			want: "201 generation 1", also: has("<nil>", "spec", "nope")},
		{name: "a default is filled in", when: creates(pairA), want: "201 generation 1", also: has("grey", "spec", "color")},
		{name: "the schema is broken", when: creates("{apiVersion: sim.example.com/v1, kind: Pair, metadata: {name: a}, spec: {}}"), want: "422 Invalid"},
		{name: "a rule is broken", when: creates("{apiVersion: sim.example.com/v1, kind: Pair, metadata: {name: a}, spec: {keys: [a, b, c, d, e, f]}}"), want: "422 Invalid"},
		{name: "quantities are written the server's way", when: creates(webA), want: "201 generation 1", also: func(t *testing.T, _ *sim.Server, o *unstructured.Unstructured, _ error) {
			containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
			if cpu, _, _ := unstructured.NestedString(containers[0].(map[string]any), "resources", "requests", "cpu"); cpu != "1" {
				t.Errorf("cpu is %q, want 1", cpu)
			}
		}},
	}
}

func updateRows() []goldenRow {
	return []goldenRow{
		{name: "put without a change", given: pairA, when: puts("{}", ""), want: "200 same version, generation +0"},
		{name: "put a specification", given: pairA, when: patches("{spec: {color: red}}", ""), want: "200 new version, generation +1"},
		{name: "put a label", given: pairA, when: patches("{metadata: {labels: {a: b}}}", ""), want: "200 new version, generation +0"},
		{name: "put with a stale version", given: pairA, when: puts("{metadata: {resourceVersion: '1'}}", ""), want: "409 Conflict"},
		{name: "put a custom resource without a version", given: pairA, when: puts("{metadata: {resourceVersion: ''}}", ""), want: "422 Invalid"},
		{name: "put a ConfigMap without a version", given: configMapA, when: puts("{metadata: {resourceVersion: ''}}", ""), want: "200 same version, generation +0"},
		{name: "put an absent ConfigMap", when: func(c sim.Client, _ *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return c.Update(sim.Parse(configMapA), "")
		}, want: "404 NotFound"},
		{name: "status through the main endpoint", given: pairA, when: patches("{status: {made: 3}}", ""), want: "200 same version, generation +0", also: has("<nil>", "status", "made")},
		{name: "the status subresource", given: pairA, when: patches("{status: {made: 3}, metadata: {labels: {a: b}}}", "status"),
			want: "200 new version, generation +0", also: has("<nil>", "metadata", "labels")},
		{name: "patch with a stale version", given: pairA, when: patches("{metadata: {resourceVersion: '1'}, spec: {color: red}}", ""), want: "409 Conflict"},
		{name: "patch with another uid", given: pairA, when: patches("{metadata: {uid: other}, spec: {color: red}}", ""), want: "422 Invalid"},
		{name: "a Deployment's selector", given: webA, when: patches("{spec: {selector: {matchLabels: {app: other}}}}", ""), want: "422 Invalid"},
		{name: "two ports of one name", given: serviceA, when: patches("{spec: {ports: [{name: http, port: 80}, {name: http, port: 81}]}}", ""), want: "422 Invalid"},
	}
}

const (
	heldA = "{apiVersion: sim.example.com/v1, kind: Pair, metadata: {name: a, finalizers: [x.example.com/hold]}, spec: {keys: [x]}}"
	podA  = "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {nodeName: node-1, containers: [{name: c, image: i}]}}"
)

func deleteRows() []goldenRow {
	remove := deletes("")
	return []goldenRow{
		{name: "delete", given: configMapA, when: remove, want: "200 same version, generation +0", also: gone(configMapKind, "a")},
		{name: "delete with a stale version", given: configMapA, when: deletes("1"), want: "409 Conflict"},
		{name: "delete with another uid", given: configMapA, when: func(c sim.Client, _ *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return c.Delete(ref(configMapKind, "a"), "other", "", false)
		}, want: "409 Conflict"},
		{name: "delete what is absent", when: func(c sim.Client, _ *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return c.Delete(ref(configMapKind, "a"), "", "", false)
		}, want: "404 NotFound"},
		{name: "delete with a finalizer", given: heldA, when: remove, want: "200 new version, generation +1"},
		{name: "delete with a finalizer twice", given: heldA, when: then(remove, func(c sim.Client, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			first, _ := c.Delete(ref(pairKind, "a"), "", "", false)
			second, err := c.Delete(ref(pairKind, "a"), "", "", false)
			if first.GetResourceVersion() != second.GetResourceVersion() {
				return o, err
			}
			return second, err
		}), want: "200 new version, generation +1"},
		{name: "a new finalizer while deleting", given: heldA, when: then(remove, patches("{metadata: {finalizers: [x.example.com/hold, x.example.com/more]}}", "")), want: "422 Invalid"},
		{name: "a change while deleting", given: heldA, when: then(remove, patches("{spec: {color: red}}", "")), want: "200 new version, generation +2"},
		{name: "the deletion cannot be cleared", given: heldA, when: then(remove, patches("{metadata: {deletionTimestamp: null}}", "")), want: "200 new version, generation +1"},
		{name: "the last finalizer", given: heldA, when: then(remove, patches("{metadata: {finalizers: null}}", "")), want: "200 new version, generation +1", also: gone(pairKind, "a")},
		{name: "a pod on a node is given time", given: podA, when: remove, want: "200 new version, generation +1", also: has("30", "metadata", "deletionGracePeriodSeconds")},
		{name: "a kubelet ends it", given: podA, when: then(remove, func(c sim.Client, _ *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return c.Delete(ref(podKind, "a"), "", "", true)
		}), want: "200 new version, generation +1", also: gone(podKind, "a")},
	}
}

func applyRows() []goldenRow {
	red := "{apiVersion: sim.example.com/v1, kind: Pair, metadata: {name: a}, spec: {keys: [x], color: red}}"
	return []goldenRow{
		{name: "apply creates", when: applies(red), want: "201 generation 1"},
		{name: "apply with any version creates", when: applies(red, "resourceVersion", "77"), want: "201 generation 1"},
		{name: "apply with version 1 to what exists", given: pairA, when: applies(red, "resourceVersion", "1"), want: "409 Conflict"},
		{name: "apply with a uid to what is absent", when: applies(red, "uid", "u"), want: "409 Conflict"},
		{name: "apply with another uid", given: pairA, when: applies(red, "uid", "u"), want: "422 Invalid"},
		{name: "apply again", given: pairA, when: func(c sim.Client, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			first, err := c.Apply(sim.Parse(red), "")
			if err != nil {
				return nil, err
			}
			o.SetResourceVersion(first.GetResourceVersion())
			o.SetGeneration(first.GetGeneration())
			return c.Apply(sim.Parse(red), "")
		}, want: "200 same version, generation +0"},
		{name: "apply quantities again", when: then(applies(webA), func(c sim.Client, _ *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			second, err := c.Apply(sim.Parse(webA), "")
			if err == nil && second.GetResourceVersion() != "3" {
				t := "an apply of the same wrote version " + second.GetResourceVersion()
				panic(t)
			}
			return second, err
		}), want: "201 generation 1"},
		{name: "a dropped field goes, its default comes", when: then(applies(red), applies(pairA)), want: "201 generation 2", also: has("grey", "spec", "color")},
		{name: "a dropped field stays while somebody else owns it", given: red, when: then(applies(red), applies(pairA)), want: "200 new version, generation +0", also: has("red", "spec", "color")},
		{name: "apply of an unknown field", when: applies("{apiVersion: sim.example.com/v1, kind: Pair, metadata: {name: a}, spec: {keys: [x], nope: 1}}"), want: "500"},
		{name: "apply of status to the main endpoint", given: pairA, when: applies("{apiVersion: sim.example.com/v1, kind: Pair, metadata: {name: a}, status: {made: 1}}"),
			want: "200 same version, generation +0", also: has("<nil>", "status")},
		{name: "apply of status to the subresource", given: pairA, when: func(c sim.Client, _ *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return c.Apply(sim.Parse("{apiVersion: sim.example.com/v1, kind: Pair, metadata: {name: a}, spec: {color: red}, status: {made: 1}}"), "status")
		}, want: "200 new version, generation +0", also: has("grey", "spec", "color")},
		{name: "lists by key are merged", given: "{apiVersion: sim.example.com/v1, kind: Pair, metadata: {name: a}, spec: {keys: [x], parts: [{name: one}]}}",
			when: applies("{apiVersion: sim.example.com/v1, kind: Pair, metadata: {name: a}, spec: {parts: [{name: two}]}}"),
			want: "200 new version, generation +1", also: has("[map[name:one value:1] map[name:two value:1]]", "spec", "parts")},
		{name: "a container added by hand stays", given: webA, when: then(
			patches("{spec: {template: {spec: {containers: [{name: c, image: i}, {name: d, image: j}]}}}}", ""), applies(webA)),
			want: "200 new version, generation +2"},
	}
}
