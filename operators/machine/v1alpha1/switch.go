package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Switch is one switch of the machine that its label machine names.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:categories=homeostat
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name=Position,type=string,JSONPath=`.spec.position`
// +kubebuilder:printcolumn:name=Seen,type=date,JSONPath=`.status.seenAt`
type Switch struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec SwitchSpec `json:"spec,omitempty"`
	// +optional
	Status SwitchStatus `json:"status,omitempty"`
}

// SwitchSpec is where the switch stands.
type SwitchSpec struct {
	// position is down, or anything else, which the machine puts down again.
	//
	// +optional
	Position string `json:"position,omitempty"`
}

// SwitchStatus is what was last seen.
type SwitchStatus struct {
	Sighting `json:",inline"`

	// observedGeneration is the generation of the spec that this status is about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Ready, Reconciling and Stalled.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// SwitchList is a list of Switch.
//
// +kubebuilder:object:root=true
type SwitchList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Switch `json:"items"`
}
