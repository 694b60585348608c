// The ten children of a Stack in Go's controller-runtime: CreateOrUpdate and SetControllerReference for each, then the
// status, if it changed. Written as its documentation shows. With
// BENCH_SPELL_OUT=1 the wishes hold every default of the server, which is what CreateOrUpdate needs to write nothing.
package main

import (
	"context"
	"os"

	"example.com/bench/process"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// StackReconciler keeps the children and the status of each Stack.
type StackReconciler struct {
	client.Client
	SpellOut bool
}

// Reconcile makes each child what the Stack asks for, then says so in the status.
func (r *StackReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var stack Stack
	if err := r.Get(ctx, req.NamespacedName, &stack); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !stack.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}

	for _, child := range r.children(&stack) {
		_, err := controllerutil.CreateOrUpdate(ctx, r.Client, child.object, func() error {
			child.mutate()
			return ctrl.SetControllerReference(&stack, child.object, r.Scheme())
		})
		if err != nil {
			return ctrl.Result{}, err
		}
	}

	before := stack.DeepCopyObject().(*Stack).Status
	stack.Status.ObservedGeneration = stack.Generation
	apimeta.SetStatusCondition(&stack.Status.Conditions, metav1.Condition{
		Type:               "Ready",
		Status:             metav1.ConditionTrue,
		Reason:             "Succeeded",
		Message:            "Everything is as it should be.",
		ObservedGeneration: stack.Generation,
	})
	if equality.Semantic.DeepEqual(before, stack.Status) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, r.Status().Update(ctx, &stack)
}

func main() {
	process.Run(addToScheme, func(stacks *builder.Builder, c client.Client) error {
		return stacks.
			For(&Stack{}).
			Owns(&corev1.ConfigMap{}).
			Owns(&corev1.Secret{}).
			Owns(&corev1.Service{}).
			Owns(&appsv1.Deployment{}).
			Owns(&appsv1.StatefulSet{}).
			Complete(&StackReconciler{Client: c, SpellOut: os.Getenv("BENCH_SPELL_OUT") == "1"})
	})
}
