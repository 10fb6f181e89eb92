package cli

import (
	"context"
	"io"

	"github.com/homeostat-dev/homeostat/internal/cli/demo"
	"github.com/homeostat-dev/homeostat/internal/plane"
)

// startPlane gives the demo a local control plane.
func startPlane(program string) demo.Up {
	return func(ctx context.Context, name string, progress io.Writer) (demo.Plane, error) {
		info, err := plane.Up(ctx, name, plane.Options{Program: program, Progress: progress})
		if err != nil {
			return demo.Plane{}, err
		}
		return demo.Plane{
			Kubeconfig: info.Kubeconfig, Kubectl: info.Kubectl, Note: info.Nodes, Started: info.Started,
			Down: func(ctx context.Context) error { return plane.Down(ctx, name) },
			Look: "The control plane stays too, until: " + program + " down " + name,
		}, nil
	}
}
