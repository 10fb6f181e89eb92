// Package homeostat is what the main of an operator imports.
//
// An operator is a function from what is observed to what ought to be, declared
// with package [github.com/homeostat-dev/homeostat/operator]. [Main] makes a
// program of it, with these commands:
//
//	run         run it against a cluster, until interrupted
//	manifests   print definitions, role and Deployment to install
//	render      print the children of a custom resource in a file, no cluster needed
//	plan        show what it would change in a cluster, and change nothing
//	why         ask it, while it runs, what it did last for an object, and why
//	tree        show an object and everything that belongs to it
//	operators   list what the program has
//
// [Add] adds an operator to a controller-runtime manager that is there already.
// The package holds no state and installs nothing by itself; its invariant is
// that all commands drive one and the same value.
package homeostat

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/homeostat-dev/homeostat/engine"
	"github.com/homeostat-dev/homeostat/internal/command"
	"github.com/homeostat-dev/homeostat/internal/verb"
	"github.com/homeostat-dev/homeostat/operator"
)

// Main is the whole main function of a program with these operators.
func Main(ops ...*operator.Operator) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := Run(ctx, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}, os.Args[1:], ops...)
	stop()
	os.Exit(code)
}

// Run runs a command of the operators' program, until it is done or the context
// ends, and returns the exit code: 0 done, 1 failed, 2 wrong command line,
// 3 changes found (plan), 130 interrupted.
func Run(ctx context.Context, streams genericiooptions.IOStreams, args []string, ops ...*operator.Operator) int {
	return command.Run(ctx, streams, args, verb.Root(filepath.Base(os.Args[0]), ops))
}

// Option changes how Add runs an operator.
type Option = engine.Option

// Concurrency sets how many objects an operator works on at once.
func Concurrency(n int) Option { return engine.Concurrency(n) }

// Namespace confines an operator to the objects of one namespace.
func Namespace(name string) Option { return engine.Namespace(name) }

// Add adds an operator to a controller-runtime manager. It starts with the
// manager, on the leader only, with informers of its own.
func Add(mgr manager.Manager, op *operator.Operator, options ...Option) error {
	return engine.Add(mgr, op, options...)
}
