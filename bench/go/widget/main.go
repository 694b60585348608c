// The Widget work in Go's controller-runtime: for each Widget a ConfigMap of its name with data.value, owned by it,
// and the value seen to in the status. Written as its documentation shows.
package main

import (
	"context"

	"example.com/bench/process"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
	process.Run(addToScheme, func(widgets *builder.Builder, c client.Client) error {
		return widgets.
			For(&Widget{}).
			Owns(&corev1.ConfigMap{}).
			Complete(&WidgetReconciler{c})
	})
}
