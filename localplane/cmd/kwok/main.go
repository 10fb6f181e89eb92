//go:build components

// The tag keeps "go test ./..." and "go vet ./..." from compiling Kubernetes; package build sets it.

// Command kwok simulates the nodes of the local plane: pods become Running and
// Ready, terminate and are deleted, and nothing runs in them.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/kwok/cmd"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/signals"
)

func main() {
	flags := pflag.NewFlagSet("global", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.Usage = func() {}
	ctx, _ := log.InitFlags(signals.SetupSignalContext(), flags)
	ctx, err := config.InitFlags(ctx, flags)
	if err == nil {
		command := cmd.NewCommand(ctx)
		command.PersistentFlags().AddFlagSet(flags)
		err = command.ExecuteContext(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kwok:", err)
		os.Exit(1)
	}
}
