// Package planetest gives tests a real Kubernetes API server.
//
// All test binaries of a run share one local plane, named "test", with
// simulated nodes and a log of requests; the first test that calls [Start]
// brings it up, building it when needed. Every test works in a namespace of
// its own. The plane outlives the run, so that the next one starts at once;
// "homeostat down test" ends it.
//
// It never deletes anything but the namespaces it made, and never skips
// silently: without a plane a test fails, except under "go test -short".
// Its invariant: tests that keep to their namespaces do not see each other.
package planetest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/homeostat-dev/homeostat/internal/plane"
)

const (
	// KubeconfigVariable names the environment variable with the kubeconfig of
	// an existing cluster to test on in place of a local plane.
	KubeconfigVariable = "HOMEOSTAT_TEST_KUBECONFIG"
	// name is the plane's name.
	name = "test"
	// patience bounds every wait of this package.
	patience = 30 * time.Second
	// every is how often it looks.
	every = 20 * time.Millisecond
)

// Plane is a control plane for tests.
type Plane struct {
	// Config is an administrator's access, without a limit on requests. Copy
	// it before changing it.
	Config *rest.Config
	// Kubeconfig is a file with the same access.
	Kubeconfig string
	// AuditLog is the log of all requests; empty on an existing cluster.
	AuditLog string

	client  kubernetes.Interface
	kubectl string
	cache   string
}

var shared = sync.OnceValues(func() (*Plane, error) {
	if existing := os.Getenv(KubeconfigVariable); existing != "" {
		return open(&Plane{Kubeconfig: existing, kubectl: "kubectl"})
	}
	info, err := plane.Up(context.Background(), name, plane.Options{Audit: true})
	if err != nil {
		return nil, err
	}
	return open(&Plane{
		Kubeconfig: info.Kubeconfig, AuditLog: info.AuditLog, kubectl: info.Kubectl,
		cache: filepath.Join(info.Dir, "kubectl-cache"),
	})
})

func open(p *Plane) (*Plane, error) {
	config, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig for tests: %w", err)
	}
	config.QPS = -1
	p.Config = config
	if p.client, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("make a client for tests: %w", err)
	}
	return p, nil
}

// Start returns the plane that the test run shares, after bringing it up. It
// skips the test under "go test -short" and fails it when there is no plane.
func Start(t testing.TB) *Plane {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a Kubernetes API server, which -short leaves out")
	}
	p, err := shared()
	if err != nil {
		t.Fatalf("no control plane to test on: %v", err)
	}
	return p
}

// Kubectl runs kubectl as an administrator and returns what it wrote to its
// standard output. The test fails when kubectl does.
func (p *Plane) Kubectl(t testing.TB, args ...string) string {
	t.Helper()
	out, said, err := p.TryKubectl(t, args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s%s", strings.Join(args, " "), err, out, said)
	}
	return out
}

// TryKubectl runs kubectl and returns what it wrote to standard output and
// standard error, and its failure.
func (p *Plane) TryKubectl(t testing.TB, args ...string) (out, said string, err error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), p.kubectl, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+p.Kubeconfig)
	if p.cache != "" { // kubectl caches by address, and planes come and go
		command.Env = append(command.Env, "KUBECACHEDIR="+p.cache)
	}
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	err = command.Run()
	return stdout.String(), stderr.String(), err
}

var unfit = regexp.MustCompile(`[^a-z0-9]+`)

// Namespace makes a namespace for the test and returns its name. Pods can be
// created in it at once. It is deleted when the test ends; nobody waits for
// that.
func (p *Plane) Namespace(t testing.TB) string {
	t.Helper()
	const longest = 40 // leaves room for the suffix, and for names derived from it
	prefix := strings.Trim(unfit.ReplaceAllString(strings.ToLower(t.Name()), "-"), "-")
	prefix = strings.TrimRight(prefix[:min(len(prefix), longest)], "-") + "-"
	namespaces := p.client.CoreV1().Namespaces()
	made, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("make a namespace: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience) // the test's context is over
		defer cancel()
		if err := namespaces.Delete(ctx, made.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("delete namespace %s: %v", made.Name, err)
		}
	})
	until(t, "the service account of namespace "+made.Name, func() bool {
		_, err := p.client.CoreV1().ServiceAccounts(made.Name).Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
	return made.Name
}

func until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("%s: not within %s", what, patience)
		case <-tick.C:
		}
	}
}
