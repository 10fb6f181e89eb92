// Command embedded is an ordinary controller-runtime manager, as kubebuilder
// makes one, with a reconciler of its own, to which one call adds a Homeostat
// operator. The two share the process, the configuration, leader election,
// metrics and probes, and nothing else: the operator has informers of its own,
// and neither ever touches what the other looks after. Its invariant: what
// setup adds is all there is.
package main

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/homeostat-dev/homeostat"
	"github.com/homeostat-dev/homeostat/operators/memcached"
)

func main() {
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil)))
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{Scheme: clientscheme.Scheme})
	if err != nil {
		return err
	}
	if err := setup(mgr); err != nil {
		return err
	}
	return mgr.Start(ctrl.SetupSignalHandler())
}

// setup adds both: the project's own reconciler, and the operator.
func setup(mgr ctrl.Manager, options ...homeostat.Option) error {
	if err := (&Counter{Client: mgr.GetClient()}).SetupWithManager(mgr); err != nil {
		return err
	}
	return homeostat.Add(mgr, memcached.Operator, options...)
}
