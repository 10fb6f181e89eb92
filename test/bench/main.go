// Command bench measures the engine on a real API server against what the same
// writes cost by themselves, in one run: requests, time, quiet, healing and
// memory for parents with three ConfigMaps each. It asserts nothing. It never
// runs against a cluster that it was not given or did not start. Its invariant:
// every figure it prints was measured in that run; requests are counted in the
// API server's own audit log, by the engine's user agent.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/homeostat-dev/homeostat/engine"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var o options
	flags := flag.NewFlagSet("bench", flag.ExitOnError) // Not the default set: controller-runtime has flags in it.
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "cluster to measure; empty starts a local plane named bench")
	flags.StringVar(&o.auditLog, "audit-log", "", "audit log of that cluster's API server, for the requests; empty leaves them out")
	flags.IntVar(&o.parents, "parents", 300, "number of parents")
	flags.IntVar(&o.concurrency, "concurrency", engine.DefaultConcurrency, "parents worked on at once, and writes at once for the floor")
	flags.DurationVar(&o.quiet, "quiet", time.Minute, "how long to count requests at rest")
	flags.StringVar(&o.profile, "cpuprofile", "", "file for a CPU profile of the engine's converging; empty for none")
	flags.IntVar(&o.heals, "heals", 100, "children to delete, one at a time")
	if err := flags.Parse(os.Args[1:]); err != nil {
		return err
	}
	ctrl.SetLogger(logr.Discard())
	down, err := o.plane(ctx)
	if err != nil {
		return err
	}
	defer down()
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return fmt.Errorf("read %s: %w", o.kubeconfig, err)
	}
	config.QPS = -1
	b, err := newBench(ctx, config, o)
	if err != nil {
		return err
	}
	defer b.clean()
	return b.run(ctx)
}

// startEngine runs the engine in this process under a user agent of its own and
// returns a function that stops it and waits.
func startEngine(config *rest.Config, agent, namespace string, concurrency int) (stop func(), err error) {
	config = rest.CopyConfig(config)
	config.UserAgent = agent
	mgr, err := manager.New(config, manager.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return nil, fmt.Errorf("make a manager: %w", err)
	}
	if err := engine.Add(mgr, trioOperator, engine.Namespace(namespace), engine.Concurrency(concurrency)); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctrl.LoggerInto(context.Background(), logr.Discard()))
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			fmt.Fprintln(os.Stderr, "bench: the engine ended with:", err)
		}
	}, nil
}

func client(config *rest.Config, agent string) (dynamic.Interface, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = agent
	return dynamic.NewForConfig(config)
}
