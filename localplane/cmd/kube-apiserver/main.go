//go:build components

// The tag keeps "go test ./..." and "go vet ./..." from compiling Kubernetes; package build sets it.

// Command kube-apiserver is the upstream kube-apiserver of the local plane, unchanged.
package main

import (
	"os"
	_ "time/tzdata" // time zones of CronJobs

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() { os.Exit(cli.Run(app.NewAPIServerCommand())) }
