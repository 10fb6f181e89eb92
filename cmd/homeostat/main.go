// Command homeostat runs Homeostat's own commands: a local Kubernetes control
// plane and a demonstration on it. It holds no code of its own; all of it is in
// internal/cli, so that tests run what users run.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/homeostat-dev/homeostat/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}, os.Args)
	stop()
	os.Exit(code)
}
