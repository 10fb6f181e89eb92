package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const webDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default, labels: {app: web}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: nginx:1
        args: [a, b]
        env: [{name: A, value: "1"}, {name: B, value: "2"}]
        ports: [{containerPort: 80}, {containerPort: 443, name: tls}]
      - name: log
        image: fluent:1
`

const webService = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec:
  selector: {app: web}
  ports: [{name: http, port: 80}, {name: dns, port: 53, protocol: UDP}]
`

const ownedMap = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: c
  namespace: default
  finalizers: [example.com/a, example.com/b]
  ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: u, controller: true}]
data: {k: v}
`

func paths(changes []Change) []string {
	var out []string
	for _, c := range changes {
		out = append(out, c.Path)
	}
	return out
}

func container(o map[string]any, name string) map[string]any {
	return at(o, "spec/template/spec/containers/"+name)
}

func TestCompareAgainstRealManagedFields(t *testing.T) {
	type edit = func(o map[string]any)
	tests := map[string]struct {
		given   string
		foreign edit // somebody else's update after our apply
		desired edit // how desired differs from what we applied
		skip    []string
		want    []string
	}{
		"what was applied is equal":                 {given: webDeployment},
		"a Service whose ports got defaults":        {given: webService},
		"ownerReferences, owned whole, are equal":   {given: ownedMap},
		"a foreign label in a granular map is left": {given: webDeployment, foreign: func(o map[string]any) { at(o, "metadata/labels")["theirs"] = "x" }},
		"a foreign env entry is left": {given: webDeployment, foreign: func(o map[string]any) {
			c := container(o, "web")
			c["env"] = append(c["env"].([]any), map[string]any{"name": "C", "value": "3"})
		}},
		"a granular label was edited": {given: webDeployment,
			foreign: func(o map[string]any) { at(o, "metadata/labels")["app"] = "x" },
			want:    []string{"metadata.labels.app"}},
		"a granular label was removed by hand": {given: webDeployment,
			foreign: func(o map[string]any) { delete(at(o, "metadata/labels"), "app") },
			want:    []string{"metadata.labels.app"}},
		"an atomic map got a foreign key": {given: webService,
			foreign: func(o map[string]any) { at(o, "spec/selector")["theirs"] = "x" },
			want:    []string{"spec.selector.app"}}, // The edit took the whole map over.
		"an atomic list is compared whole": {given: webDeployment,
			desired: func(o map[string]any) { container(o, "web")["args"] = []any{"b", "a"} },
			want:    []string{"spec.template.spec.containers[name=web].args"}},
		"a field of a keyed entry": {given: webDeployment,
			foreign: func(o map[string]any) { container(o, "web")["image"] = "nginx:2" },
			want:    []string{"spec.template.spec.containers[name=web].image"}},
		"a key field that the schema defaults": {given: webDeployment,
			desired: func(o map[string]any) {
				container(o, "web")["ports"].([]any)[0].(map[string]any)["name"] = "http"
			},
			want: []string{"spec.template.spec.containers[name=web].ports[containerPort=80,protocol=TCP].name"}},
		"a new entry of a keyed list": {given: webDeployment,
			desired: func(o map[string]any) {
				c := container(o, "web")
				c["env"] = append(c["env"].([]any), map[string]any{"name": "C"})
			},
			want: []string{"spec.template.spec.containers[name=web].env[2]"}},
		"an entry of ours was removed by hand": {given: webDeployment,
			foreign: func(o map[string]any) {
				c := container(o, "web")
				c["env"] = c["env"].([]any)[:1]
			},
			want: []string{"spec.template.spec.containers[name=web].env[1]"}},
		"an entry no longer desired": {given: webDeployment,
			desired: func(o map[string]any) {
				c := container(o, "web")
				c["env"] = c["env"].([]any)[:1]
			},
			want: []string{"spec.template.spec.containers[name=web].env[name=B]"}},
		"the order of a keyed list": {given: webDeployment,
			desired: func(o map[string]any) {
				e := container(o, "web")["env"].([]any)
				e[0], e[1] = e[1], e[0]
			},
			want: []string{"spec.template.spec.containers[name=web].env"}},
		"a field not owned yet, though equal": {given: webDeployment,
			foreign: func(o map[string]any) { at(o, "spec")["paused"] = true },
			desired: func(o map[string]any) { at(o, "spec")["paused"] = true },
			want:    []string{"spec.paused"}},
		"a map not owned yet is named leaf by leaf": {given: webDeployment,
			desired: func(o map[string]any) {
				at(o, "metadata")["annotations"] = map[string]any{"a": "1", "b": "2"}
			},
			want: []string{"metadata.annotations.a", "metadata.annotations.b"}},
		"a field owned and no longer desired": {given: webDeployment,
			desired: func(o map[string]any) { delete(at(o, "spec"), "replicas") },
			want:    []string{"spec.replicas"}},
		"a whole map owned and no longer desired": {given: webDeployment,
			desired: func(o map[string]any) { delete(at(o, "metadata"), "labels") },
			want:    []string{"metadata.labels"}},
		"a create-only field that differs is not compared": {given: webDeployment, skip: []string{"spec.replicas"},
			foreign: func(o map[string]any) { at(o, "spec")["replicas"] = int64(7) }},
		"a create-only field is not dropped": {given: webDeployment, skip: []string{"spec.replicas"},
			desired: func(o map[string]any) { delete(at(o, "spec"), "replicas") }},
		"a member of a set is new": {given: ownedMap,
			desired: func(o map[string]any) {
				at(o, "metadata")["finalizers"] = []any{"example.com/a", "example.com/b", "example.com/c"}
			},
			want: []string{"metadata.finalizers[example.com/c]"}},
		"a member of a set is no longer desired": {given: ownedMap,
			desired: func(o map[string]any) { at(o, "metadata")["finalizers"] = []any{"example.com/a"} },
			want:    []string{`metadata.finalizers["example.com/b"]`}},
		"a foreign member of a set is left": {given: ownedMap, foreign: func(o map[string]any) {
			m := at(o, "metadata")
			m["finalizers"] = append(m["finalizers"].([]any), "theirs.example.com/x")
		}},
		"an entry owned whole was edited": {given: ownedMap,
			foreign: func(o map[string]any) {
				at(o, "metadata")["ownerReferences"].([]any)[0].(map[string]any)["controller"] = false
			},
			want: []string{"metadata.ownerReferences"}}, // The edit took the entry over.
		"a normalised quantity counts here": {given: webDeployment,
			desired: func(o map[string]any) {
				container(o, "log")["resources"] = map[string]any{"limits": map[string]any{"cpu": "1000m"}}
			},
			want: []string{"spec.template.spec.containers[name=log].resources.limits.cpu"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			desired := object(t, tc.given)
			live := applied(t, nil, desired.Object, us)
			if tc.foreign != nil {
				live = edited(t, live, others, tc.foreign)
			}
			if tc.desired != nil {
				tc.desired(desired.Object)
			}
			got := paths(Compare(desired.Object, live.Object, Owned(live, us, ""), tc.skip))
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("changes differ (-want +got):\n%s\nowned: %s", d, canonical(Owned(live, us, "")))
			}
		})
	}
}

func TestCompareOfAnObjectWithoutOurEntryNamesOnlyWhatAnApplySets(t *testing.T) {
	desired := object(t, ownedMap)
	live := desired.DeepCopy()
	got := paths(Compare(desired.Object, live.Object, nil, nil))
	want := []string{"data.k", "metadata.finalizers", "metadata.ownerReferences"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("changes differ (-want +got):\n%s", d)
	}
}

func TestOwnedReadsOnlyTheApplyEntryOfTheSubresource(t *testing.T) {
	entry := func(manager, operation, subresource, field string) any {
		e := map[string]any{"manager": manager, "operation": operation, "fieldsV1": map[string]any{"f:" + field: map[string]any{}}}
		if subresource != "" {
			e["subresource"] = subresource
		}
		return e
	}
	u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"managedFields": []any{
		entry(us, "Update", "", "update"), entry(others, "Apply", "", "theirs"),
		entry(us, "Apply", "status", "status"), entry(us, "Apply", "", "main"),
	}}}}
	tests := map[string]struct {
		manager, subresource, want string
	}{
		"the object": {us, "", "f:main"}, "its status": {us, "status", "f:status"},
		"somebody else": {others, "", "f:theirs"}, "nobody": {"x", "", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			for k := range Owned(u, tc.manager, tc.subresource) {
				got = k
			}
			if got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestEqualKnowsNumbersAndAbsence(t *testing.T) {
	tests := map[string]struct {
		a, b any
		want bool
	}{
		"int64 and float64":  {int64(1), float64(1), true},
		"different numbers":  {int64(1), int64(2), false},
		"number and text":    {int64(1), "1", false},
		"nested":             {map[string]any{"a": []any{int64(1)}}, map[string]any{"a": []any{1.0}}, true},
		"null is not absent": {map[string]any{"a": nil}, map[string]any{}, false},
		"order of a list":    {[]any{"a", "b"}, []any{"b", "a"}, false},
		"longer list":        {[]any{"a"}, []any{"a", "b"}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Equal(tc.a, tc.b); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
