package report

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/homeostat-dev/homeostat/engine/plan"
	"github.com/homeostat-dev/homeostat/operator"
)

// Shape is what the parent's schema lets a status say. A condition that the
// schema would prune would be a write in every pass.
type Shape struct {
	operator               *operator.Operator
	conditions, generation bool
	structural             *schema.Structural
}

// ShapeOf reads the parent's schema. A parent that is not the operator's own
// gets no conditions: its status is somebody else's.
func ShapeOf(op *operator.Operator) (*Shape, error) {
	s := &Shape{operator: op}
	v1 := op.Schema()
	if v1 == nil {
		return s, nil
	}
	status := v1.Properties["status"]
	_, s.conditions = status.Properties["conditions"]
	_, s.generation = status.Properties["observedGeneration"]
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v1, internal, nil); err != nil {
		return nil, fmt.Errorf("schema of %v: %w", op.Parent, err)
	}
	structural, err := schema.NewStructural(internal)
	if err != nil {
		return nil, fmt.Errorf("schema of %v: %w", op.Parent, err)
	}
	s.structural = structural
	return s, nil
}

// pruned is a status without the fields that the schema does not have.
func (s *Shape) pruned(status map[string]any) map[string]any {
	object := map[string]any{"status": runtime.DeepCopyJSON(status)}
	if s.structural != nil {
		pruning.Prune(object, s.structural, true)
	}
	out, _ := object["status"].(map[string]any)
	return out
}

// ownStatus is the observed status as far as it is ours: to repeat more in an
// apply would make us the owner of it.
func (s *Shape) ownStatus(parent *unstructured.Unstructured) map[string]any {
	observed, _, _ := unstructured.NestedMap(parent.Object, "status")
	owned := plan.Owned(parent, s.operator.Manager(), "status")
	for field := range observed {
		if !plan.OwnsPath(owned, "status."+field) {
			delete(observed, field)
		}
	}
	return observed
}

// ours reports whether a condition of the type is in our managedFields entry.
func (s *Shape) ours(parent *unstructured.Unstructured, conditionType string) bool {
	return plan.OwnsItem(plan.Owned(parent, s.operator.Manager(), "status"), "status.conditions", "type", conditionType)
}

// Write is the operation that gives the parent the status the facts call for;
// ok is false when it has it.
func (s *Shape) Write(f Facts, memo *plan.Memo) (op plan.Op, ok bool) {
	status := s.Status(f)
	if status == nil {
		return plan.Op{}, false
	}
	return plan.StatusOf(s.operator, f.Parent, status, memo)
}
