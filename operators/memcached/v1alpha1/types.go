package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Memcached is a number of memcached servers behind one headless Service.
//
// +kubebuilder:object:root=true
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$')",message="the name must be one that a Service can have: at most 63 letters, digits and -, a letter first"
// +kubebuilder:resource:shortName=mc,categories=homeostat
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.size,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name=Size,type=integer,JSONPath=`.spec.size`
// +kubebuilder:printcolumn:name=Ready,type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name=Status,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
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
	// size is the number of memcached servers.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Size int32 `json:"size"`

	// image is the memcached image to run; empty means memcached:1.4.36-alpine.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`
}

// MemcachedStatus is what was last seen.
type MemcachedStatus struct {
	// nodes are the names of the live pods, sorted; [] when there are none.
	//
	// The default keeps a status that has only conditions valid.
	//
	// +optional
	// +kubebuilder:default={}
	// +listType=atomic
	Nodes []string `json:"nodes"`

	// serverList are the addresses, host:port, of the pods that are ready, in
	// the order of their names: what a client's configuration takes.
	//
	// +optional
	// +listType=atomic
	ServerList []string `json:"serverList,omitempty"`

	// replicas is the number of pods that the Deployment has.
	//
	// +optional
	Replicas int32 `json:"replicas"`

	// readyReplicas is the number of pods that are ready.
	//
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// selector selects the pods; the scale subresource hands it to autoscalers.
	//
	// +optional
	Selector string `json:"selector,omitempty"`

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

// MemcachedList is a list of Memcached.
//
// +kubebuilder:object:root=true
type MemcachedList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Memcached `json:"items"`
}
