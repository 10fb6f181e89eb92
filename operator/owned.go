package operator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// ownedFields is an object as the set of fields that its author set. Of a typed
// object, what Go leaves empty is not owned:
//
//   - null, wherever it stands;
//   - an empty struct held by value, such as an unset strategy, resources or
//     targetPort, which Go's omitempty does not leave out (an empty struct behind
//     a pointer, such as emptyDir: {}, was set on purpose);
//   - a status.
//
// An unstructured object is taken as it is, nulls apart: it is the way to say
// an explicit zero.
func ownedFields(o Object) (*unstructured.Unstructured, error) {
	if u, ok := o.(*unstructured.Unstructured); ok {
		u = u.DeepCopy()
		dropNulls(u.Object)
		return u, nil
	}
	values, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("convert %T: %w", o, err)
	}
	dropEmptyStructs(reflect.ValueOf(o).Elem(), values)
	dropNulls(values)
	delete(values, "status")
	return &unstructured.Unstructured{Object: values}, nil
}

// serverFields removes what only a server sets, so that an observed object may
// be changed and listed.
func serverFields(u *unstructured.Unstructured) {
	delete(u.Object, "status")
	meta, _ := u.Object["metadata"].(map[string]any)
	for _, f := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields",
		"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generateName", "ownerReferences"} {
		delete(meta, f)
	}
}

// dropNulls removes null values from maps, at any depth.
func dropNulls(v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if e == nil {
				delete(v, k)
				continue
			}
			dropNulls(e)
		}
	case []any:
		for _, e := range v {
			dropNulls(e)
		}
	}
}

// dropEmptyStructs removes from values, the JSON form of v, the empty objects
// that come from struct fields held by value.
func dropEmptyStructs(v reflect.Value, values any) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			dropEmptyStructs(v.Elem(), values)
		}
	case reflect.Slice, reflect.Array:
		if list, ok := values.([]any); ok && len(list) == v.Len() {
			for i, e := range list {
				dropEmptyStructs(v.Index(i), e)
			}
		}
	case reflect.Map:
		if object, ok := values.(map[string]any); ok {
			for _, k := range v.MapKeys() {
				dropEmptyStructs(v.MapIndex(k), object[fmt.Sprint(k)])
			}
		}
	case reflect.Struct:
		if object, ok := values.(map[string]any); ok {
			dropEmptyFields(v, object)
		}
	}
}

func dropEmptyFields(v reflect.Value, object map[string]any) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		inline := field.Anonymous && name == "" || slices.Contains(strings.Split(options, ","), "inline")
		if inline {
			dropEmptyStructs(v.Field(i), object)
			continue
		}
		value, ok := object[name]
		if !ok {
			continue
		}
		if field.Type.Kind() == reflect.Struct && v.Field(i).IsZero() && slices.Contains(strings.Split(options, ","), "omitempty") {
			delete(object, name)
			continue
		}
		if marshalsItself(field.Type) {
			continue
		}
		dropEmptyStructs(v.Field(i), value)
		if inner, isObject := value.(map[string]any); isObject && len(inner) == 0 && v.Field(i).Kind() == reflect.Struct {
			delete(object, name)
		}
	}
}

var jsonMarshaler = reflect.TypeFor[json.Marshaler]()

// marshalsItself is true for types such as RawExtension, whose JSON says
// nothing about the fields of the Go struct.
func marshalsItself(t reflect.Type) bool {
	return t.Implements(jsonMarshaler) || reflect.PointerTo(t).Implements(jsonMarshaler)
}

func sortDesired(d []Desired) {
	objects := make([]*unstructured.Unstructured, len(d))
	byRef := make(map[Ref]Desired, len(d))
	for i := range d {
		objects[i], byRef[d[i].Ref()] = d[i].Object, d[i]
	}
	SortObjects(objects)
	for i, u := range objects {
		d[i] = byRef[Desired{Object: u}.Ref()]
	}
}

// unmarshalJSON decodes numbers as the API machinery does: int64 where whole.
func unmarshalJSON(data []byte, into *map[string]any) error {
	if bytes.Equal(data, []byte("null")) || !json.Valid(data) || data[0] != '{' {
		return fmt.Errorf("it is %.40s", data)
	}
	return utiljson.Unmarshal(data, into)
}

func isNil(o Object) bool {
	return o == nil || reflect.ValueOf(o).Kind() == reflect.Pointer && reflect.ValueOf(o).IsNil()
}

func elem(o Object) reflect.Type {
	t := reflect.TypeOf(o)
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}
