// Package node is the seam between a plane and its nodes.
//
// A [Provider] says which processes stand behind the nodes and makes the nodes
// join. Today there is one: simulated nodes, which kwok plays; pods on them
// become Running and Ready, terminate and are deleted, and nothing runs in
// them. Nodes that run containers can be added behind the same interface.
//
// It never starts or stops a process itself: the plane does, so that there is
// one place where processes are recorded and ended.
//
// Invariant: everything a provider does can be done again. Joining nodes that
// have joined is no error and changes nothing.
package node

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/homeostat-dev/homeostat/localplane/apiclient"
	"github.com/homeostat-dev/homeostat/localplane/proc"
)

// Provider stands behind the nodes of one plane.
type Provider interface {
	// String is the provider in the form that [Parse] reads.
	String() string
	// Notice is what a user must know about these nodes.
	Notice() string
	// Names returns the names of the nodes.
	Names() []string
	// Processes prepares files in the plane's folder and returns what to run.
	// The plane fills in the environment, the working folder and the log.
	Processes(Environment) ([]proc.Spec, error)
	// Join makes sure that the nodes are known to the API server.
	Join(context.Context, *apiclient.Client) error
}

// Environment is what a provider gets to know about its plane.
type Environment struct {
	// Dir is the plane's folder.
	Dir string
	// Kubeconfig is a file that gives the provider's processes access.
	Kubeconfig string
	// Binary returns the executable of a component.
	Binary func(component string) string
}

// ErrUsage says that a description of nodes cannot be understood or served.
var ErrUsage = errors.New("bad value for nodes")

// maxNodes keeps a typing error from filling the machine.
const maxNodes = 1000

// Parse reads a description such as "simulated=3".
func Parse(description string) (Provider, error) {
	kind, number, found := strings.Cut(description, "=")
	count, err := strconv.Atoi(number)
	if !found || err != nil || count < 0 || count > maxNodes {
		return nil, fmt.Errorf("%w: %q; want simulated=N with N from 0 to %d", ErrUsage, description, maxNodes)
	}
	switch kind {
	case "simulated":
		return &Simulated{Count: count}, nil
	case "real":
		return nil, fmt.Errorf("%w: %q: nodes that run containers are not available yet; use simulated=%d, or a cluster "+
			"of your own with --kubeconfig", ErrUsage, description, count)
	}
	return nil, fmt.Errorf("%w: %q is not a kind of nodes; want simulated=N", ErrUsage, kind)
}
