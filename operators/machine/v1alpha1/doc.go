// Package v1alpha1 is the API of the useless machine: the kinds Machine and
// Switch of the group useless.container.training, and their definitions as an
// API server takes them. It holds types only and imports nothing of the operator.
//
// The invariant: both manifests of the document stay valid, the one with a
// switchPosition and the one with switches.
//
// +kubebuilder:object:generate=true
// +groupName=useless.container.training
package v1alpha1

import (
	_ "embed"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 object crd paths=. output:crd:dir=.

// The CustomResourceDefinitions, YAML, generated from the types.
var (
	//go:embed useless.container.training_machines.yaml
	MachineCRD []byte
	//go:embed useless.container.training_switches.yaml
	SwitchCRD []byte
)

// GroupVersion is the group and version of the kinds in this package.
var GroupVersion = schema.GroupVersion{Group: "useless.container.training", Version: "v1alpha1"}

// AddToScheme adds the kinds to a scheme, for clients that want one.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Machine{}, &MachineList{}, &Switch{}, &SwitchList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
