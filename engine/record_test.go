package engine_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/homeostat-dev/homeostat/engine"
	"github.com/homeostat-dev/homeostat/engine/plan"
	"github.com/homeostat-dev/homeostat/operator"
)

func (b *bench) record() engine.Record {
	b.t.Helper()
	r, ok := b.core.Record(types.NamespacedName{Namespace: "default", Name: "p"})
	if !ok {
		b.t.Fatal("there is no record")
	}
	return r
}

func changed(o *unstructured.Unstructured, value any, path ...string) *unstructured.Unstructured {
	o = o.DeepCopy()
	if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
		panic(err)
	}
	return o
}

func TestTheRecordSaysWhatWasDone(t *testing.T) {
	b := newBench(t, func(r operator.Request) (operator.Response, error) {
		return operator.Response{Children: []operator.Object{configMap("c", "as desired")}, Until: r.Now.Add(time.Hour)}, nil
	})
	expect(t, "the state before the first pass", engine.Due, b.record().State)
	b.settle()
	b.others(changed(b.objects[refOf(configMaps, "c")], "by hand", "data", "k"))
	b.now = b.now.Add(time.Second)
	b.settle()
	repaired := b.record()
	hour := b.now.Add(time.Hour)
	want := &engine.PassRecord{
		Pass: 3, Woken: "ConfigMap default/c changed", Began: b.now, Ended: b.now, Rounds: 1, Settled: true,
		Decided: &engine.DecisionRecord{Children: 1, Until: &hour},
		Operations: []engine.OperationRecord{{
			Verb: "apply", APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "c", Reason: "data.k as desired",
			Changes: []engine.ChangeRecord{{Path: "data.k", From: `"by hand"`, To: `"as desired"`}}, Answer: "ok",
		}},
	}
	compare := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".wrote" }, cmp.Ignore())
	if diff := cmp.Diff(want, repaired.Last, compare); diff != "" {
		t.Errorf("the last pass (-want +got)\n%s", diff)
	}
	if repaired.State != engine.Waiting || repaired.Next == nil || !repaired.Next.Equal(hour) {
		t.Errorf("it is %s until %v", repaired.State, repaired.Next)
	}
	b.others(changed(b.objects[refOf(configMaps, "c")], "theirs", "metadata", "annotations", "a"))
	expect(t, "what woke it", "ConfigMap default/c changed", b.record().Woken)
	b.settle()
	if quiet := b.record(); len(quiet.Last.Operations) > 0 || quiet.Wrote == nil {
		t.Errorf("after a pass without a write: %d operations, the last write is %v", len(quiet.Last.Operations), quiet.Wrote)
	} else if diff := cmp.Diff(want, quiet.Wrote, compare); diff != "" {
		t.Errorf("the last write (-want +got)\n%s", diff)
	}
	if _, ok := b.core.Record(types.NamespacedName{Namespace: "default", Name: "q"}); ok {
		t.Error("there is a record of a parent that is not there")
	}
}

func TestTheRecordSaysWhyNot(t *testing.T) {
	b := newBench(t, wants(configMap("c", "v")))
	b.fail = refuseWith("c", apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "c", errors.New("quota")))
	b.settle()
	r := b.record()
	if r.Last.Settled || !strings.Contains(r.Last.Trouble, "quota") || !strings.Contains(r.Last.Operations[0].Answer, "quota") {
		t.Errorf("settled %v, trouble %q, operations %v", r.Last.Settled, r.Last.Trouble, r.Last.Operations)
	}
	if r.State != engine.Waiting || r.Next == nil || r.Failures != 1 {
		t.Errorf("it is %s until %v after %d failures", r.State, r.Next, r.Failures)
	}
}

func TestTheRecordIsBounded(t *testing.T) {
	many := map[string]string{}
	for i := range 30 {
		many[strings.Repeat("k", i+1)] = strings.Repeat("ö", 5000)
	}
	all := func(value string) (out []operator.Object) {
		for i := range 30 {
			c := configMap(strings.Repeat("c", i+1), value)
			for k, v := range many {
				c.Data[k] = v + value
			}
			out = append(out, c)
		}
		return out
	}
	value := "1"
	b := newBench(t, func(operator.Request) (operator.Response, error) { return operator.Response{Children: all(value)}, nil })
	b.settle()
	value = "2"
	b.others(b.objects[refOf(webs, "p")])
	b.settle()
	r := b.record()
	data, err := json.Marshal(r)
	if err != nil || len(data) > 50_000 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	if r.Last.Omitted == 0 || len(r.Last.Operations) != 8 {
		t.Errorf("%d operations, %d omitted", len(r.Last.Operations), r.Last.Omitted)
	}
	for _, op := range r.Last.Operations {
		for _, c := range op.Changes {
			if len(c.From) > 200 || len(c.To) > 200 {
				t.Fatalf("a value of %d and one of %d bytes", len(c.From), len(c.To))
			}
		}
	}
}

// TestSecretsAreNotShown: neither in the record nor in the operations that plan
// shows, whatever happens to a Secret.
func TestSecretsAreNotShown(t *testing.T) {
	const password = "c3VwZXItZ2VoZWlt" // Base64, as it is in an object.
	wanted := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "s", Annotations: map[string]string{"copy": password}, Labels: map[string]string{"l": "plain"}},
		Data:       map[string][]byte{"password": []byte("super-geheim")},
	}
	b := newBench(t, wants(wanted), func(op *operator.Operator) {
		op.Children = []operator.Child{{Kind: secrets}}
	})
	var shown []string
	b.during = func(op plan.Op) {
		data, err := json.Marshal([]any{op.Shown(), op.Changes, op.Reason})
		if err != nil {
			t.Fatal(err)
		}
		shown = append(shown, string(data))
	}
	b.settle()
	secret := b.objects[refOf(secrets, "s")]
	by := map[string]any{"password": password + "Cg==", "other": password}
	b.others(changed(changed(changed(secret, by, "data"), password+"x", "metadata", "annotations", "copy"), "odd", "metadata", "labels", "l"))
	b.fail = func(op plan.Op) error {
		if op.Verb == plan.Apply {
			return apierrors.NewInternalError(errors.New(password))
		}
		return nil
	}
	for range 6 {
		b.settle()
		b.now = b.now.Add(time.Hour)
		data, err := json.Marshal(b.record())
		if err != nil {
			t.Fatal(err)
		}
		shown = append(shown, string(data))
	}
	b.fail = nil
	b.settle()
	r := b.record()
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(append(shown, string(data)), "\n")
	if strings.Contains(all, password[:8]) {
		t.Errorf("a value of a Secret is shown:\n%s", all)
	}
	if !strings.Contains(string(data), `{"path":"data.password","from":"(hidden)","to":"(hidden)"}`) {
		t.Errorf("the record does not say that data.password was changed:\n%s", data)
	}
	if !strings.Contains(all, "plain") {
		t.Error("a label is hidden")
	}
}
