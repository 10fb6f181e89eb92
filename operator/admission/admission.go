// Package admission does to a custom resource in memory what an API server does
// when it is written: defaults, pruning, validation by schema and by CEL rules.
// Fixtures, render and the simulator use it, so that none of them accepts an
// object that a cluster would refuse. It never talks to a server, and it knows
// one definition at a time.
//
// Its invariant: an object that came out of [Schema.Create] without error comes
// out unchanged when it goes in again.
package admission

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// Schema is one version of a definition, compiled. It holds no state and may be
// used by many goroutines.
type Schema struct {
	structural *schema.Structural
	validator  validation.SchemaValidator
	cel        *cel.Validator
}

// Compile reads the schema of one version of a definition. It fails when the
// version is not there, or has a schema that no API server would take.
func Compile(crd *apiextensionsv1.CustomResourceDefinition, version string) (*Schema, error) {
	for _, v := range crd.Spec.Versions {
		if v.Name != version {
			continue
		}
		if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			return nil, fmt.Errorf("version %s of %s has no schema", version, crd.Name)
		}
		s, err := compile(v.Schema.OpenAPIV3Schema)
		if err != nil {
			return nil, fmt.Errorf("schema of version %s of %s: %w", version, crd.Name, err)
		}
		return s, nil
	}
	return nil, fmt.Errorf("%s has no version %s", crd.Name, version)
}

func compile(v1 *apiextensionsv1.JSONSchemaProps) (*Schema, error) {
	props := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v1, props, nil); err != nil {
		return nil, err
	}
	structural, err := schema.NewStructural(props)
	if err != nil {
		return nil, err
	}
	if errs := schema.ValidateStructural(field.NewPath("openAPIV3Schema"), structural); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	validator, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		return nil, err
	}
	return &Schema{
		structural: structural,
		validator:  validator,
		cel:        cel.NewValidator(structural, true, celconfig.PerCallLimit),
	}, nil
}

// Create prunes and defaults the object in place and reports everything that an
// API server would refuse when it is created.
func (s *Schema) Create(object *unstructured.Unstructured) error {
	return s.admit(object, nil)
}

// Update is Create for an object that replaces old: transition rules, those
// that speak of oldSelf, are checked too.
func (s *Schema) Update(object, old *unstructured.Unstructured) error {
	return s.admit(object, old)
}

func (s *Schema) admit(object, old *unstructured.Unstructured) error {
	s.Prune(object)
	defaulting.PruneNonNullableNullsWithoutDefaults(object.Object, s.structural)
	defaulting.Default(object.Object, s.structural)
	var before any
	if old != nil {
		before = old.Object
	}
	errs := validation.ValidateCustomResource(nil, object.Object, s.validator)
	celErrs, _ := s.cel.Validate(context.Background(), nil, s.structural, object.Object, before, celconfig.RuntimeCELCostBudget)
	return append(errs, celErrs...).ToAggregate()
}

// Prune removes in place what the schema does not know, as an API server does
// without a word, and returns the paths of what it removed.
func (s *Schema) Prune(object *unstructured.Unstructured) []string {
	return pruning.PruneWithOptions(object.Object, s.structural, true,
		schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
}
