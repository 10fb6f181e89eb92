package sim

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/homeostat-dev/homeostat/engine/plan"
	"github.com/homeostat-dev/homeostat/operator"
)

// Server is an API server in memory. It is used from one goroutine. Stored
// objects never change; a write stores a new one.
type Server struct {
	// Refuse is asked before every write: an error of it is the answer, and
	// nothing is written. It stands for admission, quota and authorization.
	Refuse func(Record) error
	// IgnoreFences makes a defective server, which forgets UID and
	// resourceVersion: by it a test sees that the fences matter.
	IgnoreFences bool

	api      *API
	revision int64
	objects  map[operator.Ref]*unstructured.Unstructured
	alive    map[types.UID]operator.Ref
	born     map[operator.Ref]int
	names    map[string]int
	logs     map[schema.GroupVersionKind][]Event
	records  []Record
}

// Event is one entry of a kind's watch stream: the object as of the event's
// version. A deletion carries the version of the deletion.
type Event struct {
	Type   watch.EventType
	Object *unstructured.Unstructured
}

// Record is one write that was asked for, in the order of asking.
type Record struct {
	// Number counts the records, At is the virtual time.
	Number int
	At     time.Time
	// Who asked, for what, and why.
	Who, Verb, Subresource, Reason string
	Ref                            operator.Ref
	// Op is the operation where a core asked.
	Op *plan.Op
	// Before and After are the object around the write, nil where there was or
	// is none. They are the same where nothing changed.
	Before, After *unstructured.Unstructured
	// Err is the answer. With Lost the asker was not told: it saw a timeout.
	Err  error
	Lost bool
	// Stillborn is true for the creation of an object whose owners were all gone
	// already: garbage collection takes it.
	Stillborn bool
}

// Changed reports whether the write changed something.
func (r Record) Changed() bool { return r.Err == nil && r.Before != r.After }

// Created and Deleted report whether an object came or went by the write.
func (r Record) Created() bool { return r.Changed() && r.Before == nil }

// Deleted reports whether the write removed the object for good or marked it
// for removal, whichever came first.
func (r Record) Deleted() bool {
	return r.Changed() && r.Before != nil && r.Before.GetDeletionTimestamp() == nil &&
		(r.After == nil || r.After.GetDeletionTimestamp() != nil)
}

// NewServer starts with the namespace "default" and nothing else.
func NewServer(api *API) *Server {
	s := &Server{
		api: api, revision: 1,
		objects: map[operator.Ref]*unstructured.Unstructured{},
		alive:   map[types.UID]operator.Ref{},
		born:    map[operator.Ref]int{},
		names:   map[string]int{},
		logs:    map[schema.GroupVersionKind][]Event{},
	}
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	namespace.SetName(metav1.NamespaceDefault)
	if _, err := s.As("cluster", time.Unix(0, 0)).Create(namespace); err != nil {
		panic(fmt.Sprintf("sim: the default namespace: %v", err))
	}
	s.records = nil
	return s
}

// Client is the server as one caller at one moment sees it.
type Client struct {
	server *Server
	who    string
	now    time.Time
	reason string
	op     *plan.Op
}

// As is the server for a caller at a time. The caller's name becomes the field
// manager of its writes.
func (s *Server) As(who string, now time.Time) Client {
	return Client{server: s, who: who, now: now.UTC()}
}

// Because gives the reason that the records of the caller's writes carry.
func (c Client) Because(reason string) Client {
	c.reason = reason
	return c
}

// Revision is the version of the newest write.
func (s *Server) Revision() int64 { return s.revision }

// Records are the writes asked for so far.
func (s *Server) Records() []Record { return s.records }

// Log is the watch stream of a kind from its beginning.
func (s *Server) Log(kind schema.GroupVersionKind) []Event { return s.logs[kind] }

// At is the state of a kind after the first n events of its log, and its version.
func (s *Server) At(kind schema.GroupVersionKind, n int) (objects []*unstructured.Unstructured, version string) {
	state := map[operator.Ref]*unstructured.Unstructured{}
	version = "1"
	for _, e := range s.logs[kind][:n] {
		version = e.Object.GetResourceVersion()
		if e.Type == watch.Deleted {
			delete(state, refOf(e.Object))
			continue
		}
		state[refOf(e.Object)] = e.Object
	}
	for _, o := range state {
		objects = append(objects, o.DeepCopy())
	}
	operator.SortObjects(objects)
	return objects, version
}

// Get is the object, nil where there is none.
func (s *Server) Get(ref operator.Ref) *unstructured.Unstructured {
	if o := s.objects[ref]; o != nil {
		return o.DeepCopy()
	}
	return nil
}

// List is every object of the kind, sorted.
func (s *Server) List(kind schema.GroupVersionKind) []*unstructured.Unstructured {
	out := s.peek(kind)
	for i := range out {
		out[i] = out[i].DeepCopy()
	}
	return out
}

// peek is List without copies, for those who only look.
func (s *Server) peek(kind schema.GroupVersionKind) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for ref, o := range s.objects {
		if ref.Kind == kind {
			out = append(out, o)
		}
	}
	operator.SortObjects(out)
	return out
}

// peekAll is every object of every kind, sorted, without copies.
func (s *Server) peekAll() []*unstructured.Unstructured {
	out := slices.Collect(maps.Values(s.objects))
	operator.SortObjects(out)
	return out
}

func (s *Server) resource(ref operator.Ref) (*resource, error) {
	r := s.api.resources[ref.Kind]
	if r == nil {
		return nil, apierrors.NewGenericServerResponse(404, "", groupResource(ref), ref.Name, "the server could not find the requested resource", 0, true)
	}
	return r, nil
}

// commit stores an object under the next version and tells the watchers.
func (s *Server) commit(kind watch.EventType, o *unstructured.Unstructured) *unstructured.Unstructured {
	s.revision++
	o = o.DeepCopy()
	o.SetResourceVersion(strconv.FormatInt(s.revision, 10))
	ref := refOf(o)
	switch kind {
	case watch.Deleted:
		delete(s.objects, ref)
		delete(s.alive, o.GetUID())
	default:
		s.objects[ref] = o
		s.alive[o.GetUID()] = ref
	}
	s.logs[ref.Kind] = append(s.logs[ref.Kind], Event{Type: kind, Object: o})
	return o
}

// uid is the same in every run for the same object of the same name.
func (s *Server) uid(ref operator.Ref) types.UID {
	s.born[ref]++
	sum := sha256.Sum256(fmt.Appendf(nil, "%v %d", ref, s.born[ref]))
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
}

// record writes down one request and its answer.
func (s *Server) record(c Client, verb, subresource string, ref operator.Ref, before *unstructured.Unstructured, err error) {
	after := s.objects[ref]
	s.records = append(s.records, Record{
		Number: len(s.records) + 1, At: c.now, Who: c.who, Verb: verb, Subresource: subresource,
		Reason: c.reason, Op: c.op, Ref: ref, Before: before, After: after, Err: err,
		Stillborn: before == nil && after != nil && orphan(s, after),
	})
}

// refuses asks whoever may refuse a write.
func (s *Server) refuses(c Client, verb, subresource string, ref operator.Ref) error {
	if s.Refuse == nil {
		return nil
	}
	return s.Refuse(Record{At: c.now, Who: c.who, Verb: verb, Subresource: subresource, Reason: c.reason, Op: c.op, Ref: ref, Before: s.objects[ref]})
}

func refOf(o *unstructured.Unstructured) operator.Ref {
	return operator.Ref{Kind: o.GroupVersionKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
}

func groupResource(ref operator.Ref) schema.GroupResource {
	plural, _ := meta.UnsafeGuessKindToResource(ref.Kind)
	return plural.GroupResource()
}

// address is an IP address that follows from the name of who has it.
func address(network, name string) string {
	sum := sha256.Sum256([]byte(name))
	return fmt.Sprintf("%s.%d.%d", network, sum[0], 1+sum[1]%254)
}

// controllerOf is the controller's reference in an object, nil for none.
func controllerOf(o *unstructured.Unstructured) *metav1.OwnerReference {
	refs := o.GetOwnerReferences()
	if i := slices.IndexFunc(refs, func(r metav1.OwnerReference) bool { return r.Controller != nil && *r.Controller }); i >= 0 {
		return &refs[i]
	}
	return nil
}

// Get is the object, nil where there is none.
func (c Client) Get(ref operator.Ref) *unstructured.Unstructured { return c.server.Get(ref) }

// List is every object of the kind, sorted.
func (c Client) List(kind schema.GroupVersionKind) []*unstructured.Unstructured {
	return c.server.List(kind)
}
