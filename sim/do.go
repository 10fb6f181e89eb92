package sim

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/homeostat-dev/homeostat/engine/plan"
)

// absentVersion is a resourceVersion that no object has: an apply that carries
// it can only create.
const absentVersion = "1"

// Do carries out one operation of a core, as the engine's client does against
// a real API server, and answers.
func (s *Server) Do(op plan.Op, now time.Time) plan.Result {
	c := s.As(op.Manager, now).Because(op.Reason)
	c.op = &op
	ref := op.Ref()
	switch op.Verb {
	case plan.Read:
		if o := s.Get(ref); o != nil {
			return plan.Result{Object: o}
		}
		return plan.Result{Err: apierrors.NewNotFound(groupResource(ref), ref.Name)}
	case plan.Create:
		o := body(op)
		o.SetResourceVersion(absentVersion)
		return result(c.Apply(o, ""))
	case plan.Apply:
		return result(c.Apply(fenced(op), ""))
	case plan.Status:
		return result(c.Apply(fenced(op), "status"))
	case plan.Strip, plan.Adopt, plan.Release:
		return result(c.Patch(ref, fenced(op).Object, ""))
	case plan.Delete:
		o, err := c.Delete(ref, op.UID, op.ResourceVersion, false)
		if s.objects[ref] == nil {
			o = nil
		}
		return result(o, err)
	case plan.Tell:
		return result(c.Create(body(op)))
	}
	return plan.Result{Err: apierrors.NewMethodNotSupported(groupResource(ref), string(op.Verb))}
}

func result(o *unstructured.Unstructured, err error) plan.Result {
	return plan.Result{Object: o, Err: err}
}

// body is what an operation sends.
func body(op plan.Op) *unstructured.Unstructured {
	return plain(&unstructured.Unstructured{Object: op.Body})
}

// fenced is what an operation sends, with the fences in it.
func fenced(op plan.Op) *unstructured.Unstructured {
	o := body(op)
	if op.UID != "" {
		o.SetUID(op.UID)
	}
	if op.ResourceVersion != "" {
		o.SetResourceVersion(op.ResourceVersion)
	}
	return o
}
