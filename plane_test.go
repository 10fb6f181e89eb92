package homeostat_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/homeostat-dev/homeostat"
	"github.com/homeostat-dev/homeostat/internal/command"
	"github.com/homeostat-dev/homeostat/operators/memcached"
	"github.com/homeostat-dev/homeostat/test/planetest"
)

// program runs the operator's program and returns its exit code and stdout.
func program(t *testing.T, args ...string) (int, string) {
	t.Helper()
	streams, _, out, said := genericiooptions.NewTestIOStreams()
	code := homeostat.Run(t.Context(), streams, args, memcached.Operator)
	if code == command.Failed {
		t.Fatalf("%v: %s", args, said)
	}
	return code, out.String()
}

// TestPlanAgainstACluster asks for the plan before the operator has run, at
// rest, and after somebody has changed a child.
func TestPlanAgainstACluster(t *testing.T) {
	p := planetest.Start(t)
	namespace := p.Namespace(t)
	_, definitions := program(t, "manifests", "--only", "crds")
	file := filepath.Join(t.TempDir(), "crd.yaml")
	if err := os.WriteFile(file, []byte(definitions), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Kubectl(t, "apply", "--server-side", "--force-conflicts", "-f", file)
	p.Kubectl(t, "wait", "--for=condition=Established", "crd/memcacheds.cache.example.com", "--timeout=30s")
	p.Kubectl(t, "-n", namespace, "apply", "-f", "operators/memcached/samples/cache_v1alpha1_memcached.yaml")

	plan := func() (int, string) {
		return program(t, "plan", "--kubeconfig", p.Kubeconfig, "-n", namespace)
	}
	code, text := plan()
	if code != command.Changes || !strings.Contains(text, "2 to create, 1 to change, 0 to delete") {
		t.Errorf("before the operator ran: exit code %d\n%s", code, text)
	}

	metrics := address(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	go func() {
		ended <- homeostat.Run(ctx, streams, []string{"run", "--kubeconfig", p.Kubeconfig, "-n", namespace,
			"--leader-elect", "--leader-election-namespace", namespace, "--metrics-bind-address", metrics}, memcached.Operator)
	}()
	within(t, func() (bool, string) {
		code, text := plan()
		return code == command.OK, text
	})
	within(t, func() (bool, string) {
		_, why := program(t, "why", "memcached", "memcached-sample", "--kubeconfig", p.Kubeconfig, "-n", namespace, "--address", "http://"+metrics)
		return strings.Contains(why, "ended     all is written as decided"), why
	})
	_, tree := program(t, "tree", "memcached", "memcached-sample", "--kubeconfig", p.Kubeconfig, "-n", namespace)
	for _, want := range []string{"└─Service/memcached-sample", "├─Deployment/memcached-sample", "│ └─ReplicaSet/memcached-sample-", "├─Pod/memcached-sample-"} {
		if !strings.Contains(tree, want) {
			t.Errorf("%s is not in the tree:\n%s", want, tree)
		}
	}
	stop()
	if code := <-ended; code != command.OK {
		t.Errorf("run ended with exit code %d when it was interrupted", code)
	}
	holder := p.Kubectl(t, "-n", namespace, "get", "lease", "memcached-operator", "-o", "jsonpath={.spec.holderIdentity}")
	if holder != "" {
		t.Errorf("the lease is still held by %q", holder)
	}

	p.Kubectl(t, "-n", namespace, "scale", "deployment", "memcached-sample", "--replicas", "1")
	code, text = plan()
	if code != command.Changes || !strings.Contains(text, "spec.replicas: 1 → 3") {
		t.Errorf("after replicas were changed: exit code %d\n%s", code, text)
	}
}

// address is one at which nothing listens.
func address(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

// within waits for a condition, with a deadline.
func within(t *testing.T, condition func() (bool, string)) {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, seen := condition()
		if ok {
			return
		}
		select {
		case <-deadline:
			t.Fatalf("not within a minute; seen: %s", seen)
		case <-tick.C:
		}
	}
}
