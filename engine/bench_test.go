package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/homeostat-dev/homeostat/engine"
	"github.com/homeostat-dev/homeostat/engine/plan"
	"github.com/homeostat-dev/homeostat/operator"
)

var (
	webs       = operator.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Web"}}
	configMaps = operator.KindOf[corev1.ConfigMap]("v1")
	secrets    = operator.KindOf[corev1.Secret]("v1")
	start      = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

type sync = func(operator.Request) (operator.Response, error)

// bench is a core with a small API server of its own, without goroutines.
type bench struct {
	t       *testing.T
	op      *operator.Operator
	core    *engine.Core
	now     time.Time
	objects map[operator.Ref]*unstructured.Unstructured
	version int
	did     []string
	news    []string // what was told about changes to children, in passes of its own
	named   []string // the names of those events
	echo    bool     // events come before the answers
	returns bool     // a deletion answers with the object as it was

	// fail, where it answers other than nil, is the answer; nothing is done.
	fail func(op plan.Op) error
	// lose is what is answered although the operation was carried out.
	lose func(op plan.Op) error
	// during is called before each operation: what others do meanwhile.
	during func(op plan.Op)
}

// newBench has one Web, default/p, observed.
func newBench(t *testing.T, s sync, edit ...func(*operator.Operator)) *bench {
	t.Helper()
	b := &bench{t: t, now: start, objects: map[operator.Ref]*unstructured.Unstructured{}, version: 100}
	b.op = &operator.Operator{Name: "test", Parent: webs, Sync: s, CRD: crd(), Children: []operator.Child{{Kind: configMaps}}}
	for _, e := range edit {
		e(b.op)
	}
	b.store(parent("p"))
	b.restart()
	return b
}

// restart is a new core on the same cluster.
func (b *bench) restart() {
	b.t.Helper()
	core, err := engine.NewCore(b.op, engine.CoreOptions{FirstBackoff: time.Second, MaxBackoff: time.Minute})
	if err != nil {
		b.t.Fatal(err)
	}
	b.core = core
	for _, k := range core.Kinds() {
		var list []*unstructured.Unstructured
		for ref, o := range b.objects {
			if ref.Kind == k.GroupVersionKind {
				list = append(list, o)
			}
		}
		core.Replace(k.GroupVersionKind, list, strconv.Itoa(b.version))
	}
}

func crd() *apiextensionsv1.CustomResourceDefinition {
	type properties = map[string]apiextensionsv1.JSONSchemaProps
	text, integer, yes := apiextensionsv1.JSONSchemaProps{Type: "string"}, apiextensionsv1.JSONSchemaProps{Type: "integer"}, true
	condition := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties{"type": text, "status": text, "reason": text,
		"message": text, "lastTransitionTime": text, "observedGeneration": integer}}
	return &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties{
				"spec": {Type: "object", XPreserveUnknownFields: &yes},
				"status": {Type: "object", Properties: properties{"n": integer, "phase": text,
					"conditions": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &condition}}}},
			}},
		}}},
	}}
}

func parent(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	u.SetGroupVersionKind(webs.GroupVersionKind)
	u.SetNamespace("default")
	u.SetName(name)
	return u
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"k": value}}
}

func wants(children ...operator.Object) sync {
	return func(operator.Request) (operator.Response, error) { return operator.Response{Children: children}, nil }
}

func refOf(kind operator.Kind, name string) operator.Ref {
	return operator.Ref{Kind: kind.GroupVersionKind, Namespace: "default", Name: name}
}

// raw is an object of a kind that nobody of ours made.
func raw(kind operator.Kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(kind.GroupVersionKind)
	u.SetNamespace("default")
	u.SetName(name)
	return u
}

// store puts an object into the server as a new version, and tells nobody.
func (b *bench) store(o *unstructured.Unstructured) *unstructured.Unstructured {
	b.version++
	o = o.DeepCopy()
	o.SetResourceVersion(strconv.Itoa(b.version))
	if o.GetUID() == "" {
		o.SetUID(types.UID(fmt.Sprint("uid-", b.version)))
		o.SetGeneration(1)
	}
	b.objects[plan.RefOf(o)] = o
	return o
}

// others is somebody else's write, and its event.
func (b *bench) others(o *unstructured.Unstructured) {
	o = b.store(o)
	b.core.Observe(o.GroupVersionKind(), o, false)
}

// othersDelete is somebody else's deletion, and its event.
func (b *bench) othersDelete(ref operator.Ref) {
	b.core.Observe(ref.Kind, b.remove(ref), true)
}

func (b *bench) remove(ref operator.Ref) *unstructured.Unstructured {
	b.version++
	o := b.objects[ref].DeepCopy()
	o.SetResourceVersion(strconv.Itoa(b.version))
	delete(b.objects, ref)
	return o
}

// settle runs every pass that is due and gives what was done.
func (b *bench) settle() []string {
	b.t.Helper()
	b.did = nil
	for range 100 {
		pass, _ := b.core.Next(b.now)
		if pass == nil {
			return b.did
		}
		b.run(pass)
	}
	b.t.Fatalf("passes without end: %v", b.did[max(0, len(b.did)-10):])
	return nil
}

func (b *bench) run(pass *engine.Pass) {
	b.t.Helper()
	for range 200 {
		op, more := pass.Step()
		if !more {
			b.core.Finish(pass, b.now)
			return
		}
		b.did = append(b.did, fmt.Sprintf("%s %s %s", op.Verb, op.Kind.Kind, op.Name))
		switch {
		case pass.Tells():
			reason, _, _ := unstructured.NestedString(op.Body, "reason")
			message, _, _ := unstructured.NestedString(op.Body, "message")
			b.did = b.did[:len(b.did)-1]
			b.news = append(b.news, reason+": "+message)
			b.named = append(b.named, op.Name)
			pass.Done(plan.Result{})
			continue
		case op.Verb == plan.Tell:
			reason, _, _ := unstructured.NestedString(op.Body, "reason")
			b.did[len(b.did)-1] = "tell " + reason
		}
		if b.during != nil {
			b.during(op)
		}
		pass.Done(b.do(op))
	}
	b.t.Fatalf("a pass without end: %v", b.did[len(b.did)-10:])
}

// again is when the next pass is due, from now; -1 for not before an event.
func (b *bench) again() time.Duration {
	pass, at := b.core.Next(b.now.Add(-time.Hour * 1000))
	if pass != nil {
		b.t.Fatal("a pass is due already")
	}
	if at.IsZero() {
		return -1
	}
	return at.Sub(b.now)
}

func (b *bench) do(op plan.Op) plan.Result {
	if b.fail != nil {
		if err := b.fail(op); err != nil {
			return plan.Result{Err: err}
		}
	}
	before := b.objects[op.Ref()]
	after, err := b.carryOut(op, before)
	if err != nil {
		return plan.Result{Err: err}
	}
	if b.echo && after != nil && op.Verb != plan.Read && op.Verb != plan.Delete && op.Verb != plan.Tell {
		b.core.Observe(op.Kind.GroupVersionKind, after, false)
	}
	if b.lose != nil {
		if err := b.lose(op); err != nil {
			return plan.Result{Err: err}
		}
	}
	if after != nil {
		after = after.DeepCopy()
	}
	return plan.Result{Object: after}
}

func (b *bench) carryOut(op plan.Op, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	resource := op.Kind.GVR().GroupResource()
	conflict := apierrors.NewConflict(resource, op.Name, fmt.Errorf("another version"))
	uid, version := fences(op)
	switch {
	case op.Verb == plan.Tell && live != nil:
		return nil, apierrors.NewAlreadyExists(resource, op.Name)
	case op.Verb == plan.Create && live != nil && version == "1", op.Verb == plan.Apply && live == nil:
		return nil, conflict
	case op.Verb == plan.Tell || op.Verb == plan.Create:
		live = raw(op.Kind, op.Name)
	case live == nil:
		return nil, apierrors.NewNotFound(resource, op.Name)
	case op.Verb == plan.Read:
		return live, nil
	case uid != "" && uid != string(live.GetUID()) && (op.Verb == plan.Apply || op.Verb == plan.Status):
		return nil, apierrors.NewInvalid(op.Kind.GroupKind(), op.Name, field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), "", "field is immutable")})
	case uid != "" && uid != string(live.GetUID()), version != "" && version != live.GetResourceVersion():
		return nil, conflict
	case op.Verb == plan.Delete && len(live.GetFinalizers()) > 0:
		live = live.DeepCopy()
		now := metav1.NewTime(b.now)
		live.SetDeletionTimestamp(&now)
		return b.store(live), nil
	case op.Verb == plan.Delete:
		gone := b.remove(op.Ref())
		if b.returns {
			return gone, nil
		}
		return nil, nil
	}
	after := live.DeepCopy()
	body := runtime.DeepCopyJSON(op.Body)
	if meta, ok := body["metadata"].(map[string]any); ok {
		delete(meta, "uid")
		delete(meta, "resourceVersion")
	}
	switch op.Verb {
	case plan.Create, plan.Apply:
		own(after, op.Manager, "", body)
	case plan.Status:
		own(after, op.Manager, "status", map[string]any{"status": body["status"]})
	default:
		merge(after.Object, body)
	}
	if same(after, live) && live.GetUID() != "" {
		return live, nil
	}
	return b.store(after), nil
}

// fences are what a server is sent: those of the body, and of a deletion its
// preconditions.
func fences(op plan.Op) (uid, version string) {
	if op.Verb == plan.Delete {
		return string(op.UID), ""
	}
	uid, _, _ = unstructured.NestedString(op.Body, "metadata", "uid")
	version, _, _ = unstructured.NestedString(op.Body, "metadata", "resourceVersion")
	return uid, version
}

func same(a, b *unstructured.Unstructured) bool {
	return fmt.Sprint(a.Object) == fmt.Sprint(b.Object) // fmt sorts keys.
}

// own is a forced apply by the one manager there is; lists are owned whole.
func own(o *unstructured.Unstructured, manager, subresource string, body map[string]any) {
	var entries []any
	all, _, _ := unstructured.NestedSlice(o.Object, "metadata", "managedFields")
	for _, e := range all {
		entry := e.(map[string]any)
		if entry["manager"] == manager && entry["subresource"] == subresource {
			drop(o.Object, entry["fieldsV1"].(map[string]any), body)
			continue
		}
		entries = append(entries, e)
	}
	delete(body, "apiVersion")
	delete(body, "kind")
	merge(o.Object, body)
	entries = append(entries, map[string]any{"manager": manager, "operation": "Apply", "subresource": subresource, "fieldsV1": fieldsOf(body, "")})
	if err := unstructured.SetNestedSlice(o.Object, entries, "metadata", "managedFields"); err != nil {
		panic(err)
	}
}

func fieldsOf(body map[string]any, path string) map[string]any {
	out := map[string]any{}
	for k, v := range body {
		if path == ".metadata" && (k == "name" || k == "namespace") {
			continue
		}
		sub := map[string]any{}
		if m, ok := v.(map[string]any); ok {
			sub = fieldsOf(m, path+"."+k)
		}
		out["f:"+k] = sub
	}
	return out
}

// drop removes what was owned and is not in the body any more.
func drop(from, owned, body map[string]any) {
	for f, sub := range owned {
		k := strings.TrimPrefix(f, "f:")
		value, wanted := body[k]
		inner, isMap := from[k].(map[string]any)
		wantedInner, _ := value.(map[string]any)
		switch node := sub.(map[string]any); {
		case isMap && len(node) > 0:
			drop(inner, node, wantedInner)
		case !wanted:
			delete(from, k)
		}
	}
}

// merge is a JSON merge patch.
func merge(into, patch map[string]any) {
	for k, v := range patch {
		p, isMap := v.(map[string]any)
		o, wasMap := into[k].(map[string]any)
		switch {
		case v == nil:
			delete(into, k)
		case isMap && wasMap:
			merge(o, p)
		default:
			into[k] = v
		}
	}
}

// said is each condition of the saved parent as "status reason".
func (b *bench) said() map[string]string {
	out := map[string]string{}
	list, _, _ := unstructured.NestedSlice(b.objects[refOf(webs, "p")].Object, "status", "conditions")
	for _, e := range list {
		c := e.(map[string]any)
		out[c["type"].(string)] = c["status"].(string) + " " + c["reason"].(string)
	}
	return out
}

func (b *bench) names(kind operator.Kind) []string {
	var out []string
	for _, ref := range slices.Collect(maps.Keys(b.objects)) {
		if ref.Kind == kind.GroupVersionKind {
			out = append(out, ref.Name)
		}
	}
	slices.Sort(out)
	return out
}

// refuseWith makes fail of an error for the objects of a name.
func refuseWith(name string, err error) func(plan.Op) error {
	return func(op plan.Op) error {
		if op.Name == name && op.Verb != plan.Read {
			return err
		}
		return nil
	}
}
