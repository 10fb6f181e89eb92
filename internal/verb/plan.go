package verb

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/homeostat-dev/homeostat/engine"
	"github.com/homeostat-dev/homeostat/internal/command"
	"github.com/homeostat-dev/homeostat/operator"
)

type planOptions struct {
	operator, output string
	all              bool
}

// Plan is the command that shows what the operators would change in a cluster.
func Plan(program string, ops []*operator.Operator) *cobra.Command {
	o := &planOptions{}
	cluster := connection(true)
	c := &cobra.Command{
		Use:   "plan [NAME]",
		Short: "Show what the operators would change in a cluster, and change nothing",
		Long: `Show every operation that the operators would do in the cluster as it is now, with
the reason and the fields that would change. Nothing is written.

` + command.CodesWithPlan,
		Example: examples(program, `
# Everything in the namespace of the current context.
{} plan

# One object in another namespace, for a program.
{} plan -n shop memcached-sample -o json

# All namespaces; fails a pipeline when there is drift.
{} plan --all-namespaces && echo as desired`),
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			name := ""
			if len(args) == 1 {
				name = args[0]
			}
			return o.run(c, cluster, ops, name)
		},
	}
	cluster.AddFlags(c.Flags())
	c.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "look at all namespaces")
	c.Flags().StringVar(&o.operator, "operator", "", "plan for this operator only (default all of this program)")
	outputFlag(c, &o.output, "text", "text", "json", "yaml")
	var names []string
	for _, op := range ops {
		names = append(names, op.Name)
	}
	complete(c, "operator", names...)
	return c
}

func (o *planOptions) run(c *cobra.Command, cluster *genericclioptions.ConfigFlags, ops []*operator.Operator, name string) error {
	ops, err := operatorsOf(ops, o.operator)
	if err != nil {
		return err
	}
	if name != "" && len(ops) > 1 {
		return command.Usagef("a name needs one operator: give --operator")
	}
	if name != "" && o.all {
		return command.Usagef("a name is in one namespace: leave out --all-namespaces")
	}
	config, err := configOf(cluster)
	if err != nil {
		return err
	}
	selection := engine.Selection{Name: name}
	if !o.all {
		if selection.Namespace, _, err = cluster.ToRawKubeConfigLoader().Namespace(); err != nil {
			return fmt.Errorf("find the namespace: %w; give --namespace", err)
		}
	}
	var all []proposal
	for _, op := range ops {
		found, err := engine.Preview(c.Context(), config, op, selection)
		if err != nil {
			return fmt.Errorf("operator %s: %w", op.Name, err)
		}
		for _, p := range found {
			all = append(all, proposal{operator: op.Name, Proposal: p})
		}
	}
	if err := show(c.OutOrStdout(), o.output, all); err != nil {
		return err
	}
	return verdict(all)
}

// verdict is the exit code of a plan: a parent that cannot be brought to rest
// is a failure, work to do is the code for changes.
func verdict(all []proposal) error {
	t := total(all)
	switch {
	case t.failing == 1:
		return fmt.Errorf("1 object cannot be brought to rest; see above")
	case t.failing > 1:
		return fmt.Errorf("%d objects cannot be brought to rest; see above", t.failing)
	case t.create+t.change+t.delete > 0:
		return &command.Exit{Code: command.Changes}
	}
	return nil
}
