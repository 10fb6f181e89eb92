//go:build components

// The tag keeps "go test ./..." and "go vet ./..." from compiling Kubernetes; package build sets it.

// Command kube-scheduler is the upstream kube-scheduler of the local plane, unchanged.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() { os.Exit(cli.Run(app.NewSchedulerCommand())) }
