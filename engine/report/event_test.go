package report_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/homeostat-dev/homeostat/engine/plan"
	"github.com/homeostat-dev/homeostat/engine/report"
	"github.com/homeostat-dev/homeostat/operator"
)

func TestEventsAreTheAuthorsAndTheTroubles(t *testing.T) {
	mine := operator.Event{Reason: "Mine", Message: "m", Key: "k"}
	tests := map[string]struct {
		given report.Facts
		want  []operator.Event
	}{
		"nothing to tell": {report.Facts{Decision: &operator.Decision{}}, nil},
		"the author's":    {report.Facts{Decision: &operator.Decision{Events: []operator.Event{mine}}}, []operator.Event{mine}},
		"a failure":       {report.Facts{Failure: &operator.Failure{Reason: "Why", Message: "m"}}, []operator.Event{{Type: "Warning", Reason: "Why", Message: "m"}}},
		"the author's and problems": {
			report.Facts{Decision: &operator.Decision{Events: []operator.Event{mine}}, Problems: []plan.Problem{{Reason: "A", Message: "a"}, {Reason: "B", Message: "b"}}},
			[]operator.Event{mine, {Type: "Warning", Reason: "A", Message: "a"}, {Type: "Warning", Reason: "B", Message: "b"}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, report.Events(tc.given)); d != "" {
				t.Errorf("events differ (-want +got):\n%s", d)
			}
		})
	}
}

func tell(t *testing.T, f report.Facts, e operator.Event) plan.Op {
	t.Helper()
	op, err := report.Tell(web(full()), f, e)
	if err != nil {
		t.Fatal(err)
	}
	return op
}

func TestTheNameOfAnEventIsMadeOfItsParentAndItsKey(t *testing.T) {
	f := facts(nil)
	name := func(e operator.Event) string { return tell(t, f, e).Name }
	same := func(what, a, b string, want bool) {
		t.Helper()
		if (a == b) != want {
			t.Errorf("%s: %s and %s", what, a, b)
		}
	}
	first := name(operator.Event{Reason: "R", Message: "m"})
	same("told again", first, name(operator.Event{Reason: "R", Message: "m"}), true)
	same("another message", first, name(operator.Event{Reason: "R", Message: "n"}), false)
	same("another reason", first, name(operator.Event{Reason: "S", Message: "m"}), false)
	same("one key, another message", name(operator.Event{Reason: "R", Message: "m", Key: "k"}), name(operator.Event{Reason: "R", Message: "n", Key: "k"}), true)
	f.Parent.SetUID("another")
	same("another parent of the name", first, name(operator.Event{Reason: "R", Message: "m"}), false)
	f.Parent.SetName(strings.Repeat("n", 253))
	if got := name(operator.Event{}); len(got) > 253 {
		t.Errorf("a name of %d characters", len(got))
	}
}

func TestWhatAnEventSays(t *testing.T) {
	f := facts(nil)
	got := tell(t, f, operator.Event{Reason: "R", Message: "m"}).Body
	delete(got["metadata"].(map[string]any), "name")
	want := map[string]any{
		"apiVersion": "v1", "kind": "Event", "type": "Normal", "reason": "R", "message": "m", "count": int64(1),
		"metadata":       map[string]any{"namespace": "default"},
		"involvedObject": map[string]any{"apiVersion": "example.com/v1", "kind": "Web", "namespace": "default", "name": "p", "uid": "u", "resourceVersion": "1"},
		"firstTimestamp": current, "lastTimestamp": current,
		"source":             map[string]any{"component": "homeostat-test"},
		"eventTime":          nil,
		"reportingComponent": "", "reportingInstance": "",
	}
	for k := range got { // What is empty in the Go type may or may not be there.
		if _, ok := want[k]; !ok {
			t.Errorf("it says %s: %v", k, got[k])
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("event differs (-want +got):\n%s", d)
	}
	f.Parent.SetNamespace("")
	if op := tell(t, f, operator.Event{}); op.Namespace != "default" {
		t.Errorf("an event about a cluster-scoped parent goes to %q", op.Namespace)
	}
}

func TestAMessageIsCutAtARuneWithinTheBytesAllowed(t *testing.T) {
	tests := map[string]struct {
		given string
		cut   bool
	}{
		"short":                      {"m", false},
		"as long as allowed":         {strings.Repeat("m", 1024), false},
		"one more":                   {strings.Repeat("m", 1025), true},
		"two-byte runes":             {strings.Repeat("ä", 600), true},
		"two-byte runes, one off":    {"m" + strings.Repeat("ä", 600), true},
		"four-byte runes":            {strings.Repeat("𝄞", 300), true},
		"four-byte runes, three off": {"mmm" + strings.Repeat("𝄞", 300), true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			message, _, _ := unstructured.NestedString(tell(t, facts(nil), operator.Event{Message: tc.given}).Body, "message")
			if len(message) > 1024 || !utf8.ValidString(message) {
				t.Errorf("it has %d bytes and is valid: %v", len(message), utf8.ValidString(message))
			}
			body, cut := strings.CutSuffix(message, "…")
			if cut != tc.cut || !strings.HasPrefix(tc.given, body) {
				t.Errorf("cut: %v", cut)
			}
			if tc.cut && len(message) < 1024-4 {
				t.Errorf("it was cut to %d bytes", len(message))
			}
		})
	}
}
