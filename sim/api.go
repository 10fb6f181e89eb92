package sim

import (
	"fmt"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
)

// API is what a server serves: the built-in kinds and the custom ones it was
// told of. It does not change, so many servers share one.
type API struct {
	resources map[schema.GroupVersionKind]*resource
	builtin   managedfields.TypeConverter
}

// resource is one served kind.
type resource struct {
	gvk        schema.GroupVersionKind
	namespaced bool
	// status tells whether there is a status subresource, generation whether
	// the server counts changes of the specification.
	status, generation bool
	// custom is nil for built-in kinds.
	custom *custom
	// applyMain and applyStatus merge what is written to the object and to its
	// status subresource.
	applyMain, applyStatus *managedfields.FieldManager
}

// The built-in kinds that differ from the rule: namespaced, with a status
// subresource and a generation where they describe a workload.
var (
	clusterScoped  = []string{"Namespace", "Node", "PersistentVolume", "ClusterRole", "ClusterRoleBinding", "StorageClass", "PriorityClass", "IngressClass"}
	withStatus     = []string{"Namespace", "Node", "Pod", "Service", "PersistentVolumeClaim", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "PodDisruptionBudget", "HorizontalPodAutoscaler", "Ingress"}
	withGeneration = []string{"Pod", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "PodDisruptionBudget", "Ingress", "NetworkPolicy"}
)

// NewAPI serves the built-in kinds and those of the definitions.
func NewAPI(crds ...*apiextensionsv1.CustomResourceDefinition) (*API, error) {
	a := &API{
		resources: map[schema.GroupVersionKind]*resource{},
		builtin:   applyconfigurations.NewTypeConverter(scheme.Scheme),
	}
	for _, crd := range crds {
		for i := range crd.Spec.Versions {
			if !crd.Spec.Versions[i].Served {
				continue
			}
			r, err := customResource(crd, &crd.Spec.Versions[i])
			if err != nil {
				return nil, fmt.Errorf("definition %s: %w", crd.Name, err)
			}
			a.resources[r.gvk] = r
		}
	}
	object := reflect.TypeFor[metav1.Object]()
	for gvk, t := range scheme.Scheme.AllKnownTypes() {
		if !reflect.PointerTo(t).Implements(object) || a.resources[gvk] != nil {
			continue
		}
		r, err := a.builtinResource(gvk)
		if err != nil {
			return nil, fmt.Errorf("kind %v: %w", gvk, err)
		}
		a.resources[gvk] = r
	}
	return a, nil
}

func (a *API) builtinResource(gvk schema.GroupVersionKind) (*resource, error) {
	r := &resource{
		gvk:        gvk,
		namespaced: !slices.Contains(clusterScoped, gvk.Kind),
		status:     slices.Contains(withStatus, gvk.Kind),
		generation: slices.Contains(withGeneration, gvk.Kind),
	}
	return r, r.managers(a.builtin, noDefaults{})
}

// managers makes the two field managers of a kind.
func (r *resource) managers(types managedfields.TypeConverter, defaults runtime.ObjectDefaulter) (err error) {
	manager := func(subresource string) (*managedfields.FieldManager, error) {
		return managedfields.NewDefaultCRDFieldManager(types, asIs{}, defaults, empty{}, r.gvk, r.gvk.GroupVersion(), subresource, nil)
	}
	if r.applyMain, err = manager(""); err != nil {
		return err
	}
	r.applyStatus, err = manager("status")
	return err
}

// asIs converts nothing: every version of a kind is stored as it came.
type asIs struct{}

func (asIs) Convert(_, _, _ any) error { return nil }
func (asIs) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}
func (asIs) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

type noDefaults struct{}

func (noDefaults) Default(runtime.Object) {}

// empty makes objects with nothing in them.
type empty struct{}

func (empty) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(gvk)
	return u, nil
}
