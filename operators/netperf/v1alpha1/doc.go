// Package v1alpha1 is the API of the Netperf operator: the kind Netperf of the
// group app.example.com, and its definition as an API server takes it. It holds
// types only and imports nothing of the operator.
//
// The invariant: a Netperf without a spec is valid, and the phases are the words
// of the document that describes this API.
//
// +kubebuilder:object:generate=true
// +groupName=app.example.com
package v1alpha1

import (
	_ "embed"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 object crd:allowDangerousTypes=true paths=. output:crd:dir=.

// CRD is the CustomResourceDefinition, YAML, generated from the types.
//
//go:embed app.example.com_netperfs.yaml
var CRD []byte

// GroupVersion is the group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "app.example.com", Version: "v1alpha1"}

// AddToScheme adds the kinds to a scheme, for clients that want one.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Netperf{}, &NetperfList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
