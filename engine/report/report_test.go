package report_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/homeostat-dev/homeostat/engine/plan"
	"github.com/homeostat-dev/homeostat/engine/report"
	"github.com/homeostat-dev/homeostat/operator"
)

type properties = map[string]apiextensionsv1.JSONSchemaProps

var (
	text    = apiextensionsv1.JSONSchemaProps{Type: "string"}
	integer = apiextensionsv1.JSONSchemaProps{Type: "integer"}
	now     = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
)

const (
	earlier = "2025-01-01T00:00:00Z"
	current = "2026-01-02T03:04:05Z"
)

// conditions is the schema of status.conditions.
func conditions() apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{
		Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties{
			"type": text, "status": text, "reason": text, "message": text, "lastTransitionTime": text, "observedGeneration": integer,
		}},
	}}
}

// web is an operator of a kind whose status has the fields.
func web(status properties) *operator.Operator {
	op := &operator.Operator{Name: "test", Parent: operator.Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Web"}}}
	if status != nil {
		op.CRD = &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties{
					"status": {Type: "object", Properties: status},
				}},
			}}},
		}}
	}
	return op
}

func full() properties {
	return properties{"conditions": conditions(), "observedGeneration": integer, "n": integer, "s": text}
}

func shapeOf(t *testing.T, status properties) *report.Shape {
	t.Helper()
	s, err := report.ShapeOf(web(status))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func parent() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Web",
		"metadata": map[string]any{"name": "p", "namespace": "default", "uid": "u", "resourceVersion": "1", "generation": int64(4)}}}
}

func pod(phase, ready string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": "c", "namespace": "default", "generation": int64(1)},
		"status":   map[string]any{"phase": phase, "conditions": []any{map[string]any{"type": "Ready", "status": ready}}}}}
}

// failedPod is a child that kstatus calls current, because it has ended.
func failedPod() *unstructured.Unstructured {
	pod := stalled()
	pod.Object["status"] = map[string]any{"phase": "Failed"}
	return pod
}

// stalled is a child that kstatus calls failed.
func stalled() *unstructured.Unstructured {
	o := pod("Pending", "False")
	o.Object["status"].(map[string]any)["conditions"] = []any{map[string]any{"type": "Stalled", "status": "True", "reason": "X", "message": "no room"}}
	return o
}

// facts are those of a parent with one child.
func facts(standing *unstructured.Unstructured) report.Facts {
	return report.Facts{
		Parent: parent(), Now: now, Standing: func(operator.Ref) *unstructured.Unstructured { return standing },
		Decision: &operator.Decision{Status: map[string]any{}, Children: []operator.Desired{{Object: pod("", "")}}},
	}
}

// said is each condition as "status reason: message".
func said(status map[string]any) map[string]string {
	out := map[string]string{}
	list, _ := status["conditions"].([]any)
	for _, e := range list {
		c := e.(map[string]any)
		out[c["type"].(string)] = c["status"].(string) + " " + c["reason"].(string) + ": " + c["message"].(string)
	}
	return out
}

func TestConditions(t *testing.T) {
	ref := operator.Ref{Kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Namespace: "default", Name: "c"}
	problem := func(reason string, human bool) plan.Problem {
		return plan.Problem{Ref: ref, Reason: reason, Message: reason + " it is", Human: human}
	}
	mine := func(f *report.Facts, kind, status string) {
		f.Decision.Conditions = append(f.Decision.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: "Mine", Message: "m"})
	}
	fails := func(kind operator.FailureKind) func(*report.Facts) {
		return func(f *report.Facts) {
			f.Decision, f.Failure = nil, &operator.Failure{Kind: kind, Reason: "Why", Message: "because"}
		}
	}
	quiet := "False No: "
	trouble := func(kind, why string) map[string]string {
		out := map[string]string{"Ready": "False " + why, "Reconciling": quiet, "Stalled": quiet}
		out[kind] = "True " + why
		return out
	}
	tests := map[string]struct {
		child *unstructured.Unstructured
		given func(f *report.Facts)
		want  map[string]string
	}{
		"all is well": {child: pod("Running", "True"),
			want: map[string]string{"Ready": "True Ready: everything is as desired", "Reconciling": quiet, "Stalled": quiet}},
		"a child is not there":            {want: trouble("Reconciling", "ChildrenInProgress: Pod default/c is not there yet")},
		"a pod that failed":               {child: failedPod(), want: trouble("Stalled", "ChildFailed: Pod default/c: the pod has failed")},
		"a child that failed":             {child: stalled(), want: trouble("Stalled", "ChildFailed: Pod default/c: no room")},
		"Sync asks to be asked again":     {given: fails(operator.FailureRetry), want: trouble("Reconciling", "Why: because")},
		"Sync is stalled":                 {given: fails(operator.FailureStalled), want: trouble("Stalled", "Why: because")},
		"the spec is invalid":             {given: fails(operator.FailureInvalid), want: trouble("Stalled", "Why: because")},
		"Sync is unstable":                {given: fails(operator.FailureUnstable), want: trouble("Stalled", "Why: because")},
		"a problem that passes by itself": {given: func(f *report.Facts) { f.Problems = []plan.Problem{problem("Busy", false)} }, want: trouble("Reconciling", "Busy: Busy it is")},
		"a problem for a human":           {given: func(f *report.Facts) { f.Problems = []plan.Problem{problem("ForeignOwner", true)} }, want: trouble("Stalled", "ForeignOwner: ForeignOwner it is")},
		"several problems, one for a human": {given: func(f *report.Facts) {
			f.Problems = []plan.Problem{problem("A", false), problem("B", true), problem("C", false), problem("D", false), problem("E", false)}
		}, want: trouble("Stalled", "A: A it is; B it is; C it is; and 2 more")},
		"a child on its way out": {child: pod("Running", "True"), given: func(f *report.Facts) { f.Waiting = []operator.Ref{ref} },
			want: trouble("Reconciling", "Recreating: Pod default/c is on its way out and will be made anew")},
		"a problem is worse than waiting": {given: func(f *report.Facts) {
			f.Problems, f.Waiting = []plan.Problem{problem("A", true)}, []operator.Ref{ref}
		}, want: trouble("Stalled", "A: A it is")},
		"a kept child is not looked at": {given: func(f *report.Facts) { f.Decision.Children[0].Keep = true },
			want: map[string]string{"Ready": "True Ready: everything is as desired", "Reconciling": quiet, "Stalled": quiet}},
		"the author's Ready stands above the children": {given: func(f *report.Facts) { mine(f, "Ready", "True") },
			want: map[string]string{"Ready": "True Mine: m", "Reconciling": quiet, "Stalled": quiet}},
		"the author's unready stands too": {child: pod("Running", "True"), given: func(f *report.Facts) { mine(f, "Ready", "False") },
			want: map[string]string{"Ready": "False Mine: m", "Reconciling": quiet, "Stalled": quiet}},
		"a problem stands above the author's Ready": {given: func(f *report.Facts) {
			mine(f, "Ready", "True")
			f.Problems = []plan.Problem{problem("A", true)}
		}, want: trouble("Stalled", "A: A it is")},
		"a condition of the author's own": {child: pod("Running", "True"), given: func(f *report.Facts) { mine(f, "Backup", "Unknown") },
			want: map[string]string{"Ready": "True Ready: everything is as desired", "Reconciling": quiet, "Stalled": quiet, "Backup": "Unknown Mine: m"}},
		"the author's Stalled stands where nothing else is wrong": {child: pod("Running", "True"), given: func(f *report.Facts) { mine(f, "Stalled", "True") },
			want: map[string]string{"Ready": "True Ready: everything is as desired", "Reconciling": quiet, "Stalled": "True Mine: m"}},
		"a problem stands above the author's Stalled": {given: func(f *report.Facts) {
			mine(f, "Stalled", "True")
			f.Problems = []plan.Problem{problem("A", false)}
		}, want: trouble("Reconciling", "A: A it is")},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := facts(tc.child)
			if tc.given != nil {
				tc.given(&f)
			}
			if d := cmp.Diff(tc.want, said(shapeOf(t, full()).Status(f))); d != "" {
				t.Errorf("conditions differ (-want +got):\n%s", d)
			}
		})
	}
}

func TestAPendingChildIsInProgress(t *testing.T) {
	got := said(shapeOf(t, full()).Status(facts(pod("Pending", "False"))))
	if !strings.HasPrefix(got["Ready"], "False ChildrenInProgress: Pod default/c: ") || !strings.HasPrefix(got["Reconciling"], "True ") {
		t.Errorf("got %v", got)
	}
}

func TestWhatAStatusSays(t *testing.T) {
	tests := map[string]struct {
		schema properties
		given  map[string]any // the decided status
		want   map[string]any // conditions apart
	}{
		"the schema has all of it":          {full(), map[string]any{"n": int64(1), "s": "x"}, map[string]any{"n": int64(1), "s": "x", "observedGeneration": int64(4)}},
		"what the schema lacks is left out": {full(), map[string]any{"n": int64(1), "typo": "x"}, map[string]any{"n": int64(1), "observedGeneration": int64(4)}},
		"a schema without conditions":       {properties{"n": integer}, map[string]any{"n": int64(1)}, map[string]any{"n": int64(1)}},
		"no status and no conditions":       {properties{"n": integer}, nil, nil},
		"nothing of it is in the schema":    {properties{"n": integer}, map[string]any{"typo": "x"}, nil},
		"a kind of somebody else's":         {nil, map[string]any{"n": int64(1)}, map[string]any{"n": int64(1)}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			f := facts(pod("Running", "True"))
			f.Decision.Status = tc.given
			status := shapeOf(t, tc.schema).Status(f)
			if _, has := status["conditions"]; has != (tc.schema["conditions"].Type != "") {
				t.Errorf("conditions are written: %v", has)
			}
			delete(status, "conditions")
			if d := cmp.Diff(tc.want, status); d != "" {
				t.Errorf("status differs (-want +got):\n%s", d)
			}
		})
	}
}

// saved is a parent with a status that our manager applied.
func saved(status map[string]any, ours ...string) *unstructured.Unstructured {
	p := parent()
	p.Object["status"] = status
	items := map[string]any{}
	for _, t := range ours {
		items[`k:{"type":"`+t+`"}`] = map[string]any{".": map[string]any{}, "f:type": map[string]any{}}
	}
	p.Object["metadata"].(map[string]any)["managedFields"] = []any{map[string]any{
		"manager": "homeostat-test", "operation": "Apply", "subresource": "status",
		"fieldsV1": map[string]any{"f:status": map[string]any{"f:n": map[string]any{}, "f:conditions": items}},
	}}
	return p
}

func observed(kind, status string) map[string]any {
	return map[string]any{"type": kind, "status": status, "reason": "R", "message": "m", "lastTransitionTime": earlier, "observedGeneration": int64(3)}
}

func TestTimesOfConditions(t *testing.T) {
	f := facts(pod("Running", "True"))
	f.Parent = saved(map[string]any{"conditions": []any{observed("Ready", "True"), observed("Stalled", "True")}}, "Ready", "Stalled")
	got := map[string]string{}
	list := shapeOf(t, full()).Status(f)["conditions"].([]any)
	for _, e := range list {
		c := e.(map[string]any)
		got[c["type"].(string)] = c["lastTransitionTime"].(string)
		if c["observedGeneration"] != int64(4) {
			t.Errorf("%v speaks of generation %v", c["type"], c["observedGeneration"])
		}
	}
	want := map[string]string{"Ready": earlier, "Stalled": current, "Reconciling": current}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("a time is kept while the status is the same (-want +got):\n%s", d)
	}
}

func TestToldTwiceAStatusIsTheSame(t *testing.T) {
	s := shapeOf(t, full())
	f := facts(pod("Pending", "False"))
	f.Decision.Conditions = []metav1.Condition{{Type: "Z", Status: "True", Reason: "R"}, {Type: "B", Status: "True", Reason: "R"}}
	first := s.Status(f)
	f.Parent = parent()
	f.Parent.Object["status"] = first
	f.Now = f.Now.Add(time.Hour)
	if d := cmp.Diff(first, s.Status(f)); d != "" {
		t.Errorf("an hour later (-first +second):\n%s", d)
	}
}

func TestAFailureKeepsWhatTheAuthorSaidBefore(t *testing.T) {
	f := facts(nil)
	f.Decision, f.Failure = nil, &operator.Failure{Kind: operator.FailureRetry, Reason: "Why", Message: "because"}
	f.Parent = saved(map[string]any{"n": int64(7), "conditions": []any{observed("Ready", "True"), observed("Backup", "True"), observed("Theirs", "True")}}, "Ready", "Backup")
	status := shapeOf(t, full()).Status(f)
	if status["n"] != int64(7) {
		t.Errorf("n is %v, 7 was saved", status["n"])
	}
	want := map[string]string{"Ready": "False Why: because", "Reconciling": "True Why: because", "Stalled": "False No: ", "Backup": "True R: m"}
	if d := cmp.Diff(want, said(status)); d != "" {
		t.Errorf("conditions differ (-want +got):\n%s", d)
	}
	list := status["conditions"].([]any)
	if c := list[0].(map[string]any); c["type"] != "Backup" || c["lastTransitionTime"] != earlier {
		t.Errorf("the author's condition is now %v", c)
	}
}

func TestALongMessageIsCutBeforeTheSchemaRefusesIt(t *testing.T) {
	f := facts(nil)
	f.Decision, f.Failure = nil, &operator.Failure{Kind: operator.FailureRetry, Reason: "Why", Message: strings.Repeat("ä", 40_000)}
	for _, e := range shapeOf(t, full()).Status(f)["conditions"].([]any) {
		c := e.(map[string]any)
		if len(c["message"].(string)) > 32768 {
			t.Errorf("the message of %v has %d bytes; metav1.Condition allows 32768", c["type"], len(c["message"].(string)))
		}
	}
}

func TestAStatusThatStandsIsNotWritten(t *testing.T) {
	s := shapeOf(t, properties{"n": integer})
	f := facts(pod("Running", "True"))
	f.Decision.Status = map[string]any{"n": int64(7)}
	var memo plan.Memo
	op, ok := s.Write(f, &memo)
	if !ok || op.Verb != plan.Status {
		t.Fatalf("there is %v, %v; a status to write was wanted", op, ok)
	}
	f.Parent = saved(map[string]any{"n": int64(7)})
	unstructured.RemoveNestedField(f.Parent.Object["metadata"].(map[string]any)["managedFields"].([]any)[0].(map[string]any), "fieldsV1", "f:status", "f:conditions")
	if _, ok := s.Write(f, &memo); ok {
		t.Error("it is written again")
	}
	f.Decision.Status = nil
	if _, ok := s.Write(f, &memo); ok {
		t.Error("without a status and without conditions there is nothing to write")
	}
}
