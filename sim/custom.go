package sim

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// The cost limits of a real API server for CEL rules.
const (
	celCallLimit = 1_000_000
	celBudget    = 10_000_000
)

// custom is what the definition of a custom kind says about its objects.
type custom struct {
	schema *structural.Structural
	values validation.SchemaValidator
	rules  *cel.Validator
}

func customResource(crd *apiextensionsv1.CustomResourceDefinition, v *apiextensionsv1.CustomResourceDefinitionVersion) (*resource, error) {
	r := &resource{
		gvk:        schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind},
		namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
		status:     v.Subresources != nil && v.Subresources.Status != nil,
		generation: true,
	}
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return nil, fmt.Errorf("version %s has no schema", v.Name)
	}
	props := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, props, nil); err != nil {
		return nil, fmt.Errorf("version %s: %w", v.Name, err)
	}
	s, err := structural.NewStructural(props)
	if err != nil {
		return nil, fmt.Errorf("version %s: %w", v.Name, err)
	}
	values, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		return nil, fmt.Errorf("version %s: %w", v.Name, err)
	}
	r.custom = &custom{schema: s, values: values, rules: cel.NewValidator(s, true, celCallLimit)}
	types, err := customTypes(s, r.gvk)
	if err != nil {
		return nil, fmt.Errorf("version %s: %w", v.Name, err)
	}
	return r, r.managers(types, r.custom)
}

// customTypes reads from the schema which lists are sets, maps or atoms, as the
// API server does when it publishes the definition.
func customTypes(s *structural.Structural, gvk schema.GroupVersionKind) (managedfields.TypeConverter, error) {
	models := map[string]*spec.Schema{}
	ref := func(name string) spec.Ref {
		return spec.MustCreateRef("#/components/schemas/" + common.EscapeJsonPointer(name))
	}
	for name, d := range openapi.GetOpenAPIDefinitions(ref) {
		models[name] = &d.Schema
	}
	root := s.ToKubeOpenAPI()
	root.SetProperty("metadata", spec.Schema{SchemaProps: spec.SchemaProps{Ref: ref(metav1.ObjectMeta{}.OpenAPIModelName())}})
	root.SetProperty("apiVersion", *spec.StringProperty())
	root.SetProperty("kind", *spec.StringProperty())
	root.AddExtension("x-kubernetes-group-version-kind", []any{
		map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind},
	})
	models["custom."+gvk.Kind] = root
	return managedfields.NewTypeConverter(models, s.XPreserveUnknownFields)
}

// Default fills in the defaults of the schema.
func (c *custom) Default(o runtime.Object) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(u.Object, c.schema)
	defaulting.Default(u.Object, c.schema)
}

// admit prunes and defaults an object in place.
func (c *custom) admit(u *unstructured.Unstructured) {
	meta := u.Object["metadata"]
	pruning.Prune(u.Object, c.schema, true)
	u.Object["metadata"] = meta
	c.Default(u)
}

// validate checks an object against the schema and its rules; old is nil on creation.
func (c *custom) validate(u, old *unstructured.Unstructured) field.ErrorList {
	var before any
	errs := validation.ValidateCustomResource(nil, u.Object, c.values)
	if old != nil {
		before = old.Object
		errs = validation.ValidateCustomResourceUpdate(nil, u.Object, old.Object, c.values)
	}
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, c.schema, u.Object)...)
	if c.rules == nil || len(errs) > 0 {
		return errs
	}
	broken, _ := c.rules.Validate(context.Background(), nil, c.schema, u.Object, before, celBudget)
	return append(errs, broken...)
}
