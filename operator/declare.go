package operator

import (
	"fmt"
	"reflect"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Declaration is how a Go author writes an operator; P is the Go type of the
// parent, such as v1alpha1.Memcached.
type Declaration[P any] struct {
	// Name, Doc, Children and Reads are those of Operator.
	Name     string
	Doc      string
	Children []Child
	Reads    []Read

	// CRD is the parent's CustomResourceDefinition, YAML, as controller-gen
	// writes it and go:embed brings it in.
	CRD []byte
	// Parent is set instead of CRD for a kind that is not the operator's own.
	Parent Kind

	// ParentSets is that of Operator: fields of the parent's own spec that
	// Response.Parent may change.
	ParentSets []string

	// Sync decides what ought to be. The parent is a copy of its own, with its
	// saved status; changing it changes nothing.
	Sync func(parent *P, r Request) (Response, error)
}

// Declare makes an Operator of a declaration. It does not fail: what is wrong
// is kept and reported by Validate, which every driver calls first.
func Declare[P any](d Declaration[P]) *Operator {
	o := &Operator{
		Name: d.Name, Doc: d.Doc, Children: d.Children, Reads: d.Reads,
		Parent: d.Parent, Manifest: d.CRD, ParentSets: d.ParentSets,
	}
	if len(d.CRD) > 0 {
		o.CRD, o.Parent, o.err = parseCRD(d.CRD, reflect.TypeFor[P]())
	}
	if d.Sync != nil {
		o.Sync = func(r Request) (Response, error) {
			parent, err := read[P](r.Parent)
			if err != nil {
				return Response{}, Stall("UnreadableParent", "%v", err)
			}
			return d.Sync(parent, r)
		}
	}
	return o
}

// SelectBy lets a selector depend on the parent's spec: it turns a function of
// the Go type into one for Child.Adopt and Read.Select. What it makes panics
// when the stored parent does not fit the type; Child.Selector and Read.Selector
// make an error of that.
func SelectBy[P any](f func(*P) Selector) func(*unstructured.Unstructured) Selector {
	return func(u *unstructured.Unstructured) Selector { return f(into[P](u)) }
}

// parseCRD reads a definition and finds the version that the Go type has: the
// one named like the type's package where there is one, else the stored one.
func parseCRD(data []byte, parent reflect.Type) (*apiextensionsv1.CustomResourceDefinition, Kind, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		return nil, Kind{}, fmt.Errorf("CRD: %w", err)
	}
	if parent.Name() != crd.Spec.Names.Kind {
		return nil, Kind{}, fmt.Errorf("CRD %s is of kind %s, the Go type is %s", crd.Name, crd.Spec.Names.Kind, parent.Name())
	}
	version := ""
	for _, v := range crd.Spec.Versions {
		if v.Storage && version == "" {
			version = v.Name
		}
		if pkg := parent.PkgPath(); len(pkg) > len(v.Name) && pkg[len(pkg)-len(v.Name)-1:] == "/"+v.Name {
			version = v.Name
		}
	}
	return crd, Kind{
		GroupVersionKind: schema.GroupVersionKind{Group: crd.Spec.Group, Version: version, Kind: crd.Spec.Names.Kind},
		Resource:         crd.Spec.Names.Plural,
		ClusterScoped:    crd.Spec.Scope == apiextensionsv1.ClusterScoped,
		goType:           parent,
	}, nil
}

// Schema is the schema of the parent, nil where the operator does not own the kind.
func (o *Operator) Schema() *apiextensionsv1.JSONSchemaProps {
	if o.CRD == nil {
		return nil
	}
	for i := range o.CRD.Spec.Versions {
		if v := &o.CRD.Spec.Versions[i]; v.Name == o.Parent.Version && v.Schema != nil {
			return v.Schema.OpenAPIV3Schema
		}
	}
	return nil
}
