//go:build components

// The tag keeps "go test ./..." and "go vet ./..." from compiling Kubernetes; package build sets it.

// Command kubectl is the upstream kubectl of the local plane's version.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"

	_ "k8s.io/client-go/plugin/pkg/client/auth"
)

func main() {
	// Verbosity is read before cobra parses, as upstream does, so that plugins see it too.
	_, _ = logs.GlogSetter(cmd.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
