package verb

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/homeostat-dev/homeostat/engine"
	"github.com/homeostat-dev/homeostat/internal/command"
)

func TestBecause(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	later := now.Add(90 * time.Second)
	repair := &engine.PassRecord{
		Pass: 4, Woken: "Deployment shop/web changed", Began: now.Add(-time.Minute), Ended: now.Add(-time.Minute).Add(3 * time.Millisecond), Rounds: 1, Settled: true,
		Decided: &engine.DecisionRecord{Children: 1},
		Operations: []engine.OperationRecord{{Verb: "apply", Kind: "Deployment", Namespace: "shop", Name: "web", Reason: "spec.replicas as desired", Answer: "ok",
			Changes: []engine.ChangeRecord{{Path: "spec.replicas", From: "1", To: "3"}, {Path: "spec.paused", To: "true"}, {Path: "spec.x", From: "2", To: "2"}}, Omitted: 4}},
	}
	const repaired = `  apply Deployment shop/web: spec.replicas as desired → ok
      spec.replicas: 1 → 3
      spec.paused: (absent) → true
      spec.x: as it is, to be owned
      and 4 more
`
	const head = "Web shop/w (operator web)\n"
	of := func(r engine.Record) engine.Record {
		r.Operator, r.Kind, r.Namespace, r.Name = "web", "Web", "shop", "w"
		return r
	}
	tests := map[string]struct {
		given engine.Record
		want  string
	}{
		"a repair": {of(engine.Record{Last: repair, State: engine.Resting}), head + `woken     Deployment shop/web changed, 60s ago
decided   1 child, as long as nothing changes
written   1 operation
` + repaired + `ended     all is written as decided (pass 4, 3ms)
next      when something changes
`},
		"a failure after it": {of(engine.Record{State: engine.Waiting, Next: &later, Failures: 2, Wrote: repair, Last: &engine.PassRecord{
			Pass: 5, Woken: "it changed", Began: now, Ended: now, Trouble: "SyncFailed: no"}}), head + `woken     it changed, 0s ago
decided   nothing: there is no usable answer
written   nothing, all was as decided
ended     not as desired: SyncFailed: no (pass 5, 0s)
next      again in 90s, after 2 passes that did not bring it to rest, or when something changes

before    the last write besides status was in pass 4, 60s ago, woken by: Deployment shop/web changed
` + repaired},
		"nothing yet": {of(engine.Record{State: engine.Due, Woken: "it appeared"}),
			head + "woken     it appeared; no pass has ended yet\nnext      it is due now, woken by: it appeared\n"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, because([]engine.Record{tc.given}, now)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// answering is a server that says one thing, and what it was asked.
func answering(t *testing.T, code int, body string) (at string, asked *http.Request) {
	t.Helper()
	asked = &http.Request{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = *r
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL, asked
}

func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: "` + server + `"}}],
contexts: [{name: c, context: {cluster: c, user: u, namespace: shop}}], users: [{name: u, user: {}}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func execute(c *cobra.Command, args ...string) (stdout string, err error) {
	var out strings.Builder
	c.SetArgs(args)
	c.SetOut(&out)
	c.SetErr(io.Discard)
	c.SilenceErrors, c.SilenceUsage = true, true
	err = c.Execute()
	return out.String(), err
}

func TestWhyAsks(t *testing.T) {
	data, err := json.Marshal(engine.WhyAnswer{Records: []engine.Record{{Operator: "web", Kind: "Web", Namespace: "shop", Name: "w", State: engine.Resting,
		Last: &engine.PassRecord{Settled: true}}}})
	if err != nil {
		t.Fatal(err)
	}
	record := string(data)
	tests := map[string]struct {
		code  int
		body  string
		pod   string
		path  string
		says  string
		wrong bool // of the command line
	}{
		"an address":                      {code: 200, body: record, path: "/homeostat/why"},
		"a pod":                           {code: 200, body: record, pod: "ops/leader", path: "/api/v1/namespaces/ops/pods/leader:8080/proxy/homeostat/why"},
		"a pod with a port":               {code: 200, body: record, pod: "ops/leader:9090", path: "/api/v1/namespaces/ops/pods/leader:9090/proxy/homeostat/why"},
		"a pod without a namespace":       {pod: "leader", says: "NAMESPACE/NAME", wrong: true},
		"no such parent":                  {code: 404, body: `{"error":"the operator has seen no Web w"}`, says: "seen no Web w"},
		"no such parent, through a pod":   {code: 404, body: `{"error":"the operator has seen no Web w"}`, pod: "ops/leader", says: "seen no Web w"},
		"no such pod":                     {code: 404, body: `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","message":"pods leader not found"}`, pod: "ops/leader", says: "pods leader not found"},
		"no right to the proxy":           {code: 403, body: `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"no"}`, pod: "ops/leader", says: "pods/proxy"},
		"a metrics server that is closed": {code: 401, body: "Unauthorized", says: "does not let you see"},
		"some other server":               {code: 404, body: "404 page not found", says: "is no operator"},
		"JSON of something else":          {code: 200, body: `{"hello":1}`, says: "is no operator"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			at, asked := answering(t, tc.code, tc.body)
			args := []string{"web", "w", "--kubeconfig", kubeconfig(t, at), "--address", at}
			if tc.pod != "" {
				args = append(args[:4], "--pod", tc.pod)
			}
			out, err := execute(Why("homeostat"), args...)
			_, usage := errors.AsType[*command.Usage](err)
			switch {
			case tc.says == "" && err != nil:
				t.Fatal(err)
			case tc.says != "":
				if err == nil || !strings.Contains(err.Error(), tc.says) || usage != tc.wrong {
					t.Errorf("error %v (usage %v), want %q", err, usage, tc.says)
				}
				return
			}
			if !strings.HasPrefix(out, "Web shop/w (operator web)\n") || asked.URL.Path != tc.path {
				t.Errorf("asked %s, and said\n%s", asked.URL, out)
			}
			if q := asked.URL.Query(); q.Get("kind") != "web" || q.Get("namespace") != "shop" || q.Get("name") != "w" {
				t.Errorf("asked for %v", q)
			}
		})
	}
}

func TestWhyWithoutAnOperator(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	s.Close()
	_, err := execute(Why("homeostat"), "web", "w", "--address", s.URL, "--kubeconfig", kubeconfig(t, s.URL))
	if err == nil || !strings.Contains(err.Error(), "--metrics-bind-address") {
		t.Errorf("error %v; it must say what to do", err)
	}
}

func TestWhyAsJSON(t *testing.T) {
	at, _ := answering(t, 200, `{"records":[{"operator":"web","kind":"Web","name":"w","state":"resting"}]}`)
	out, err := execute(Why("homeostat"), "web", "w", "--address", at, "--kubeconfig", kubeconfig(t, at), "-o", "json")
	var records []engine.Record
	if err != nil || json.Unmarshal([]byte(out), &records) != nil || len(records) != 1 {
		t.Errorf("%v, %s", err, out)
	}
}
