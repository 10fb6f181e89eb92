package apply_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/homeostat-dev/homeostat/engine/apply"
	"github.com/homeostat-dev/homeostat/engine/plan"
	"github.com/homeostat-dev/homeostat/operator"
)

func applierOf(t *testing.T, handler http.HandlerFunc) *apply.Applier {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	applier, err := apply.New(&rest.Config{Host: server.URL}, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	return applier
}

var get = plan.Op{Verb: plan.Read, Kind: operator.KindOf[corev1.ConfigMap]("v1"), Namespace: "default", Name: "c"}

// TestAnswersAreBounded: a server that never stops talking is not listened to.
func TestAnswersAreBounded(t *testing.T) {
	sent := 0
	applier := applierOf(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"ConfigMap","data":{"k":"`)
		chunk := strings.Repeat("x", 1<<20)
		for range 200 {
			if _, err := io.WriteString(w, chunk); err != nil {
				return
			}
			sent++
		}
	})
	if result := applier.Do(t.Context(), get); result.Err == nil {
		t.Error("an endless answer was taken for an object")
	}
	if sent > 100 {
		t.Errorf("%d MiB were read of it", sent)
	}
}

// TestRequests: what each operation sends, as the API server's documentation has it.
func TestRequests(t *testing.T) {
	var saw string
	applier := applierOf(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		saw = strings.TrimSpace(r.Method + " " + r.URL.RequestURI() + " " + r.Header.Get("Content-Type") + " " + string(body))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"Status","status":"Success"}`)
	})
	op := get
	op.Manager, op.UID, op.Body = "m", "u", map[string]any{"a": "b"}
	for verb, want := range map[plan.Verb]string{
		plan.Read:   "GET /api/v1/namespaces/default/configmaps/c",
		plan.Create: `PATCH /api/v1/namespaces/default/configmaps/c?fieldManager=m&force=true application/apply-patch+yaml {"a":"b"}`,
		plan.Apply:  `PATCH /api/v1/namespaces/default/configmaps/c?fieldManager=m&force=true application/apply-patch+yaml {"a":"b"}`,
		plan.Status: `PATCH /api/v1/namespaces/default/configmaps/c/status?fieldManager=m&force=true application/apply-patch+yaml {"a":"b"}`,
		plan.Strip:  `PATCH /api/v1/namespaces/default/configmaps/c?fieldManager=m application/merge-patch+json {"a":"b"}`,
		plan.Tell:   `POST /api/v1/namespaces/default/configmaps?fieldManager=m application/json {"a":"b"}`,
		plan.Delete: `DELETE /api/v1/namespaces/default/configmaps/c application/json {"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u"},"propagationPolicy":"Background"}`,
	} {
		op.Verb = verb
		if verb == plan.Delete {
			op.Manager = ""
		}
		result := applier.Do(t.Context(), op)
		if result.Err != nil || result.Object != nil {
			t.Errorf("%s: %v, %v", verb, result.Object, result.Err)
		}
		if saw != want {
			t.Errorf("%s sent\n%s, want\n%s", verb, saw, want)
		}
		op.Manager = "m"
	}
}
