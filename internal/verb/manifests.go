package verb

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/homeostat-dev/homeostat/internal/command"
	"github.com/homeostat-dev/homeostat/internal/manifest"
	"github.com/homeostat-dev/homeostat/operator"
)

// Manifests is the command that prints what must be in a cluster.
func Manifests(program string, ops []*operator.Operator) *cobra.Command {
	o, only, output := manifest.Options{}, []string{}, ""
	c := &cobra.Command{
		Use:   "manifests",
		Short: "Print what must be in a cluster for the operators to run",
		Long: `Print the definitions, the role and the Deployment of the operators. The role is
derived from what the operators declare: no verb is in it that they do not use.`,
		Example: examples(program, `
# Everything.
{} manifests --image registry.example.com/operator:1.0 | kubectl apply --server-side -f -

# The definitions only, for running the operators on your own machine.
{} manifests --only crds | kubectl apply --server-side -f -

# Confined to one namespace: a Role in place of a ClusterRole.
{} manifests --image registry.example.com/operator:1.0 --watch-namespace shop`),
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			for _, op := range ops {
				if err := op.Validate(); err != nil {
					return err
				}
			}
			known := sets.New(manifest.Parts()...)
			for _, p := range only {
				if !known.Has(manifest.Part(p)) {
					return command.Usagef("--only: part %q is not known; it can be crds, rbac or deployment", p)
				}
				o.Only = append(o.Only, manifest.Part(p))
			}
			objects, err := manifest.Objects(ops, o)
			if err != nil {
				return &command.Usage{Err: err}
			}
			return manifest.Write(c.OutOrStdout(), manifest.Format(output), objects)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Image, "image", "", "image of the Deployment; its entrypoint is this program")
	f.StringVarP(&o.Namespace, "namespace", "n", "", fmt.Sprintf("namespace in which the operators run (default %q)", manifest.Name(ops)))
	f.StringVar(&o.Watch, "watch-namespace", "", "the one namespace they look after (default all)")
	f.Int32Var(&o.Replicas, "replicas", 1, "replicas of the Deployment; one works, the others stand by")
	f.StringSliceVar(&only, "only", nil, "print these parts only: crds, rbac, deployment")
	outputFlag(c, &output, "yaml", "yaml", "json")
	complete(c, "only", "crds", "rbac", "deployment")
	return c
}
