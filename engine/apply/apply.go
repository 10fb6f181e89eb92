// Package apply carries out the operations of a plan: it is the one place of an
// engine that writes to an API server. It never decides and never repeats; what
// an answer means is for the pass that asked. Its invariant: one operation is
// at most one change, and what the operation says it is fenced by is sent.
package apply

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/homeostat-dev/homeostat/engine/plan"
)

// Timeout bounds one call. The API server gives up on a request after a minute;
// a call that takes half of that is better asked again.
const Timeout = 30 * time.Second

// maxAnswer bounds what is read of an answer: an object is at most 1.5 MiB in
// etcd, and its JSON with managedFields a few times that.
const maxAnswer = 16 << 20

// Applier carries out operations against one API server.
type Applier struct{ client *rest.RESTClient }

// New makes an applier. The configuration's rate limits apply.
func New(config *rest.Config, client *http.Client) (*Applier, error) {
	limited := *client
	limited.Transport = bounded{cmp.Or[http.RoundTripper](client.Transport, http.DefaultTransport)}
	c, err := rest.UnversionedRESTClientForConfigAndClient(dynamic.ConfigFor(config), &limited)
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", config.Host, err)
	}
	return &Applier{client: c}, nil
}

// Do carries out one operation.
func (a *Applier) Do(ctx context.Context, op plan.Op) plan.Result {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	request, err := a.request(op)
	if err != nil {
		return plan.Result{Err: err}
	}
	result := request.Do(ctx)
	if err := result.Error(); err != nil {
		return plan.Result{Err: err}
	}
	body, err := result.Raw()
	if err != nil {
		return plan.Result{Err: err}
	}
	return decode(op, body)
}

func (a *Applier) request(op plan.Op) (*rest.Request, error) {
	var request *rest.Request
	var body any
	switch op.Verb {
	case plan.Read:
		return a.client.Get().AbsPath(path(op, op.Name)...), nil
	case plan.Tell:
		request, body = a.client.Post().AbsPath(path(op)...).SetHeader("Content-Type", "application/json"), op.Body
	case plan.Create, plan.Apply:
		request, body = a.client.Patch(types.ApplyYAMLPatchType).AbsPath(path(op, op.Name)...).Param("force", "true"), op.Body
	case plan.Status:
		request, body = a.client.Patch(types.ApplyYAMLPatchType).AbsPath(path(op, op.Name, "status")...).Param("force", "true"), op.Body
	case plan.Strip, plan.Adopt, plan.Release, plan.Set:
		request, body = a.client.Patch(types.MergePatchType).AbsPath(path(op, op.Name)...), op.Body
	case plan.Delete:
		background := metav1.DeletePropagationBackground
		request = a.client.Delete().AbsPath(path(op, op.Name)...).SetHeader("Content-Type", "application/json")
		body = metav1.DeleteOptions{
			TypeMeta:          metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
			Preconditions:     &metav1.Preconditions{UID: &op.UID},
			PropagationPolicy: &background,
		}
	default:
		return nil, fmt.Errorf("operation %q is not known", op.Verb)
	}
	data, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode %v: %w", op.Ref(), err)
	}
	if op.Manager != "" {
		request = request.Param("fieldManager", op.Manager)
	}
	return request.Body(data), nil
}

// decode reads the object an operation left. A deletion answers with a Status
// when the object is gone and with the object while it is on its way out.
func decode(op plan.Op, body []byte) plan.Result {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(body); err != nil {
		return plan.Result{Err: fmt.Errorf("decode the answer to %s %v: %w", op.Verb, op.Ref(), err)}
	}
	if object.GroupVersionKind() != op.Kind.GroupVersionKind {
		return plan.Result{}
	}
	return plan.Result{Object: object}
}

func path(op plan.Op, rest ...string) []string {
	gvr := op.Kind.GVR()
	segments := []string{"/apis", gvr.Group, gvr.Version}
	if gvr.Group == "" {
		segments = []string{"/api", gvr.Version}
	}
	if op.Namespace != "" {
		segments = append(segments, "namespaces", op.Namespace)
	}
	return append(append(segments, gvr.Resource), rest...)
}

// bounded reads no more of an answer than maxAnswer.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(request)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, maxAnswer)
	}
	return response, err
}
