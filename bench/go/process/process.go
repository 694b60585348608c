// Package process is what every program here is besides its reconciler: a manager of controller-runtime for one namespace,
// with the client's own rate limit off, that runs until SIGTERM. What the bench says comes from the environment:
// KUBECONFIG, BENCH_NAMESPACE, BENCH_CONCURRENCY, and BENCH_PORT for /metrics, if they are to be served.
package process

import (
	"os"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Run makes a manager that knows the kinds of addToScheme, lets setUp add a controller, and runs it to its end.
func Run(addToScheme func(*runtime.Scheme) error, setUp func(*builder.Builder, client.Client) error) {
	ctrl.SetLogger(zap.New())
	log := ctrl.Log.WithName("bench")

	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(addToScheme(scheme))

	concurrency, err := strconv.Atoi(os.Getenv("BENCH_CONCURRENCY"))
	if err != nil {
		concurrency = 10
	}
	config := ctrl.GetConfigOrDie()
	config.QPS = -1

	// Without metrics, as controller-runtime has it.
	metrics := "0"
	if port := os.Getenv("BENCH_PORT"); port != "" {
		metrics = "127.0.0.1:" + port
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: metrics},
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{os.Getenv("BENCH_NAMESPACE"): {}}},
	})
	if err != nil {
		log.Error(err, "the manager cannot be made")
		os.Exit(1)
	}
	options := controller.Options{MaxConcurrentReconciles: concurrency}
	if err := setUp(ctrl.NewControllerManagedBy(mgr).WithOptions(options), mgr.GetClient()); err != nil {
		log.Error(err, "the controller cannot be made")
		os.Exit(1)
	}
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		log.Error(err, "the manager ended")
		os.Exit(1)
	}
}
