// The Widget work in Go's controller-runtime: for each Widget a ConfigMap of its name with data.value, owned by it,
// and the value seen to in the status. Written as its documentation shows, with the client's own rate limit off.
package main

import (
	"context"
	"os"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// WidgetReconciler keeps the ConfigMap and the status of each Widget.
type WidgetReconciler struct {
	client.Client
}

// Reconcile makes the ConfigMap what the Widget asks for, then says so in the status.
func (r *WidgetReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var widget Widget
	if err := r.Get(ctx, req.NamespacedName, &widget); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !widget.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}

	var child corev1.ConfigMap
	err := r.Get(ctx, req.NamespacedName, &child)
	switch {
	case apierrors.IsNotFound(err):
		child = corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: widget.Namespace, Name: widget.Name},
			Data:       map[string]string{"value": widget.Spec.Value},
		}
		if err := ctrl.SetControllerReference(&widget, &child, r.Scheme()); err != nil {
			return ctrl.Result{}, err
		}
		if err := r.Create(ctx, &child); err != nil {
			return ctrl.Result{}, err
		}
	case err != nil:
		return ctrl.Result{}, err
	case child.Data["value"] != widget.Spec.Value || !metav1.IsControlledBy(&child, &widget):
		child.Data = map[string]string{"value": widget.Spec.Value}
		if err := ctrl.SetControllerReference(&widget, &child, r.Scheme()); err != nil {
			return ctrl.Result{}, err
		}
		if err := r.Update(ctx, &child); err != nil {
			return ctrl.Result{}, err
		}
	}

	if widget.Status.ObservedValue == widget.Spec.Value {
		return ctrl.Result{}, nil
	}
	widget.Status.ObservedValue = widget.Spec.Value
	return ctrl.Result{}, r.Status().Update(ctx, &widget)
}

func main() {
	ctrl.SetLogger(zap.New())
	log := ctrl.Log.WithName("widget")

	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(addToScheme(scheme))

	concurrency, err := strconv.Atoi(os.Getenv("BENCH_CONCURRENCY"))
	if err != nil {
		concurrency = 10
	}
	config := ctrl.GetConfigOrDie()
	config.QPS = -1

	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{os.Getenv("BENCH_NAMESPACE"): {}}},
	})
	if err != nil {
		log.Error(err, "the manager cannot be made")
		os.Exit(1)
	}
	err = ctrl.NewControllerManagedBy(mgr).
		For(&Widget{}).
		Owns(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		Complete(&WidgetReconciler{mgr.GetClient()})
	if err != nil {
		log.Error(err, "the controller cannot be made")
		os.Exit(1)
	}
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		log.Error(err, "the manager ended")
		os.Exit(1)
	}
}
