package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WebServer is a number of web servers, such as nginx, behind one Service.
//
// +kubebuilder:object:root=true
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]{0,53}[a-z0-9])?$')",message="the name with -service after it must be one that a Service can have: at most 55 letters, digits and -, a letter first"
// +kubebuilder:resource:shortName=ws,categories=homeostat
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.selector
// +kubebuilder:printcolumn:name=Replicas,type=integer,JSONPath=`.spec.replicas`
// +kubebuilder:printcolumn:name=Ready,type=integer,JSONPath=`.status.readyReplicas`
// +kubebuilder:printcolumn:name=Updated,type=integer,JSONPath=`.status.updatedReplicas`
// +kubebuilder:printcolumn:name=Image,type=string,JSONPath=`.spec.image`
// +kubebuilder:printcolumn:name=Status,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name=URL,type=string,priority=1,JSONPath=`.status.url`
type WebServer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +required
	Spec WebServerSpec `json:"spec"`
	// +optional
	Status WebServerStatus `json:"status,omitempty"`
}

// WebServerSpec is what the owner asks for.
type WebServerSpec struct {
	// replicas is the number of web servers.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=500
	Replicas *int32 `json:"replicas,omitempty"`

	// image is the web server to run: one that answers on port 80.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="!self.matches('[^!-~]')",message="an image is a reference such as nginx:1.23.1, without white space"
	Image string `json:"image"`

	// service says how the web servers are reached.
	//
	// +optional
	Service ServiceSpec `json:"service,omitzero"`
}

// ServiceSpec is how the web servers are reached.
//
// +kubebuilder:validation:XValidation:rule="!has(self.nodePort) || self.type != 'ClusterIP'",message="a service of type ClusterIP has no nodePort: leave nodePort out, or choose the type NodePort"
type ServiceSpec struct {
	// type is the type of the Service.
	//
	// +optional
	// +kubebuilder:default=NodePort
	// +kubebuilder:validation:Enum=NodePort;ClusterIP;LoadBalancer
	Type corev1.ServiceType `json:"type,omitempty"`

	// nodePort is the port on every node; Kubernetes allocates one where none is given.
	//
	// +optional
	// +kubebuilder:validation:Minimum=30000
	// +kubebuilder:validation:Maximum=32767
	NodePort int32 `json:"nodePort,omitempty"`
}

// WebServerStatus is what was last seen.
type WebServerStatus struct {
	// replicas is the number of pods that the Deployment has.
	//
	// +optional
	Replicas int32 `json:"replicas"`

	// readyReplicas is the number of pods that are ready.
	//
	// +optional
	ReadyReplicas int32 `json:"readyReplicas"`

	// updatedReplicas is the number of pods that are as the spec says now;
	// fewer than replicas while a change rolls out.
	//
	// +optional
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// image is the image that was last rolled out to the end; during a roll it
	// is the one that came before.
	//
	// +optional
	Image string `json:"image,omitempty"`

	// url is where pods in the cluster reach the web servers.
	//
	// +optional
	URL string `json:"url,omitempty"`

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

// WebServerList is a list of WebServer.
//
// +kubebuilder:object:root=true
type WebServerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WebServer `json:"items"`
}
