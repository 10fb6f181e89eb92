package webserver_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/homeostat-dev/homeostat/operator/admission"
	"github.com/homeostat-dev/homeostat/operator/operatortest"
	"github.com/homeostat-dev/homeostat/operators/webserver"
)

func TestFixtures(t *testing.T) {
	operatortest.Run(t, webserver.Operator, "testdata/*.txtar")
}

func TestSamplesAreValid(t *testing.T) {
	paths, err := filepath.Glob("samples/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no samples (%v)", err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := admit(t, string(data)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestRefusedByTheAPIServer(t *testing.T) {
	tests := map[string]struct{ given, want string }{
		"W11: a negative number of replicas": {"metadata: {name: a}\nspec: {image: i, replicas: -1}", "spec.replicas"},
		"W11: more replicas than one means":  {"metadata: {name: a}\nspec: {image: i, replicas: 501}", "spec.replicas"},
		"W11: replicas that are no number":   {"metadata: {name: a}\nspec: {image: i, replicas: three}", "spec.replicas"},
		"W11: an empty image":                {"metadata: {name: a}\nspec: {image: ''}", "spec.image"},
		"W11: no image":                      {"metadata: {name: a}\nspec: {replicas: 1}", "spec.image: Required"},
		"W11: no spec":                       {"metadata: {name: a}", "spec: Required"},
		"an image that is a space":           {"metadata: {name: a}\nspec: {image: ' '}", "without white space"},
		"an image with a space after it":     {"metadata: {name: a}\nspec: {image: 'nginx '}", "without white space"},
		"an image with a line's end":         {"metadata: {name: a}\nspec: {image: \"nginx\\n\"}", "without white space"},
		"an image with another kind of space": {"metadata: {name: a}\nspec: {image: \"nginx\\u00a0\"}",
			"without white space"},
		"a node port below the range":     {"metadata: {name: a}\nspec: {image: i, service: {nodePort: 29999}}", "spec.service.nodePort"},
		"a node port above the range":     {"metadata: {name: a}\nspec: {image: i, service: {nodePort: 32768}}", "spec.service.nodePort"},
		"a node port where there is none": {"metadata: {name: a}\nspec: {image: i, service: {type: ClusterIP, nodePort: 30010}}", "leave nodePort out"},
		"a type of Service without ports": {"metadata: {name: a}\nspec: {image: i, service: {type: ExternalName}}", "spec.service.type"},
		"a name that no Service can have": {"metadata: {name: 1.a}\nspec: {image: i}", "Service"},
		"a name that is too long":         {"metadata: {name: " + strings.Repeat("a", 56) + "}\nspec: {image: i}", "55"},

		"the longest name that is allowed":  {"metadata: {name: " + strings.Repeat("a", 55) + "}\nspec: {image: i}", ""},
		"no replicas at all":                {"metadata: {name: a}\nspec: {image: i, replicas: 0}", ""},
		"the last node port":                {"metadata: {name: a}\nspec: {image: i, service: {nodePort: 32767}}", ""},
		"a load balancer with a node port":  {"metadata: {name: a}\nspec: {image: i, service: {type: LoadBalancer, nodePort: 30000}}", ""},
		"a status that has only conditions": {"metadata: {name: a}\nspec: {image: i}\nstatus: {conditions: []}", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := admit(t, tt.given)
			if tt.want == "" && err != nil {
				t.Errorf("refused: %v", err)
			}
			if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got error %v, want one about %q", err, tt.want)
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	for given, want := range map[string]string{
		"{image: i}":                                "{image: i, replicas: 1}",
		"{image: i, replicas: null}":                "{image: i, replicas: 1}",
		"{image: i, replicas: 0}":                   "{image: i, replicas: 0}",
		"{image: i, service: {nodePort: 30010}}":    "{image: i, replicas: 1, service: {type: NodePort, nodePort: 30010}}",
		"{image: i, service: {type: LoadBalancer}}": "{image: i, replicas: 1, service: {type: LoadBalancer}}",
	} {
		u, err := admit(t, "metadata: {name: a}\nspec: "+given)
		if err != nil {
			t.Errorf("%s: %v", given, err)
			continue
		}
		if d := cmp.Diff(values(t, want), u.Object["spec"]); d != "" {
			t.Errorf("%s (-want +got):\n%s", given, d)
		}
	}
}

// TestDamageIsRepaired starts from children as a cluster has them, lets somebody
// damage them, and compares what stands when the operator has come to rest.
func TestDamageIsRepaired(t *testing.T) {
	const (
		allocated = "{image: 'nginx:1.23.1', replicas: 3}"
		named     = "{image: 'nginx:1.23.1', replicas: 3, service: {nodePort: 30010}}"
	)
	tests := map[string]struct {
		spec   string
		damage func(t *testing.T, w *operatortest.World)
	}{
		"nothing": {allocated, func(*testing.T, *operatortest.World) {}},
		"W6: replicas and image": {allocated, func(t *testing.T, w *operatortest.World) {
			edit(t, w, "Deployment", int64(0), "spec", "replicas")
			edit(t, w, "Deployment", []any{map[string]any{"name": "webserver", "image": "httpd"}}, "spec", "template", "spec", "containers")
		}},
		"W6: a container beside ours": {allocated, func(t *testing.T, w *operatortest.World) {
			c := field(t, w, "Deployment", "spec", "template", "spec", "containers").([]any)
			edit(t, w, "Deployment", append(c, map[string]any{"name": "by-hand", "image": "busybox"}), "spec", "template", "spec", "containers")
		}},
		"W8: the type": {allocated, func(t *testing.T, w *operatortest.World) {
			edit(t, w, "Service", "LoadBalancer", "spec", "type")
		}},
		"W8: the selector": {allocated, func(t *testing.T, w *operatortest.World) {
			edit(t, w, "Service", map[string]any{"app": "another"}, "spec", "selector")
		}},
		"W8: port and target port": {allocated, func(t *testing.T, w *operatortest.World) {
			p := field(t, w, "Service", "spec", "ports").([]any)[0].(map[string]any)
			p["port"], p["targetPort"] = int64(81), int64(8080)
			edit(t, w, "Service", []any{p}, "spec", "ports")
		}},
		"W8: a port beside ours": {allocated, func(t *testing.T, w *operatortest.World) {
			p := field(t, w, "Service", "spec", "ports").([]any)
			edit(t, w, "Service", append(p, map[string]any{"name": "by-hand", "port": int64(9)}), "spec", "ports")
		}},
		"W8: the node port that the owner named": {named, func(t *testing.T, w *operatortest.World) {
			p := field(t, w, "Service", "spec", "ports").([]any)[0].(map[string]any)
			p["nodePort"] = int64(30999)
			edit(t, w, "Service", []any{p}, "spec", "ports")
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := cluster(t, "webserver-sample", tt.spec)
			want := spec(w.Children)
			tt.damage(t, &w)
			if d := cmp.Diff(want, spec(settle(t, w).Children)); d != "" {
				t.Errorf("what stands differs from before (-want +got):\n%s", d)
			}
		})
	}
}

func TestDeletedChildrenComeBack(t *testing.T) {
	for fact, kind := range map[string]string{"W5": "Service", "W6": "Deployment"} {
		w := cluster(t, "webserver-sample", "{image: 'nginx:1.23.1', replicas: 3, service: {nodePort: 30010}}")
		for i, c := range w.Children {
			if c.GetKind() == kind {
				w.Children = append(w.Children[:i:i], w.Children[i+1:]...)
				break
			}
		}
		again := settle(t, w)
		if child(t, &again, kind) == nil {
			t.Errorf("%s: the %s does not come back", fact, kind)
		}
	}
}

// TestTwoSideBySide is W9.
func TestTwoSideBySide(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range []string{"one", "one-service"} {
		w := settle(t, world(t, name, "{image: 'nginx:1.23.1'}"))
		for _, c := range w.Children {
			id := c.GetKind() + " " + c.GetName()
			if seen[id] {
				t.Errorf("%s is wanted twice", id)
			}
			seen[id] = true
		}
		labels := map[string]any{"app": "webserver", "webserver_cr": name}
		for what, got := range map[string]any{
			"the Service selects":    field(t, &w, "Service", "spec", "selector"),
			"the Deployment selects": field(t, &w, "Deployment", "spec", "selector", "matchLabels"),
			"the pods have":          field(t, &w, "Deployment", "spec", "template", "metadata", "labels"),
		} {
			if d := cmp.Diff(labels, got); d != "" {
				t.Errorf("%s (-want +got):\n%s", what, d)
			}
		}
		if p := field(t, &w, "Service", "spec", "ports").([]any)[0].(map[string]any)["nodePort"]; p != nil {
			t.Errorf("the node port of %s is fixed, %v: two cannot have it", name, p)
		}
	}
}

// cluster is a world at rest, with what a server allocates filled in.
func cluster(t *testing.T, name, spec string) operatortest.World {
	t.Helper()
	w := settle(t, world(t, name, spec))
	edit(t, &w, "Service", "10.96.0.9", "spec", "clusterIP")
	port := field(t, &w, "Service", "spec", "ports").([]any)[0].(map[string]any)
	if port["nodePort"] == nil {
		port["nodePort"] = int64(31234)
	}
	edit(t, &w, "Service", []any{port}, "spec", "ports")
	edit(t, &w, "Deployment", int64(600), "spec", "progressDeadlineSeconds")
	return w
}

func world(t *testing.T, name, spec string) operatortest.World {
	t.Helper()
	parent, err := admit(t, "metadata: {name: "+name+", namespace: default, uid: uid-"+name+", resourceVersion: '1', generation: 1}\nspec: "+spec)
	if err != nil {
		t.Fatal(err)
	}
	return operatortest.World{Parent: parent, Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

func settle(t *testing.T, w operatortest.World) operatortest.World {
	t.Helper()
	settled, err := operatortest.Settle(webserver.Operator, w)
	if err != nil {
		t.Fatal(err)
	}
	return settled.World
}

func child(t *testing.T, w *operatortest.World, kind string) *unstructured.Unstructured {
	t.Helper()
	for _, c := range w.Children {
		if c.GetKind() == kind {
			return c
		}
	}
	t.Fatalf("there is no %s", kind)
	return nil
}

func field(t *testing.T, w *operatortest.World, kind string, path ...string) any {
	t.Helper()
	v, _, err := unstructured.NestedFieldCopy(child(t, w, kind).Object, path...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func edit(t *testing.T, w *operatortest.World, kind string, value any, path ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(child(t, w, kind).Object, value, path...); err != nil {
		t.Fatal(err)
	}
}

// spec are the specs of the objects by kind.
func spec(objects []*unstructured.Unstructured) map[string]any {
	out := map[string]any{}
	for _, o := range objects {
		out[o.GetKind()] = o.DeepCopy().Object["spec"]
	}
	return out
}

func values(t *testing.T, text string) map[string]any {
	t.Helper()
	u := &unstructured.Unstructured{}
	data, err := yaml.YAMLToJSON([]byte("{apiVersion: v1, kind: Any, value: " + text + "}"))
	if err != nil {
		t.Fatal(err)
	}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return u.Object["value"].(map[string]any)
}

// admit is the WebServer as an API server would store it.
func admit(t *testing.T, text string) (*unstructured.Unstructured, error) {
	t.Helper()
	if !strings.Contains(text, "kind: WebServer") {
		text = "apiVersion: my.domain/v1\nkind: WebServer\n" + text
	}
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	s, err := admission.Compile(webserver.Operator.CRD, webserver.Operator.Parent.Version)
	if err != nil {
		t.Fatal(err)
	}
	return u, s.Create(u)
}
