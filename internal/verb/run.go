package verb

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/homeostat-dev/homeostat/engine"
	"github.com/homeostat-dev/homeostat/internal/command"
	"github.com/homeostat-dev/homeostat/internal/manifest"
	"github.com/homeostat-dev/homeostat/operator"
)

// runOptions are the flags of run.
type runOptions struct {
	program        string
	namespace      string
	leaderElect    bool
	leaseNamespace string
	metricsAddress string
	probeAddress   string
	concurrency    int
	verbosity      int
	logFormat      string
	why            bool
}

// Run is the command that runs the operators.
func Run(program string, ops []*operator.Operator) *cobra.Command {
	o := &runOptions{program: program}
	cluster := connection(false)
	c := &cobra.Command{
		Use:   "run",
		Short: "Run the operators until interrupted",
		Long: `Run the operators against a cluster until interrupted. Nothing is installed: the
definitions and, in the cluster, the role must be there (see manifests).

Inside a cluster the pod's service account is used, elsewhere the kubeconfig.`,
		Example: examples(program, `
# Against the cluster of the current context, all namespaces.
{} run

# One namespace only, with metrics and probes, as one of several replicas.
{} run --namespace shop --leader-elect --metrics-bind-address :8080 --health-probe-bind-address :8081`),
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context(), c.ErrOrStderr(), cluster, ops) },
	}
	cluster.AddFlags(c.Flags())
	f := c.Flags()
	f.StringVarP(&o.namespace, "namespace", "n", "", "look after this namespace only (default all)")
	f.BoolVar(&o.leaderElect, "leader-elect", false, "work only while holding the lease, which is released on exit")
	f.StringVar(&o.leaseNamespace, "leader-election-namespace", "", "namespace of the lease (default that of the pod or the kubeconfig context)")
	f.StringVar(&o.metricsAddress, "metrics-bind-address", "0", "where metrics are served, such as :8080; 0 for nowhere")
	f.BoolVar(&o.why, "why", true, "let the command why ask where metrics are served; it is told changed fields, of Secrets excepted")
	f.StringVar(&o.probeAddress, "health-probe-bind-address", "0", "where /healthz and /readyz are served, such as :8081; 0 for nowhere")
	f.IntVar(&o.concurrency, "concurrency", engine.DefaultConcurrency, "how many objects are worked on at once")
	f.IntVarP(&o.verbosity, "v", "v", 0, "log verbosity: 0 writes and troubles, 1 every pass")
	f.StringVar(&o.logFormat, "log-format", "text", "text or json")
	return c
}

func (o *runOptions) run(ctx context.Context, logs io.Writer, cluster *genericclioptions.ConfigFlags, ops []*operator.Operator) error {
	log, err := o.logger(logs)
	if err != nil {
		return err
	}
	if o.concurrency < 1 {
		return command.Usagef("--concurrency is %d, at least 1 is needed", o.concurrency)
	}
	config, err := configOf(cluster)
	if err != nil {
		return err
	}
	if err := o.installed(config, ops); err != nil {
		return err
	}
	if o.leaderElect && o.leaseNamespace == "" {
		o.leaseNamespace, _, err = cluster.ToRawKubeConfigLoader().Namespace()
		if err != nil {
			return fmt.Errorf("find the namespace of the lease: %w; give --leader-election-namespace", err)
		}
	}
	mgr, err := o.manager(config, log, ops)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// manager is a manager with every operator added.
func (o *runOptions) manager(config *rest.Config, log logr.Logger, ops []*operator.Operator) (ctrl.Manager, error) {
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Logger:                        log,
		Metrics:                       metricsserver.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:        o.probeAddress,
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              manifest.Name(ops),
		LeaderElectionNamespace:       o.leaseNamespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return nil, err
	}
	options := []engine.Option{engine.Concurrency(o.concurrency)}
	if o.namespace != "" {
		options = append(options, engine.Namespace(o.namespace))
	}
	if !o.why || o.metricsAddress == "0" {
		options = append(options, engine.Private())
	}
	for _, op := range ops {
		if err := engine.Add(mgr, op, options...); err != nil {
			return nil, err
		}
	}
	return mgr, nil
}

// installed fails when the API server does not serve what an operator looks
// after. A kind of children may come later; the engine says so and goes on.
func (o *runOptions) installed(config *rest.Config, ops []*operator.Operator) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("make a client for %s: %w", config.Host, err)
	}
	for _, op := range ops {
		gvr := op.Parent.GVR()
		list, err := client.ServerResourcesForGroupVersion(gvr.GroupVersion().String())
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("ask %s what it serves: %w", config.Host, err)
		}
		found := false
		if err == nil {
			for _, r := range list.APIResources {
				found = found || r.Name == gvr.Resource
			}
		}
		if !found {
			return fmt.Errorf("%s is not served by %s; install it with:\n  %s manifests --only crds | kubectl apply --server-side -f -",
				gvr.GroupResource().String()+" "+gvr.Version, config.Host, o.program)
		}
	}
	return nil
}

// logger makes the log of the process and gives it to the libraries that log by
// themselves.
func (o *runOptions) logger(w io.Writer) (logr.Logger, error) {
	options := &slog.HandlerOptions{Level: slog.Level(-o.verbosity)}
	var handler slog.Handler
	switch o.logFormat {
	case "text":
		handler = slog.NewTextHandler(w, options)
	case "json":
		handler = slog.NewJSONHandler(w, options)
	default:
		return logr.Logger{}, command.Usagef("--log-format is %q; it can be text or json", o.logFormat)
	}
	log := logr.FromSlogHandler(handler)
	klog.SetLogger(log)
	ctrl.SetLogger(log)
	return log, nil
}
