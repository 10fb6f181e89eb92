package cli_test

import (
	"context"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/homeostat-dev/homeostat/internal/cli"
)

// TestMain makes the program for the scripts, under both of its names.
func TestMain(m *testing.M) {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	run := func() { os.Exit(cli.Run(context.Background(), streams, os.Args)) }
	testscript.Main(m, map[string]func(){"homeostat": run, "kubectl-homeostat": run})
}

// TestScripts runs whole commands as users do.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", RequireExplicitExec: true, RequireUniqueNames: true})
}
