// Package cli is the homeostat program: a tree of commands made by constructors,
// one package per group of commands. Nothing imports it but cmd/homeostat and
// tests. Its invariant: no state outlives a call of Run.
package cli

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/homeostat-dev/homeostat/internal/cli/demo"
	"github.com/homeostat-dev/homeostat/internal/cli/localplane"
	"github.com/homeostat-dev/homeostat/internal/command"
	"github.com/homeostat-dev/homeostat/internal/verb"
)

// Run runs a command line, the program's name included, and returns the exit code.
func Run(ctx context.Context, streams genericiooptions.IOStreams, args []string) int {
	return command.Run(ctx, streams, args[1:], root(name(args[0])))
}

// name is the program as the user types it: kubectl runs a plugin by the name
// kubectl-homeostat.
func name(invoked string) string {
	if plugin, ok := strings.CutPrefix(filepath.Base(invoked), "kubectl-"); ok {
		return "kubectl " + plugin
	}
	return "homeostat"
}

func root(program string) *cobra.Command {
	c := &cobra.Command{
		Use:         strings.ReplaceAll(program, " ", "-"),
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: program},
		Short:       "Operators that are functions",
		Long: `Homeostat runs operators that are functions from what is observed to what ought to
be. This program has what goes with them: a real Kubernetes control plane on
this machine, a demonstration on it, and questions to operators and clusters.

Results go to stdout, progress and errors to stderr.
` + command.Codes,
		Example: strings.ReplaceAll(`  # Watch an operator at work; builds a control plane the first time.
  {} demo

  # A Kubernetes of your own on this machine, and a shell that uses it.
  {} up && export KUBECONFIG=$({} kubeconfig)

  # Stop it.
  {} down

  # What does an object consist of, and what did its operator do for it last?
  {} tree memcached memcached-sample
  {} why memcached memcached-sample`, "{}", program),
	}
	c.AddCommand(demo.New(program, startPlane(program)), verb.Why(program), verb.Tree(program), command.Version())
	c.AddCommand(localplane.Commands(program)...)
	return c
}
