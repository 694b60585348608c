// The ten children of a Stack in Go's controller-runtime: CreateOrUpdate and SetControllerReference for each, then the
// status, if it changed. Written as its documentation shows, with the client's own rate limit off. With
// BENCH_SPELL_OUT=1 the wishes hold every default of the server, which is what CreateOrUpdate needs to write nothing.
package main

import (
	"context"
	"os"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
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
	ctrl.SetLogger(zap.New())
	log := ctrl.Log.WithName("stack")

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
		Metrics: metricsserver.Options{BindAddress: "127.0.0.1:" + os.Getenv("BENCH_PORT")},
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{os.Getenv("BENCH_NAMESPACE"): {}}},
	})
	if err != nil {
		log.Error(err, "the manager cannot be made")
		os.Exit(1)
	}
	err = ctrl.NewControllerManagedBy(mgr).
		For(&Stack{}).
		Owns(&corev1.ConfigMap{}).
		Owns(&corev1.Secret{}).
		Owns(&corev1.Service{}).
		Owns(&appsv1.Deployment{}).
		Owns(&appsv1.StatefulSet{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		Complete(&StackReconciler{Client: mgr.GetClient(), SpellOut: os.Getenv("BENCH_SPELL_OUT") == "1"})
	if err != nil {
		log.Error(err, "the controller cannot be made")
		os.Exit(1)
	}
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		log.Error(err, "the manager ended")
		os.Exit(1)
	}
}
