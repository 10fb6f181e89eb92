// Package v1alpha1 is the API of the example: the smallest Memcached that works.
// It holds types and the definition generated from them, nothing else. Its
// invariant: the document's sample is valid.
//
// +kubebuilder:object:generate=true
// +groupName=cache.example.com
package v1alpha1

import (
	_ "embed"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 object crd paths=. output:crd:dir=.

// CRD is the definition, YAML.
//
//go:embed cache.example.com_memcacheds.yaml
var CRD []byte

// Memcached is a number of memcached servers.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type Memcached struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec MemcachedSpec `json:"spec"`
	// +optional
	Status MemcachedStatus `json:"status,omitempty"`
}

// MemcachedSpec is what the owner asks for.
type MemcachedSpec struct {
	// size is the number of servers.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	Size int32 `json:"size"`
}

// MemcachedStatus is what was last seen.
type MemcachedStatus struct {
	// nodes are the names of the pods, sorted.
	//
	// +optional
	// +kubebuilder:default={}
	Nodes []string `json:"nodes"`
	// conditions are Ready, Reconciling and Stalled.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MemcachedList is a list of Memcached.
//
// +kubebuilder:object:root=true
type MemcachedList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Memcached `json:"items"`
}
