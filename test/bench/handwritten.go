package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// reconciler does by hand what trioOperator declares, as the documentation of
// controller-runtime recommends.
type reconciler struct {
	client.Client
	scheme *runtime.Scheme
}

// Reconcile makes one Trio's children and saves its status when it changed.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var trio Trio
	if err := r.Get(ctx, request.NamespacedName, &trio); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if trio.Spec.Value == panics {
		panic("poisoned") // The controller recovers it.
	}
	for i := range childrenPerParent {
		want := child(&trio, i)
		have := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: want.Name, Namespace: trio.Namespace}}
		if _, err := controllerutil.CreateOrUpdate(ctx, r.Client, have, func() error {
			have.Labels, have.Data = want.Labels, want.Data
			return controllerutil.SetControllerReference(&trio, have, r.scheme)
		}); err != nil {
			return ctrl.Result{}, err
		}
	}
	before := trio.copy()
	trio.Status.Count = childrenPerParent // Not counted in the cache: it lags, and each number would be a write.
	trio.Status.ObservedGeneration = trio.Generation
	meta.SetStatusCondition(&trio.Status.Conditions, metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Ready", ObservedGeneration: trio.Generation,
		Message: "everything is as desired",
	})
	if equality.Semantic.DeepEqual(before.Status, trio.Status) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.Status().Update(ctx, &trio)
}

// handwritten is a manager with the reconciler; 0 at once is the default.
func handwritten(config *rest.Config, namespace string, atOnce int) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	scheme.AddKnownTypes(group, &Trio{}, &TrioList{})
	metav1.AddToGroupVersion(scheme, group)
	mgr, err := manager.New(config, manager.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	})
	if err != nil {
		return nil, err
	}
	return mgr, ctrl.NewControllerManagedBy(mgr).For(&Trio{}).Owns(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: atOnce}).
		Complete(&reconciler{Client: mgr.GetClient(), scheme: scheme})
}
