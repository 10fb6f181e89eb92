package engine

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/homeostat-dev/homeostat/operator"
)

func coreOf(t *testing.T, name, kind string, clusterScoped bool) *Core {
	t.Helper()
	core, err := NewCore(&operator.Operator{
		Name:   name,
		Parent: operator.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: kind}, ClusterScoped: clusterScoped},
		Sync:   func(operator.Request) (operator.Response, error) { return operator.Response{}, nil },
	}, CoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return core
}

func listed(core *Core, namespace, name string) *Core {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(core.operator.Parent.GroupVersionKind)
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetUID("u")
	o.SetResourceVersion("7")
	core.Replace(o.GroupVersionKind(), []*unstructured.Unstructured{o}, "7")
	return core
}

func TestWhatIsServed(t *testing.T) {
	webs := func(t *testing.T) *Core { return listed(coreOf(t, "web", "Web", false), "default", "p") }
	tests := map[string]struct {
		cores   func(t *testing.T) []*Core
		method  string
		query   string
		code    int
		records int
		says    string
	}{
		"a parent":                       {query: "kind=Web&namespace=default&name=p", code: 200, records: 1},
		"by the name of the resource":    {query: "kind=webs&namespace=default&name=p", code: 200, records: 1},
		"by resource and group":          {query: "kind=webs.example.com&namespace=default&name=p", code: 200, records: 1},
		"a parent in another namespace":  {query: "kind=Web&namespace=other&name=p", code: 404, says: "no Web p in namespace other"},
		"a kind nobody here looks after": {query: "kind=Pod&namespace=default&name=p", code: 404, says: "here is: web for Web.example.com"},
		"a question without a name":      {query: "kind=Web", code: 400, says: "kind and name"},
		"another method":                 {method: http.MethodPost, query: "kind=Web&namespace=default&name=p", code: 405},
		"no operator at work":            {cores: func(*testing.T) []*Core { return nil }, query: "kind=Web&name=p", code: 503, says: "lease"},
		"an operator that has just begun": {cores: func(t *testing.T) []*Core { return []*Core{coreOf(t, "web", "Web", false)} },
			query: "kind=Web&namespace=default&name=p", code: 503, says: "not yet listed"},
		"two operators of one kind": {cores: func(t *testing.T) []*Core {
			return []*Core{webs(t), listed(coreOf(t, "other", "Web", false), "default", "p")}
		}, query: "kind=Web&namespace=default&name=p", code: 200, records: 2},
		"a kind without namespaces": {cores: func(t *testing.T) []*Core { return []*Core{listed(coreOf(t, "w", "World", true), "", "p")} },
			query: "kind=World&namespace=default&name=p", code: 200, records: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var d directory
			cores := []*Core{webs(t)}
			if tc.cores != nil {
				cores = tc.cores(t)
			}
			for _, c := range cores {
				defer d.enter(c)()
			}
			if tc.method == "" {
				tc.method = http.MethodGet
			}
			w := httptest.NewRecorder()
			d.ServeHTTP(w, httptest.NewRequest(tc.method, WhyPath+"?"+tc.query, nil))
			if w.Code != tc.code {
				t.Errorf("code %d, want %d: %s", w.Code, tc.code, w.Body)
			}
			if tc.code == http.StatusMethodNotAllowed {
				return
			}
			var answer WhyAnswer
			if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
				t.Fatal(err)
			}
			if len(answer.Records) != tc.records || !strings.Contains(answer.Error, tc.says) || len(answer.Operators) != len(cores) && tc.code != 400 {
				t.Errorf("%d records of %d operators, error %q", len(answer.Records), len(answer.Operators), answer.Error)
			}
		})
	}
}

func TestACoreThatLeavesIsNotServed(t *testing.T) {
	var d directory
	d.enter(coreOf(t, "web", "Web", false))()
	if len(d.cores) > 0 {
		t.Errorf("%d cores are left", len(d.cores))
	}
}
