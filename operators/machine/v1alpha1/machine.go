package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Machine is useless: whatever switch of it goes up goes down again by itself.
// It has either one switch of its own, switchPosition, or a number of Switches.
//
// +kubebuilder:object:root=true
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="the name must be at most 63 characters: it is the value of a label"
// +kubebuilder:resource:categories=homeostat
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.switches,statuspath=.status.switches,selectorpath=.status.selector
// +kubebuilder:printcolumn:name=Switches,type=integer,JSONPath=`.spec.switches`
// +kubebuilder:printcolumn:name=Positions,type=string,JSONPath=`.status.positions`
// +kubebuilder:printcolumn:name=Position,type=string,JSONPath=`.spec.switchPosition`
// +kubebuilder:printcolumn:name=Seen,type=date,JSONPath=`.status.seenAt`
type Machine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec MachineSpec `json:"spec,omitempty"`
	// +optional
	Status MachineStatus `json:"status,omitempty"`
}

// MachineSpec is what the owner asks for.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.switches) && has(self.switchPosition))",message="a machine has either switches or a switchPosition"
type MachineSpec struct {
	// switches is the number of Switches, labelled machine=<name>.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Switches int32 `json:"switches,omitempty"`

	// switchPosition is the position of the one switch on the machine itself, for
	// instance up or down.
	//
	// +optional
	SwitchPosition string `json:"switchPosition,omitempty"`
}

// MachineStatus is what was last seen, and what the machine is about to do.
type MachineStatus struct {
	// positions are the first letters of the positions of the Switches, in the
	// order of their names.
	//
	// +optional
	Positions string `json:"positions,omitempty"`

	// switches is the number of Switches there are.
	//
	// +optional
	Switches int32 `json:"switches"`

	// selector selects the Switches.
	//
	// +optional
	Selector string `json:"selector,omitempty"`

	Sighting `json:",inline"`

	// flip is the switch that the machine is about to move down.
	//
	// +optional
	Flip *Flip `json:"flip,omitempty"`

	// flippedAt is a time after the last flip: the next one waits from here.
	//
	// +optional
	FlippedAt *metav1.MicroTime `json:"flippedAt,omitempty"`

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

// Flip is a move of one switch, as it stood, saved before it is made.
type Flip struct {
	// switch is the name of the Switch; empty for the machine's own.
	//
	// +optional
	Switch string `json:"switch,omitempty"`
	// uid is the UID of the object that has the switch.
	UID types.UID `json:"uid"`
	// generation is the generation in which it was up.
	Generation int64 `json:"generation"`
	// at is the time of the pass that makes the move.
	At metav1.MicroTime `json:"at"`
}

// Sighting is when a switch was seen to be up. A switch that has moved since
// has another generation and is not seen yet.
type Sighting struct {
	// seenAt is when the switch was seen to be up.
	//
	// +optional
	SeenAt *metav1.MicroTime `json:"seenAt,omitempty"`
	// seenGeneration is the generation that was seen.
	//
	// +optional
	SeenGeneration int64 `json:"seenGeneration,omitempty"`
}

// MachineList is a list of Machine.
//
// +kubebuilder:object:root=true
type MachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Machine `json:"items"`
}
