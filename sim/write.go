package sim

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/homeostat-dev/homeostat/operator"
)

// insert is the way of every object into the store.
func (c Client) insert(r *resource, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	s := c.server
	if err := s.namespaceTakes(r, o); err != nil {
		return nil, err
	}
	ref := refOf(o)
	if o.GetName() == "" {
		return nil, invalid(ref, field.ErrorList{field.Required(field.NewPath("metadata", "name"), "name or generateName is required")})
	}
	for _, f := range []string{"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation", "resourceVersion"} {
		unstructured.RemoveNestedField(o.Object, "metadata", f)
	}
	if r.status {
		delete(o.Object, "status")
	}
	o.SetCreationTimestamp(metav1.NewTime(c.now))
	if r.generation {
		o.SetGeneration(1)
	}
	initialStatus(o)
	c.retime(nil, o)
	if err := validate(r, o, nil); err != nil {
		return nil, err
	}
	o.SetUID(s.uid(ref))
	return s.commit(watch.Added, o), nil
}

// initialStatus is what a server itself writes into a new object.
func initialStatus(o *unstructured.Unstructured) {
	switch gvk := o.GroupVersionKind(); {
	case gvk.Group != "":
	case gvk.Kind == "Pod":
		o.Object["status"] = map[string]any{"phase": "Pending", "qosClass": "BestEffort"}
	case gvk.Kind == "Namespace":
		o.Object["status"] = map[string]any{"phase": "Active"}
	}
}

// namespaceTakes says whether the object's namespace is there and accepts new objects.
func (s *Server) namespaceTakes(r *resource, o *unstructured.Unstructured) error {
	ref := refOf(o)
	if !r.namespaced {
		return nil
	}
	namespace := s.objects[namespaceRef(ref.Namespace)]
	if namespace == nil {
		return apierrors.NewNotFound(groupResource(namespaceRef("")), ref.Namespace)
	}
	if namespace.GetDeletionTimestamp() == nil {
		return nil
	}
	err := apierrors.NewForbidden(groupResource(ref), ref.Name, fmt.Errorf("unable to create new content in namespace %s because it is being terminated", ref.Namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: corev1NamespaceTerminating, Message: fmt.Sprintf("namespace %s is being terminated", ref.Namespace), Field: "metadata.namespace",
	})
	return err
}

// replace is the way of every change into the store: next is what the caller
// wants the object old to become.
func (c Client) replace(r *resource, old, next *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	s := c.server
	ref := refOf(old)
	if v := next.GetResourceVersion(); v != "" && v != old.GetResourceVersion() && !s.IgnoreFences {
		return nil, conflict(ref, "the object has been modified; please apply your changes to the latest version and try again")
	}
	if uid := next.GetUID(); uid != "" && uid != old.GetUID() && !s.IgnoreFences {
		return nil, invalid(ref, field.ErrorList{field.Invalid(field.NewPath("metadata", "uid"), string(uid), "field is immutable")})
	}
	keepServerFields(old, next)
	if r.generation && r.specDiffers(old, next) {
		next.SetGeneration(old.GetGeneration() + 1)
	}
	c.retime(old, next)
	if err := validate(r, next, old); err != nil {
		return nil, err
	}
	if reflect.DeepEqual(old.Object, next.Object) {
		return old, nil
	}
	if next.GetDeletionTimestamp() != nil && len(next.GetFinalizers()) == 0 && grace(next) == 0 {
		s.commit(watch.Deleted, next)
		return next, nil
	}
	return s.commit(watch.Modified, next), nil
}

// split lets a write to one endpoint leave alone what belongs to the other.
func (r *resource) split(old, next *unstructured.Unstructured, subresource string) *unstructured.Unstructured {
	if !r.status {
		return next
	}
	if subresource == "status" {
		whole := old.DeepCopy()
		whole.SetManagedFields(next.GetManagedFields())
		whole.SetResourceVersion(next.GetResourceVersion())
		whole.SetUID(next.GetUID())
		moveStatus(next, whole)
		return whole
	}
	moveStatus(old.DeepCopy(), next)
	return next
}

func moveStatus(from, to *unstructured.Unstructured) {
	delete(to.Object, "status")
	if status, ok := from.Object["status"]; ok {
		to.Object["status"] = status
	}
}

// admit gives an object the form in which it is stored.
func (r *resource) admit(o *unstructured.Unstructured) error {
	if r.custom != nil {
		r.custom.admit(o)
		return nil
	}
	return admitBuiltin(o)
}

// keepServerFields copies what no client can change.
func keepServerFields(old, next *unstructured.Unstructured) {
	from, _ := old.Object["metadata"].(map[string]any)
	to, _ := next.Object["metadata"].(map[string]any)
	for _, f := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"} {
		delete(to, f)
		if v, ok := from[f]; ok {
			to[f] = v
		}
	}
}

// specDiffers reports a change that counts as a new generation.
func (r *resource) specDiffers(old, next *unstructured.Unstructured) bool {
	keys := slices.Collect(maps.Keys(next.Object))
	keys = slices.AppendSeq(keys, maps.Keys(old.Object))
	for _, k := range keys {
		if k == "metadata" || k == "status" && r.status {
			continue
		}
		if !reflect.DeepEqual(old.Object[k], next.Object[k]) {
			return true
		}
	}
	return r.gvk.Kind == "Deployment" && r.custom == nil && !maps.Equal(old.GetAnnotations(), next.GetAnnotations())
}

// retime puts virtual times into the ownership of fields: the old one where an
// entry says what it said before, else now. It also sorts the entries.
func (c Client) retime(old, next *unstructured.Unstructured) {
	entries := next.GetManagedFields()
	if len(entries) == 0 {
		unstructured.RemoveNestedField(next.Object, "metadata", "managedFields")
		return
	}
	var before []metav1.ManagedFieldsEntry
	if old != nil {
		before = old.GetManagedFields()
	}
	now := metav1.NewTime(c.now.UTC().Truncate(1e9))
	for i := range entries {
		e := &entries[i]
		e.Time = &now
		for _, b := range before {
			if b.Manager == e.Manager && b.Operation == e.Operation && b.Subresource == e.Subresource && b.APIVersion == e.APIVersion && reflect.DeepEqual(b.FieldsV1, e.FieldsV1) {
				e.Time = b.Time
			}
		}
	}
	slices.SortStableFunc(entries, compareEntries)
	next.SetManagedFields(entries)
}

// validate checks what can be wrong with an object; old is nil on creation.
func validate(r *resource, o, old *unstructured.Unstructured) error {
	errs := validateMeta(o, old)
	var more field.ErrorList
	var err error
	if r.custom != nil {
		more = r.custom.validate(o, old)
	} else if more, err = validateBuiltin(o, old); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if errs = append(errs, more...); len(errs) > 0 {
		return invalid(refOf(o), errs)
	}
	return nil
}

func validateMeta(o, old *unstructured.Unstructured) (errs field.ErrorList) {
	path := field.NewPath("metadata")
	controllers := 0
	for i, ref := range o.GetOwnerReferences() {
		if ref.UID == "" || ref.Name == "" || ref.Kind == "" || ref.APIVersion == "" {
			errs = append(errs, field.Required(path.Child("ownerReferences").Index(i), "apiVersion, kind, name and uid must not be empty"))
		}
		if ref.Controller != nil && *ref.Controller {
			controllers++
		}
	}
	if controllers > 1 {
		errs = append(errs, field.Invalid(path.Child("ownerReferences"), o.GetOwnerReferences(), "Only one reference can have Controller set to true"))
	}
	if old == nil || o.GetDeletionTimestamp() == nil {
		return errs
	}
	for _, f := range o.GetFinalizers() {
		if !slices.Contains(old.GetFinalizers(), f) {
			errs = append(errs, field.Forbidden(path.Child("finalizers"), fmt.Sprintf("no new finalizers can be added if the object is being deleted, found new finalizers %q", f)))
		}
	}
	return errs
}

// track works out who owns which fields after an update, as opposed to an apply.
func (c Client) track(r *resource, old, next *unstructured.Unstructured, subresource string) (*unstructured.Unstructured, error) {
	manager := r.applyMain
	if subresource == "status" {
		manager = r.applyStatus
	}
	if old == nil {
		old, _ = emptyObject(r)
	}
	tracked, err := manager.Update(old, next, c.who)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return asUnstructured(tracked)
}

func emptyObject(r *resource) (*unstructured.Unstructured, error) {
	o, err := empty{}.New(r.gvk)
	if err != nil {
		return nil, err
	}
	return asUnstructured(o)
}

func asUnstructured(o runtime.Object) (*unstructured.Unstructured, error) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("the merge made a %T", o)
	}
	return u, nil
}

const corev1NamespaceTerminating = metav1.CauseType("NamespaceTerminating")

func namespaceRef(name string) operator.Ref {
	return operator.Ref{Kind: namespaceKind, Name: name}
}

func conflict(ref operator.Ref, message string) error {
	return apierrors.NewConflict(groupResource(ref), ref.Name, fmt.Errorf("%s", message))
}

func invalid(ref operator.Ref, errs field.ErrorList) error {
	return apierrors.NewInvalid(ref.Kind.GroupKind(), ref.Name, errs)
}

func grace(o *unstructured.Unstructured) int64 {
	if g := o.GetDeletionGracePeriodSeconds(); g != nil {
		return *g
	}
	return 0
}

func mustSpecifyVersion() field.ErrorList {
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update")}
}

func compareEntries(a, b metav1.ManagedFieldsEntry) int {
	return cmp.Or(cmp.Compare(a.Operation, b.Operation), a.Time.Compare(b.Time.Time),
		cmp.Compare(a.Manager, b.Manager), cmp.Compare(a.Subresource, b.Subresource))
}

// fences are what a request says about the object it means.
type fences struct {
	uid     types.UID
	version string
}
