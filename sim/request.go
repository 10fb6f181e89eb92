package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/yaml"

	"github.com/homeostat-dev/homeostat/operator"
)

var namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace")

// write runs one request: asks who may refuse it, does it, records it, and
// answers with a copy.
func (c Client) write(verb, subresource string, ref operator.Ref, do func(*resource, *unstructured.Unstructured) (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
	s := c.server
	before := s.objects[ref]
	r, err := s.resource(ref)
	if err == nil {
		err = s.refuses(c, verb, subresource, ref)
	}
	var o *unstructured.Unstructured
	if err == nil {
		o, err = do(r, before)
	}
	s.record(c, verb, subresource, ref, before, err)
	if err != nil {
		return nil, err
	}
	return o.DeepCopy(), nil
}

// Create is a POST.
func (c Client) Create(o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	o = o.DeepCopy()
	if prefix := o.GetGenerateName(); o.GetName() == "" && prefix != "" {
		c.server.names[prefix]++
		o.SetName(fmt.Sprintf("%s%05d", prefix, c.server.names[prefix]))
	}
	return c.write("create", "", refOf(o), func(r *resource, before *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		if o.GetResourceVersion() != "" {
			return nil, apierrors.NewInternalError(fmt.Errorf("resourceVersion should not be set on objects to be created"))
		}
		if before != nil {
			return nil, apierrors.NewAlreadyExists(groupResource(refOf(o)), o.GetName())
		}
		if err := r.admit(o); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if r.status {
			delete(o.Object, "status")
		}
		tracked, err := c.track(r, nil, o, "")
		if err != nil {
			return nil, err
		}
		return c.insert(r, tracked)
	})
}

// Update is a PUT to the object or, with "status", to that subresource.
func (c Client) Update(o *unstructured.Unstructured, subresource string) (*unstructured.Unstructured, error) {
	o = o.DeepCopy()
	return c.write("update", subresource, refOf(o), func(r *resource, before *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		if before == nil {
			return nil, apierrors.NewNotFound(groupResource(refOf(o)), o.GetName())
		}
		if uid := o.GetUID(); uid != "" && uid != before.GetUID() {
			return nil, conflict(refOf(o), fmt.Sprintf("Precondition failed: UID in precondition: %v, UID in object meta: %v", uid, before.GetUID()))
		}
		if r.custom != nil && o.GetResourceVersion() == "" {
			return nil, apierrors.NewInvalid(r.gvk.GroupKind(), o.GetName(), mustSpecifyVersion())
		}
		return c.update(r, before, o, subresource)
	})
}

func (c Client) update(r *resource, before, o *unstructured.Unstructured, subresource string) (*unstructured.Unstructured, error) {
	next := r.split(before, o, subresource)
	if err := r.admit(next); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	tracked, err := c.track(r, before, next, subresource)
	if err != nil {
		return nil, err
	}
	return c.replace(r, before, tracked)
}

// Patch is a JSON merge patch of the object or of its status subresource.
func (c Client) Patch(ref operator.Ref, patch map[string]any, subresource string) (*unstructured.Unstructured, error) {
	return c.write("patch", subresource, ref, func(r *resource, before *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		if before == nil {
			return nil, apierrors.NewNotFound(groupResource(ref), ref.Name)
		}
		next := before.DeepCopy()
		merge(next.Object, plain(&unstructured.Unstructured{Object: patch}).Object)
		return c.update(r, before, next, subresource)
	})
}

// Apply is a forced server-side apply to the object or its status subresource.
func (c Client) Apply(o *unstructured.Unstructured, subresource string) (*unstructured.Unstructured, error) {
	o = o.DeepCopy()
	return c.write("apply", subresource, refOf(o), func(r *resource, before *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		return c.apply(r, before, o, subresource)
	})
}

func (c Client) apply(r *resource, before, o *unstructured.Unstructured, subresource string) (*unstructured.Unstructured, error) {
	ref := refOf(o)
	fence := fences{uid: o.GetUID(), version: o.GetResourceVersion()}
	live := before
	if before == nil {
		if subresource != "" {
			return nil, apierrors.NewNotFound(groupResource(ref), ref.Name)
		}
		if fence.uid != "" && !c.server.IgnoreFences {
			return nil, conflict(ref, fmt.Sprintf("uid mismatch: the provided object specified uid %s, and no existing object was found", fence.uid))
		}
		live, _ = emptyObject(r)
	}
	manager := r.applyMain
	if subresource == "status" {
		manager = r.applyStatus
		o = onlyStatus(o)
	} else if r.status {
		delete(o.Object, "status")
	}
	for _, f := range []string{"uid", "resourceVersion"} {
		unstructured.RemoveNestedField(o.Object, "metadata", f)
	}
	merged, err := manager.Apply(live.DeepCopy(), o, c.who, true)
	if err != nil {
		if apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
			return nil, err
		}
		// A real server answers so, with no reason, when a field is not in the schema.
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}}
	}
	next, err := asUnstructured(merged)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if err := r.admit(next); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if before == nil {
		return c.insert(r, next)
	}
	next.SetUID(cmp.Or(fence.uid, before.GetUID()))
	next.SetResourceVersion(cmp.Or(fence.version, before.GetResourceVersion()))
	return c.replace(r, before, r.split(before, next, subresource))
}

func onlyStatus(o *unstructured.Unstructured) *unstructured.Unstructured {
	only := &unstructured.Unstructured{Object: map[string]any{"apiVersion": o.GetAPIVersion(), "kind": o.GetKind()}}
	only.SetNamespace(o.GetNamespace())
	only.SetName(o.GetName())
	moveStatus(o, only)
	return only
}

// Delete removes an object, provided that it has the UID and the version where
// those are not empty. A running pod is given its grace period, unless now is
// true; its kubelet ends it.
func (c Client) Delete(ref operator.Ref, uid types.UID, version string, now bool) (*unstructured.Unstructured, error) {
	return c.write("delete", "", ref, func(r *resource, before *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		switch {
		case before == nil:
			return nil, apierrors.NewNotFound(groupResource(ref), ref.Name)
		case c.server.IgnoreFences:
		case uid != "" && uid != before.GetUID():
			return nil, conflict(ref, fmt.Sprintf("Precondition failed: UID in precondition: %v, UID in object meta: %v", uid, before.GetUID()))
		case version != "" && version != before.GetResourceVersion():
			return nil, conflict(ref, fmt.Sprintf("Precondition failed: ResourceVersion in precondition: %v, ResourceVersion in object meta: %v", version, before.GetResourceVersion()))
		}
		return c.remove(before, now), nil
	})
}

func (c Client) remove(before *unstructured.Unstructured, now bool) *unstructured.Unstructured {
	seconds := gracePeriod(before)
	if now {
		seconds = 0
	}
	marked := before.GetDeletionTimestamp() != nil
	if len(before.GetFinalizers()) == 0 && seconds == 0 && (!isNamespace(before) || marked && now) {
		c.server.commit(watch.Deleted, before)
		return before
	}
	if marked && (grace(before) == seconds || seconds > 0) {
		return before
	}
	next := before.DeepCopy()
	at := metav1.NewTime(c.now.Add(time.Duration(seconds) * time.Second))
	next.SetDeletionTimestamp(&at)
	next.SetDeletionGracePeriodSeconds(&seconds)
	if before.GetGeneration() > 0 && !marked {
		next.SetGeneration(before.GetGeneration() + 1)
	}
	if isNamespace(next) {
		_ = unstructured.SetNestedField(next.Object, "Terminating", "status", "phase")
	}
	return c.server.commit(watch.Modified, next)
}

// gracePeriod is how long an object may live on: pods that run on a node only.
func gracePeriod(o *unstructured.Unstructured) int64 {
	if o.GroupVersionKind() != corev1.SchemeGroupVersion.WithKind("Pod") {
		return 0
	}
	node, _, _ := unstructured.NestedString(o.Object, "spec", "nodeName")
	phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
	if node == "" || phase == "Succeeded" || phase == "Failed" {
		return 0
	}
	seconds, found, _ := unstructured.NestedInt64(o.Object, "spec", "terminationGracePeriodSeconds")
	if !found {
		return corev1.DefaultTerminationGracePeriodSeconds
	}
	return seconds
}

func isNamespace(o *unstructured.Unstructured) bool { return o.GroupVersionKind() == namespaceKind }

// merge is RFC 7396.
func merge(target, patch map[string]any) {
	for k, v := range patch {
		inner, isMap := v.(map[string]any)
		switch existing, _ := target[k].(map[string]any); {
		case v == nil:
			delete(target, k)
		case !isMap:
			target[k] = v
		default:
			if existing == nil {
				existing = map[string]any{}
			}
			merge(existing, inner)
			target[k] = existing
		}
	}
}

// plain is a copy of an object as it comes off the wire: JSON values only.
func plain(o *unstructured.Unstructured) *unstructured.Unstructured {
	data, err := json.Marshal(o.Object)
	if err != nil {
		panic(fmt.Sprintf("sim: %s %s is not JSON: %v", o.GetKind(), o.GetName(), err))
	}
	values := map[string]any{}
	if err := utiljson.Unmarshal(data, &values); err != nil {
		panic(fmt.Sprintf("sim: %s %s is not JSON: %v", o.GetKind(), o.GetName(), err))
	}
	return &unstructured.Unstructured{Object: values}
}

// Parse reads one object from YAML; it panics on what is not an object, because
// scenarios are constants. Without a namespace it is in "default".
func Parse(text string) *unstructured.Unstructured {
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		panic(fmt.Sprintf("sim: %v", err))
	}
	o := plain(&unstructured.Unstructured{Object: values})
	if o.GetNamespace() == "" {
		o.SetNamespace(metav1.NamespaceDefault)
	}
	return o
}
