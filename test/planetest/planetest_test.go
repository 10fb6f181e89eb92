package planetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestBringUp is the real thing: a plane that schedules, runs (as far as
// simulated nodes do) and collects garbage.
func TestBringUp(t *testing.T) {
	begin := time.Now()
	lap := func(what string) {
		t.Logf("%-40s %6.2fs", what, time.Since(begin).Seconds())
		begin = time.Now()
	}
	p := Start(t)
	lap("plane ready")
	namespace := p.Namespace(t)
	lap("namespace ready")

	p.Kubectl(t, "-n", namespace, "create", "deployment", "web", "--image=example.com/web", "--replicas=3")
	p.Kubectl(t, "-n", namespace, "rollout", "status", "deployment/web", "--timeout=30s")
	lap("deployment rolled out")
	if got := p.Kubectl(t, "-n", namespace, "get", "deployment", "web", "-o", "jsonpath={.status.readyReplicas}"); got != "3" {
		t.Errorf("ready replicas: %q, want 3", got)
	}

	p.Kubectl(t, "-n", namespace, "delete", "deployment", "web")
	until(t, "replica sets and pods to be garbage collected", func() bool {
		return p.Kubectl(t, "-n", namespace, "get", "replicasets,pods", "-o", "name") == ""
	})
	lap("garbage collected")
}

func TestNamespacesAreSeparateAndDeleted(t *testing.T) {
	p := Start(t)
	var first, second string
	t.Run("A test, with a name / that is no namespace's", func(t *testing.T) {
		first, second = p.Namespace(t), p.Namespace(t)
	})
	if first == second {
		t.Errorf("two namespaces are both %s", first)
	}
	for _, namespace := range []string{first, second} {
		got, err := p.client.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
		if err == nil && got.DeletionTimestamp == nil {
			t.Errorf("%s outlives its test", namespace)
		}
	}
}

func TestKubectlFailureIsReported(t *testing.T) {
	p := Start(t)
	if _, said, err := p.TryKubectl(t, "get", "nonsense"); err == nil || !strings.Contains(said, "nonsense") {
		t.Errorf("got %v, %q", err, said)
	}
}

func TestRequestsAreCounted(t *testing.T) {
	p := Start(t)
	namespace := p.Namespace(t)
	begin := time.Now()
	p.Kubectl(t, "-n", namespace, "create", "configmap", "one")
	p.Kubectl(t, "-n", namespace, "delete", "configmap", "one")
	var verbs []string
	for _, request := range p.Requests(t, Match{UserAgent: "kubectl", Namespace: namespace}, begin) {
		if request.Resource == "configmaps" && slices.Contains([]string{"create", "delete"}, request.Verb) {
			verbs = append(verbs, request.Verb)
		}
		if request.User != "admin" {
			t.Errorf("user of %s: %q", request, request.User)
		}
	}
	if want := []string{"create", "delete"}; !slices.Equal(verbs, want) {
		t.Errorf("verbs: %v, want %v", verbs, want)
	}
	if later := p.Requests(t, Match{UserAgent: "kubectl", Namespace: namespace}, time.Now()); len(later) > 0 {
		t.Errorf("requests of the future: %v", later)
	}
}

func TestReadAuditLog(t *testing.T) {
	const log = `{"auditID":"1","stage":"ResponseStarted","verb":"watch","user":{"username":"u"},"userAgent":"engine/1","objectRef":{"resource":"pods","namespace":"n"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-01T00:00:01.000000Z"}
{"auditID":"2","stage":"ResponseComplete","verb":"patch","user":{"username":"u"},"userAgent":"engine/1","objectRef":{"apiGroup":"apps","resource":"deployments","subresource":"status","namespace":"n","name":"d"},"responseStatus":{"code":409},"requestReceivedTimestamp":"2026-01-01T00:00:02.000000Z"}
{"auditID":"3","stage":"ResponseComplete","verb":"get","user":{"username":"u"},"userAgent":"other","objectRef":{"resource":"pods","namespace":"n","name":"engine/1"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-01T00:00:03.000000Z"}
{"auditID":"1","stage":"ResponseComplete","verb":"watch","user":{"username":"u"},"userAgent":"engine/1","objectRef":{"resource":"pods","namespace":"n"},"responseStatus":{"code":200},"requestReceivedTimestamp":"2026-01-01T00:00:01.000000Z"}
{"auditID":"4","stage":"Respon`
	since := func(second int) time.Time { return time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC) }
	watch := Request{Verb: "watch", Resource: "pods", Namespace: "n", Code: 200, UserAgent: "engine/1", User: "u", Time: since(1)}
	patch := Request{Verb: "patch", Group: "apps", Resource: "deployments", Subresource: "status", Namespace: "n", Name: "d",
		Code: 409, UserAgent: "engine/1", User: "u", Time: since(2)}
	for name, test := range map[string]struct {
		match Match
		since time.Time
		want  []Request
	}{
		"a watch counts once":         {Match{UserAgent: "engine"}, since(0), []Request{watch, patch}},
		"since":                       {Match{UserAgent: "engine"}, since(2), []Request{patch}},
		"another user":                {Match{User: "x"}, since(0), nil},
		"another namespace":           {Match{UserAgent: "engine", Namespace: "x"}, since(0), nil},
		"agent, not any part of line": {Match{UserAgent: "engine", User: "u"}, since(3), nil},
	} {
		got, err := read(strings.NewReader(log), test.match, test.since)
		if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}
