package operator

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind names one kind of object and where the API server serves it. It is made
// with [KindOf] for Go types, or written out for kinds without one.
type Kind struct {
	schema.GroupVersionKind

	// Resource is the plural under which the kind is served, "deployments".
	// Empty means the usual English plural of the kind in lower case.
	Resource string

	// ClusterScoped is true for kinds that have no namespace.
	ClusterScoped bool

	goType reflect.Type
}

// KindOf is the kind of the Go type T in an apiVersion such as "v1" or
// "apps/v1"; the kind's name is the type's name, as everywhere in Kubernetes.
// It panics when apiVersion cannot be parsed: a declaration is a constant.
func KindOf[T any](apiVersion string) Kind {
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || gv.Version == "" {
		panic(fmt.Sprintf("operator.KindOf: %q is not an apiVersion such as v1 or apps/v1", apiVersion))
	}
	t := reflect.TypeFor[T]()
	return Kind{GroupVersionKind: gv.WithKind(t.Name()), goType: t}
}

// GVR is where the kind is served.
func (k Kind) GVR() schema.GroupVersionResource {
	if k.Resource != "" {
		return k.GroupVersion().WithResource(k.Resource)
	}
	return k.GroupVersion().WithResource(plural(strings.ToLower(k.Kind)))
}

// plural is how Kubernetes names resources: networkpolicies, gateways,
// ingresses, switches; endpoints are one already.
func plural(kind string) string {
	for _, hiss := range []string{"s", "x", "z", "ch", "sh"} {
		if strings.HasSuffix(kind, hiss) && kind != "endpoints" {
			return kind + "es"
		}
	}
	stem, isY := strings.CutSuffix(kind, "y")
	switch {
	case kind == "endpoints":
		return kind
	case isY && stem != "" && !strings.ContainsAny(stem[len(stem)-1:], "aeiou"):
		return stem + "ies"
	}
	return kind + "s"
}

// String is the kind as people write it: "Deployment.apps", "Pod".
func (k Kind) String() string {
	if k.Group == "" {
		return k.Kind
	}
	return k.Kind + "." + k.Group
}

// Ref names one object. Namespace is empty for cluster-scoped kinds.
type Ref struct {
	Kind            schema.GroupVersionKind
	Namespace, Name string
}

// String is the object as people write it: "Deployment default/web".
func (r Ref) String() string {
	return strings.TrimSpace(r.Kind.Kind + " " + strings.TrimPrefix(r.Namespace+"/"+r.Name, "/"))
}
