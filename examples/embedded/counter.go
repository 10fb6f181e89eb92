package main

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

const (
	// countLabel marks the ConfigMaps whose keys are counted.
	countLabel = "embedded.example.com/count"
	// keysAnnotation is where the number of keys goes.
	keysAnnotation = "embedded.example.com/keys"
)

// Counter is a reconciler such as the project had before: it writes on a
// ConfigMap how many keys it has.
type Counter struct{ client.Client }

// SetupWithManager registers the reconciler.
func (c *Counter) SetupWithManager(mgr ctrl.Manager) error {
	marked := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetLabels()[countLabel] == "true" })
	return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}, builder.WithPredicates(marked)).Named("counter").Complete(c)
}

// Reconcile counts the keys of one ConfigMap.
func (c *Counter) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var observed corev1.ConfigMap
	if err := c.Get(ctx, r.NamespacedName, &observed); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	keys := strconv.Itoa(len(observed.Data) + len(observed.BinaryData))
	if observed.Annotations[keysAnnotation] == keys {
		return ctrl.Result{}, nil
	}
	counted := observed.DeepCopy()
	if counted.Annotations == nil {
		counted.Annotations = map[string]string{}
	}
	counted.Annotations[keysAnnotation] = keys
	if err := c.Patch(ctx, counted, client.MergeFrom(&observed)); err != nil {
		return ctrl.Result{}, fmt.Errorf("write the number of keys on %s: %w", r, err)
	}
	return ctrl.Result{}, nil
}
