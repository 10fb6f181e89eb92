// Command localplane builds and runs local Kubernetes planes. It is the
// supervisor: small, quick to compile, and without Kubernetes inside. The
// homeostat command calls it; it works on its own too.
//
// It never keeps running: planes are detached processes, and every verb works
// from their records. Its exit code is 0, 1 for a failure, 2 for wrong use,
// or 130 when it was interrupted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/homeostat-dev/homeostat/localplane/node"
	"github.com/homeostat-dev/homeostat/localplane/plane"
	"github.com/homeostat-dev/homeostat/localplane/proc"
)

// programVariable names the environment variable with the command that the
// user typed, for hints.
const programVariable = "HOMEOSTAT_PROGRAM"

const (
	exitFailure     = 1
	exitUsage       = 2
	exitInterrupted = 130
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == proc.ExecVerb {
		_, _ = fmt.Fprintln(os.Stderr, proc.ExecRecorded(os.Args[2:])) // returns only to fail
		os.Exit(exitFailure)
	}
	// The context ends with the first signal; later ones do not hurry the
	// cleaning up that follows.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := run(ctx, os.Stdout, os.Stderr, os.Args[1:])
	stop()
	os.Exit(code)
}

// errSilent is a failure that has been explained already.
var errSilent = errors.New("failed")

// usageError is a wrong use of the command line.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func run(ctx context.Context, stdout io.Writer, stderr *os.File, args []string) int {
	app := &app{stdout: stdout, stderr: stderr, program: "localplane", screen: newScreen(stderr)}
	if program := os.Getenv(programVariable); program != "" {
		app.program = program
	}
	err := app.dispatch(ctx, args)
	app.screen.clear()
	var usage usageError
	switch {
	case err == nil, errors.Is(err, pflag.ErrHelp):
		return 0
	case errors.Is(err, errSilent):
		return exitFailure
	case errors.As(err, &usage), errors.Is(err, node.ErrUsage), errors.Is(err, plane.ErrName):
		_, _ = fmt.Fprintf(stderr, "Error: %v\nSee %q.\n", err, app.program+" --help")
		return exitUsage
	case ctx.Err() != nil && (errors.Is(err, context.Cause(ctx)) || errors.Is(err, context.Canceled)):
		if os.Getenv(programVariable) == "" { // else who called says so
			_, _ = fmt.Fprintln(stderr, "interrupted")
		}
		return exitInterrupted
	}
	_, _ = fmt.Fprintf(stderr, "Error: %v\n", err)
	return exitFailure
}

// app is one run of the command.
type app struct {
	stdout  io.Writer
	stderr  io.Writer
	program string
	screen  *screen
}

const help = `Builds and runs local Kubernetes planes: etcd, kube-apiserver,
kube-controller-manager and kube-scheduler as processes of this machine, with
simulated nodes. Nothing is downloaded but Go modules.

  %[1]s up [NAME]                 start a plane, or what has died of it
      --nodes simulated=N         how many nodes (default 1)
      --audit                     keep a log of all requests
      --wait 60s                  how long to wait until it is ready
      -o json|yaml                print the plane for programs
  %[1]s down [NAME|--all]         stop it and remove everything it kept
  %[1]s status [NAME] [-o ...]    show one plane, or all
  %[1]s kubeconfig [NAME] [--raw] the path, or the content, of its kubeconfig
  %[1]s kubectl [NAME] -- ARGS    run its kubectl (--path prints where that is)
  %[1]s build                     compile the components now

NAME is %[2]q unless given. The state is kept in $HOMEOSTAT_HOME, or else in
$XDG_STATE_HOME/homeostat or ~/.local/state/homeostat.
`

func (a *app) dispatch(ctx context.Context, args []string) error {
	verbs := map[string]func(context.Context, []string) error{
		"up": a.up, "down": a.down, "status": a.status, "kubeconfig": a.kubeconfig, "kubectl": a.kubectl, "build": a.build,
	}
	if len(args) > 0 {
		if verb, ok := verbs[args[0]]; ok {
			return verb(ctx, args[1:])
		}
	}
	if len(args) == 0 || args[0] == "help" || args[0] == "--help" || args[0] == "-h" {
		_, err := fmt.Fprintf(a.stdout, help, a.program, plane.DefaultName)
		return err
	}
	return usagef("there is no verb %q", args[0])
}
