package node

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	nodelease "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"

	"github.com/homeostat-dev/homeostat/localplane/apiclient"
	"github.com/homeostat-dev/homeostat/localplane/proc"
)

const (
	// marker is the annotation by which kwok knows the nodes it plays.
	marker, markerValue = "kwok.x-k8s.io/node", "fake"
	// address is from a range reserved for documentation: nothing answers there.
	address = "192.0.2.1"
	// podAddresses is the range that pods get addresses from.
	podAddresses = "10.244.0.0/16"
	// leaseSeconds is how long a node counts as healthy without a heartbeat.
	leaseSeconds = "40"
)

// Simulated plays nodes with kwok.
type Simulated struct {
	// Count is the number of nodes.
	Count int
}

var _ Provider = (*Simulated)(nil)

// String implements [Provider].
func (s *Simulated) String() string { return fmt.Sprintf("simulated=%d", s.Count) }

// Notice implements [Provider].
func (s *Simulated) Notice() string {
	return "SIMULATED nodes: pods become Running and Ready, but nothing runs in them"
}

// Names implements [Provider].
func (s *Simulated) Names() []string {
	names := make([]string, s.Count)
	for i := range names {
		names[i] = fmt.Sprintf("sim-%d", i+1)
	}
	return names
}

// Processes implements [Provider].
func (s *Simulated) Processes(env Environment) ([]proc.Spec, error) {
	stages := filepath.Join(env.Dir, "kwok.yaml")
	content := strings.Join([]string{
		nodefast.DefaultNodeInit, nodelease.DefaultNodeHeartbeatWithLease,
		podfast.DefaultPodReady, podfast.DefaultPodComplete, podfast.DefaultPodDelete,
	}, "\n---\n")
	if err := os.WriteFile(stages, []byte(content), 0o600); err != nil {
		return nil, fmt.Errorf("write what the simulated nodes do: %w", err)
	}
	return []proc.Spec{{
		Name: "kwok",
		Path: env.Binary("kwok"),
		Args: []string{
			"--kubeconfig=" + env.Kubeconfig,
			"--config=" + stages,
			"--manage-all-nodes=false",
			"--manage-nodes-with-annotation-selector=" + marker + "=" + markerValue,
			"--cidr=" + podAddresses,
			"--node-ip=" + address,
			"--node-lease-duration-seconds=" + leaseSeconds,
		},
	}}, nil
}

// Join implements [Provider].
func (s *Simulated) Join(ctx context.Context, api *apiclient.Client) error {
	for _, name := range s.Names() {
		err := api.Post(ctx, "/api/v1/nodes", simulatedNode(name))
		if err != nil && !apiclient.HasCode(err, http.StatusConflict) {
			return fmt.Errorf("create node %s: %w", name, err)
		}
	}
	return nil
}

func simulatedNode(name string) map[string]any {
	room := map[string]string{"cpu": "1000", "memory": "4Ti", "ephemeral-storage": "10Ti", "pods": "10000"}
	return map[string]any{
		"apiVersion": "v1",
		"kind":       "Node",
		"metadata": map[string]any{
			"name":        name,
			"annotations": map[string]string{marker: markerValue},
			"labels": map[string]string{
				"kubernetes.io/hostname": name,
				"kubernetes.io/os":       "linux",
				"kubernetes.io/arch":     runtime.GOARCH,
				"homeostat.dev/nodes":    "simulated",
			},
		},
		"status": map[string]any{"capacity": room, "allocatable": room},
	}
}
