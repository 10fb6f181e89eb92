// Package localplane has the commands for local control planes: up, down,
// status, kubeconfig and kubectl. They hand what was typed to the supervisor
// (internal/plane) and pass its output and exit code on.
//
// It never looks at planes itself. Its invariant: whatever a command here
// prints on stdout is the supervisor's, unchanged, so that it can be piped.
package localplane

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/homeostat-dev/homeostat/internal/command"
	"github.com/homeostat-dev/homeostat/internal/plane"
)

// defaultWait is long enough for a slow machine under load.
const defaultWait = time.Minute

// Commands returns the commands for local planes; program is what the user
// types to get at them.
func Commands(program string) []*cobra.Command {
	return []*cobra.Command{up(program), down(program), status(program), kubeconfig(program), kubectl(program)}
}

// run runs the supervisor with the command's streams.
func run(c *cobra.Command, program string, args ...string) error {
	streams := plane.Streams{Program: program, Out: c.OutOrStdout(), Err: c.ErrOrStderr()}
	if args[0] == "kubectl" {
		streams.In = c.InOrStdin() // the others read nothing
	}
	err := plane.Run(c.Context(), streams, args...)
	if exit, ok := errors.AsType[*plane.ExitError](err); ok {
		return &command.Exit{Code: exit.Code}
	}
	return err
}

// withName is a verb and the plane's name, if one was typed.
func withName(verb string, names []string) []string { return append([]string{verb}, names...) }

func up(program string) *cobra.Command {
	var nodes, output string
	var audit bool
	var wait time.Duration
	c := &cobra.Command{
		Use:   "up [NAME]",
		Short: "Start a Kubernetes control plane on this machine",
		Long: `Start a real Kubernetes control plane as processes of this machine: etcd,
kube-apiserver, kube-controller-manager and kube-scheduler, and nodes. The first
time they are compiled from their Go modules, which takes minutes; afterwards a
plane is ready in seconds. What has died of a plane is started again.

The nodes are simulated: pods become Running and Ready, and are deleted and
garbage collected, but nothing runs in them. A plane is for development and
tests: it listens on loopback only, and its data does not survive the machine.

` + command.Codes,
		Example: fmt.Sprintf(`  # Start a plane and use it.
  %[1]s up
  export KUBECONFIG=$(%[1]s kubeconfig)

  # A second one, with three nodes and a log of all requests.
  %[1]s up other --nodes simulated=3 --audit`, program),
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, names []string) error {
			args := append(withName("up", names), "--wait", wait.String())
			if nodes != "" {
				args = append(args, "--nodes", nodes)
			}
			if audit {
				args = append(args, "--audit")
			}
			if output != "" {
				args = append(args, "--output", output)
			}
			return run(c, program, args...)
		},
	}
	c.Flags().StringVar(&nodes, "nodes", "", "nodes of the plane, as simulated=N (default simulated=1)")
	c.Flags().BoolVar(&audit, "audit", false, "keep a log of all requests to the API server")
	c.Flags().DurationVar(&wait, "wait", defaultWait, "how long to wait until the plane is ready, once it is built")
	c.Flags().StringVarP(&output, "output", "o", "", "describe the plane for programs: json or yaml")
	return c
}

func down(program string) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "down [NAME]",
		Short: "Stop a local control plane and remove everything it kept",
		Long: `Stop the processes of a local control plane and remove its folder. The compiled
components stay in the cache. A plane that is not there is no error.

` + command.Codes,
		Example: fmt.Sprintf("  %[1]s down\n  %[1]s down --all", program),
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, names []string) error {
			args := withName("down", names)
			if all {
				args = append(args, "--all")
			}
			return run(c, program, args...)
		},
	}
	c.Flags().BoolVar(&all, "all", false, "every local plane")
	return c
}

func status(program string) *cobra.Command {
	output := "table"
	c := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show local control planes and whether they run",
		Long: `Show one local control plane, or all. The exit code is 1 when one of those shown
does not run as a whole.

` + command.Codes,
		Example: fmt.Sprintf("  %[1]s status\n  %[1]s status -o json", program),
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, names []string) error {
			return run(c, program, append(withName("status", names), "--output", output)...)
		},
	}
	c.Flags().StringVarP(&output, "output", "o", output, "table, json or yaml")
	return c
}

func kubeconfig(program string) *cobra.Command {
	var raw bool
	c := &cobra.Command{
		Use:     "kubeconfig [NAME]",
		Short:   "Print the path of a local plane's kubeconfig",
		Example: fmt.Sprintf("  export KUBECONFIG=$(%s kubeconfig)", program),
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, names []string) error {
			args := withName("kubeconfig", names)
			if raw {
				args = append(args, "--raw")
			}
			return run(c, program, args...)
		},
	}
	c.Flags().BoolVar(&raw, "raw", false, "print its content instead")
	return c
}

func kubectl(program string) *cobra.Command {
	var path bool
	c := &cobra.Command{
		Use:     "kubectl [NAME] -- ARGS",
		Short:   "Run the kubectl of a local plane on it",
		Example: fmt.Sprintf("  %[1]s kubectl -- get nodes\n  %[1]s kubectl other -- get pods -A", program),
		Args: func(c *cobra.Command, args []string) error {
			named := len(args)
			if dash := c.ArgsLenAtDash(); dash >= 0 {
				named = dash
			}
			if named > 1 {
				return fmt.Errorf("want at most one name before --, got %d; kubectl's own arguments come after it", named)
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			named := len(args)
			if dash := c.ArgsLenAtDash(); dash >= 0 {
				named = dash
			}
			typed := withName("kubectl", args[:named])
			if path {
				return run(c, program, append(typed, "--path")...)
			}
			return run(c, program, append(append(typed, "--"), args[named:]...)...)
		},
	}
	c.Flags().BoolVar(&path, "path", false, "print the path of kubectl instead")
	return c
}
