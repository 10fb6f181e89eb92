package sim

import (
	"cmp"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/homeostat-dev/homeostat/engine/plan"
)

const (
	// absentVersion is a resourceVersion that no object has: an apply that
	// carries it can only create.
	absentVersion = "1"
	// defaultManager is recorded for a write that names no field manager.
	defaultManager = "homeostat"
)

// Do carries out one operation of a core, sending exactly what the engine's
// client sends to a real API server, and answers as that would.
func (s *Server) Do(op plan.Op, now time.Time) plan.Result {
	c := s.As(cmp.Or(op.Manager, defaultManager), now).Because(op.Reason)
	c.op = &op
	ref := op.Ref()
	switch op.Verb {
	case plan.Read:
		if o := s.Get(ref); o != nil {
			return plan.Result{Object: o}
		}
		return plan.Result{Err: apierrors.NewNotFound(groupResource(ref), ref.Name)}
	case plan.Create, plan.Apply:
		return result(c.Apply(body(op), ""))
	case plan.Status:
		return result(c.Apply(body(op), "status"))
	case plan.Strip, plan.Adopt, plan.Release, plan.Set:
		return result(c.Patch(ref, body(op).Object, ""))
	case plan.Delete:
		o, err := c.Delete(ref, op.UID, "", false)
		if s.objects[ref] == nil && !slices.Contains(answeredWhenGone, ref.Kind.Kind) {
			o = nil
		}
		return result(o, err)
	case plan.Tell:
		return result(c.Create(body(op)))
	}
	return plan.Result{Err: apierrors.NewMethodNotSupported(groupResource(ref), string(op.Verb))}
}

// answeredWhenGone are the kinds whose deletion answers with the object that is
// no more, where others answer with a mere success.
var answeredWhenGone = []string{"Pod", "Service", "PersistentVolumeClaim", "PersistentVolume"}

func result(o *unstructured.Unstructured, err error) plan.Result {
	return plan.Result{Object: o, Err: err}
}

// body is what an operation sends.
func body(op plan.Op) *unstructured.Unstructured {
	return plain(&unstructured.Unstructured{Object: op.Body})
}
