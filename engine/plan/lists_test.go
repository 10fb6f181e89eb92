package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestForeignEntriesOfListsOwnedWhole(t *testing.T) {
	type edit = func(o map[string]any)
	ports := func(o map[string]any) []any { return at(o, "spec")["ports"].([]any) }
	containers := "spec.template.spec.containers"
	tests := map[string]struct {
		given   string
		path    string
		foreign edit
		desired edit
		lost    bool     // our managedFields entry is gone
		want    []string // name:port:nodePort of ports, name:image of containers; nil: nothing to strip
	}{
		"nothing foreign in a Service":    {given: webService, path: "spec.ports"},
		"nothing foreign in a Deployment": {given: webDeployment, path: containers},
		"the list is not there":           {given: ownedMap, path: "spec.ports"},
		"a list of scalars is for the apply": {given: ownedMap, path: "metadata.finalizers",
			foreign: func(o map[string]any) { at(o, "metadata")["finalizers"] = []any{"theirs.example.com/x"} }},
		"a port added by hand goes": {given: webService, path: "spec.ports",
			foreign: func(o map[string]any) {
				at(o, "spec")["ports"] = append(ports(o), map[string]any{"name": "x", "port": int64(8080), "protocol": "TCP", "nodePort": int64(31000)})
			},
			want: []string{"http:80:30000", "dns:53:30001"}},
		"a port number edited by hand keeps its nodePort": {given: webService, path: "spec.ports",
			foreign: func(o map[string]any) { ports(o)[0].(map[string]any)["port"] = int64(81) },
			want:    []string{"http:80:30000", "dns:53:30001"}},
		"the same without our entry": {given: webService, path: "spec.ports", lost: true,
			foreign: func(o map[string]any) { ports(o)[0].(map[string]any)["port"] = int64(81) },
			want:    []string{"http:80:30000", "dns:53:30001"}},
		"a container added by hand goes": {given: webDeployment, path: containers,
			foreign: func(o map[string]any) {
				spec := at(o, "spec/template/spec")
				spec["containers"] = append([]any{map[string]any{"name": "evil", "image": "x"}}, spec["containers"].([]any)...)
			},
			want: []string{"web:nginx:1", "log:fluent:1"}},
		"an entry we no longer desire goes too": {given: webDeployment, path: containers,
			desired: func(o map[string]any) {
				spec := at(o, "spec/template/spec")
				spec["containers"] = spec["containers"].([]any)[:1]
			},
			want: []string{"web:nginx:1"}},
		"a foreign field in our own entry is not stripped": {given: webDeployment, path: containers,
			foreign: func(o map[string]any) { container(o, "web")["tty"] = true }},
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
			owned := Owned(live, us, "")
			if tc.lost {
				owned = nil
			}
			lists := foreignEntries([]string{tc.path}, desired.Object, live.Object, owned)
			var got []string
			for _, e := range lists[tc.path] {
				m := e.(map[string]any)
				if _, isPort := m["port"]; isPort {
					got = append(got, m["name"].(string)+":"+canonical(m["port"])+":"+canonical(m["nodePort"]))
				} else {
					got = append(got, m["name"].(string)+":"+m["image"].(string))
				}
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("entries differ (-want +got):\n%s", d)
			}
		})
	}
}

func TestForeignEntriesKeepWhatTheServerAllocatedAndShareNothing(t *testing.T) {
	desired := object(t, webService)
	live := applied(t, nil, desired.Object, us)
	live = edited(t, live, others, func(o map[string]any) {
		at(o, "spec")["ports"].([]any)[0].(map[string]any)["port"] = int64(81)
	})
	before := canonical(live.Object) + canonical(desired.Object)
	lists := foreignEntries([]string{"spec.ports"}, desired.Object, live.Object, Owned(live, us, ""))
	lists["spec.ports"][0].(map[string]any)["port"] = int64(1)
	if after := canonical(live.Object) + canonical(desired.Object); after != before {
		t.Error("the result shares memory with what was given")
	}
}
