//go:build components

// The tag keeps "go test ./..." and "go vet ./..." from compiling Kubernetes; package build sets it.

// Command etcd is the store of the local plane: the upstream server, unchanged.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
