package operator

import (
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// FieldSet is one field of the parent's own spec to write.
type FieldSet struct {
	// Path is one of the declared ParentSets.
	Path string
	// Value is the new value as a JSON value; nil removes the field.
	Value any
}

// Apply writes the field into the object. It fails where something on the path
// is not an object.
func (f FieldSet) Apply(to *unstructured.Unstructured) error {
	fields, err := ParsePath(f.Path)
	if err != nil {
		return err
	}
	if f.Value == nil {
		unstructured.RemoveNestedField(to.Object, fields...)
		return nil
	}
	return unstructured.SetNestedField(to.Object, runtime.DeepCopyJSONValue(f.Value), fields...)
}

// parentSets is what Sync changed of the declared ParentSets.
func (o *Operator) parentSets(observed *unstructured.Unstructured, answer Object) ([]FieldSet, error) {
	if answer == nil {
		return nil, nil
	}
	if isNil(answer) || answer.GetName() != observed.GetName() || answer.GetUID() != observed.GetUID() {
		return nil, Stall("BadParent", "Response.Parent is not the parent that Sync was asked about")
	}
	before, err := sameForm(observed, answer)
	if err != nil {
		return nil, err
	}
	after, err := ownedFields(answer)
	if err != nil {
		return nil, err
	}
	var sets []FieldSet
	for _, path := range slices.Sorted(slices.Values(o.ParentSets)) {
		fields, err := ParsePath(path)
		if err != nil {
			return nil, err
		}
		old, _, _ := unstructured.NestedFieldNoCopy(before.Object, fields...)
		value, _, _ := unstructured.NestedFieldNoCopy(after.Object, fields...)
		if !reflect.DeepEqual(old, value) {
			sets = append(sets, FieldSet{Path: path, Value: value})
		}
	}
	return sets, nil
}

// sameForm passes the observed parent through the Go type of the answer, so
// that what the type itself loses, such as an empty string with omitempty, is
// not taken for a change.
func sameForm(observed *unstructured.Unstructured, answer Object) (*unstructured.Unstructured, error) {
	if _, ok := answer.(*unstructured.Unstructured); ok {
		return ownedFields(observed)
	}
	typed, ok := reflect.New(elem(answer)).Interface().(Object)
	if !ok {
		return nil, Stall("BadParent", "Response.Parent is a %T, not an API object", answer)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(observed.DeepCopy().Object, typed); err != nil {
		return nil, fmt.Errorf("read the parent as %T: %w", answer, err)
	}
	return ownedFields(typed)
}
