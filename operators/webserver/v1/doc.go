// Package v1 is the API of the WebServer operator: the kind WebServer of the
// group my.domain, and its definition as an API server takes it. It holds types
// only and imports nothing of the operator.
//
// The invariant: objects written for the document that describes this API stay
// valid; fields are added, never removed or made required.
//
// +kubebuilder:object:generate=true
// +groupName=my.domain
package v1

import (
	_ "embed"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 object crd paths=. output:crd:dir=.

// CRD is the CustomResourceDefinition, YAML, generated from the types.
//
//go:embed my.domain_webservers.yaml
var CRD []byte

// GroupVersion is the group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "my.domain", Version: "v1"}

// AddToScheme adds the kinds to a scheme, for clients that want one.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &WebServer{}, &WebServerList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
