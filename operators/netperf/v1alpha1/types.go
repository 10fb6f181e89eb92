package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The phases of a test, as status.status has them.
const (
	// PhaseInitial is a test that has not begun.
	PhaseInitial = ""
	// PhaseServer is a test whose server pod is being made ready.
	PhaseServer = "Created server pod"
	// PhaseTest is a test whose client pod is there.
	PhaseTest = "Started test"
	// PhaseDone is a test with a result.
	PhaseDone = "Done"
	// PhaseError is a test that will have no result.
	PhaseError = "Test finished with error"
)

// Netperf is one measurement of the network between two pods. It runs once; to
// measure again, delete it and make it anew.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=netperfs,categories=homeostat
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name=Status,type=string,JSONPath=`.status.status`
// +kubebuilder:printcolumn:name=Bits/s,type=number,JSONPath=`.status.speedBitsPerSec`
// +kubebuilder:printcolumn:name=Reason,type=string,JSONPath=`.status.reason`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
type Netperf struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec NetperfSpec `json:"spec,omitempty"`
	// +optional
	Status NetperfStatus `json:"status,omitempty"`
}

// NetperfSpec is what to measure. It counts when the pods are made; a later
// change does not touch a test that runs.
type NetperfSpec struct {
	// serverNode is the node that runs netserver; empty leaves it to the scheduler.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ServerNode string `json:"serverNode,omitempty"`

	// clientNode is the node that runs netperf; empty leaves it to the scheduler.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ClientNode string `json:"clientNode,omitempty"`

	// image has netserver as its default command, netperf and sh; empty means
	// tailoredcloud/netperf:v2.7.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`
}

// NetperfStatus is how far the test is, and its result.
type NetperfStatus struct {
	// status is the phase.
	//
	// +optional
	// +kubebuilder:validation:Enum="";"Created server pod";"Started test";Done;"Test finished with error"
	Status string `json:"status,omitempty"`

	// serverPod is the name of the pod that runs netserver.
	//
	// +optional
	ServerPod string `json:"serverPod,omitempty"`

	// clientPod is the name of the pod that runs netperf.
	//
	// +optional
	ClientPod string `json:"clientPod,omitempty"`

	// speedBitsPerSec is the throughput in bits per second.
	//
	// +optional
	SpeedBitsPerSec float64 `json:"speedBitsPerSec,omitempty"`

	// lowConfidence is true when netperf says that the measurements varied more
	// than was asked for.
	//
	// +optional
	LowConfidence bool `json:"lowConfidence,omitempty"`

	// reason is one word for why there is no result.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// message is a sentence for why there is no result.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// startTime is when the server pod was made.
	//
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// testStartTime is when the client pod was made.
	//
	// +optional
	TestStartTime *metav1.Time `json:"testStartTime,omitempty"`

	// missingSince is since when a pod that the test needs has not been seen.
	//
	// +optional
	MissingSince *metav1.Time `json:"missingSince,omitempty"`

	// completionTime is when the test ended, with a result or without.
	//
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

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

// NetperfList is a list of Netperf.
//
// +kubebuilder:object:root=true
type NetperfList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Netperf `json:"items"`
}
