// Package verb has the subcommands that every operator's main gets: run,
// manifests, render, plan, why, tree, operators. Each constructor makes a fresh command for
// the operators it is given; nothing is kept between runs. Its invariant: only
// run changes a cluster.
package verb

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/homeostat-dev/homeostat/internal/command"
	"github.com/homeostat-dev/homeostat/operator"
)

// Root is the program of the operators.
func Root(program string, ops []*operator.Operator) *cobra.Command {
	root := &cobra.Command{
		Use:   program,
		Short: "Run, install and examine operators",
		Long: "The operators of this program:\n\n" + listing(ops) + "\n" +
			"Results go to stdout, progress and errors to stderr.\n" + command.CodesWithPlan,
		Example: examples(program, `
# Where operators run: against the cluster of the current kubeconfig context.
{} run

# Install them in a cluster.
{} manifests --image registry.example.com/operator:1.0 | kubectl apply --server-side -f -

# What would a custom resource become? No cluster is needed.
{} render -f sample.yaml

# What would the operators change in the cluster as it is now?
{} plan

# What was done last for an object, and why?
{} why KIND NAME`),
	}
	root.AddCommand(Run(program, ops), Manifests(program, ops), Render(program, ops), Plan(program, ops), Why(program), Tree(program), Operators(ops), command.Version())
	return root
}

// examples indents a block of examples as cobra prints them and puts in the
// program's name.
func examples(program, text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, l := range lines {
		if l != "" {
			lines[i] = "  " + strings.ReplaceAll(l, "{}", program)
		}
	}
	return strings.Join(lines, "\n")
}

// connection has the flags by which a cluster is chosen, as kubectl has them.
func connection(withNamespace bool) *genericclioptions.ConfigFlags {
	all := genericclioptions.NewConfigFlags(true)
	f := &genericclioptions.ConfigFlags{
		KubeConfig: all.KubeConfig, Context: all.Context,
		Impersonate: all.Impersonate, ImpersonateGroup: all.ImpersonateGroup,
	}
	if withNamespace {
		f.Namespace = all.Namespace
	}
	return f
}

// configOf is how to reach the chosen cluster.
func configOf(cluster *genericclioptions.ConfigFlags) (*rest.Config, error) {
	const advice = "set KUBECONFIG or give --kubeconfig; `homeostat up` makes a cluster on this machine"
	config, err := cluster.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("find a cluster: %w; %s", err, advice)
	}
	raw, err := cluster.ToRawKubeConfigLoader().RawConfig()
	if err == nil && len(raw.Clusters) == 0 && config.BearerTokenFile == "" {
		return nil, errors.New("there is no cluster: " + advice)
	}
	config.QPS = -1 // The server's priority and fairness is the limit.
	return config, nil
}

// operatorsOf chooses an operator by name; an empty name chooses all.
func operatorsOf(ops []*operator.Operator, name string) ([]*operator.Operator, error) {
	if name == "" {
		return ops, nil
	}
	var names []string
	for _, op := range ops {
		if op.Name == name {
			return []*operator.Operator{op}, nil
		}
		names = append(names, op.Name)
	}
	return nil, command.Usagef("there is no operator %q here; there is: %s", name, strings.Join(names, ", "))
}

// Operators is the command that lists the operators.
func Operators(ops []*operator.Operator) *cobra.Command {
	return &cobra.Command{
		Use:   "operators",
		Short: "List the operators of this program",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(c.OutOrStdout(), listing(ops))
			return err
		},
	}
}

// listing has a paragraph for each operator: what it looks after, makes, reads.
func listing(ops []*operator.Operator) string {
	var b strings.Builder
	for _, op := range ops {
		_, _ = fmt.Fprintf(&b, "%s: %s\n  looks after %v %s\n", op.Name, op.Doc, op.Parent, op.Parent.Version)
		var makes, reads []string
		for _, c := range op.Children {
			makes = append(makes, c.Kind.String())
		}
		for _, r := range op.Reads {
			reads = append(reads, r.Kind.String())
		}
		if len(makes) > 0 {
			_, _ = fmt.Fprintf(&b, "  makes %s\n", strings.Join(makes, ", "))
		}
		if len(reads) > 0 {
			_, _ = fmt.Fprintf(&b, "  reads %s\n", strings.Join(reads, ", "))
		}
	}
	return b.String()
}
