package plane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/homeostat-dev/homeostat/localplane/apiclient"
	"github.com/homeostat-dev/homeostat/localplane/node"
	"github.com/homeostat-dev/homeostat/localplane/proc"
)

// The names of the processes, and of their ports.
const (
	storeName         = "etcd"
	storePeerPort     = "etcd-peer"
	apiServerName     = "kube-apiserver"
	controllersName   = "kube-controller-manager"
	schedulerName     = "kube-scheduler"
	serviceRange      = "10.96.0.0/16"
	serviceAddress    = "10.96.0.1"
	tokenIssuer       = "https://kubernetes.default.svc.cluster.local"
	controllersRate   = "1000"
	controllersBurst  = "2000"
	readRequests      = "3000"
	writeRequests     = "1000"
	neverRotateInMega = "100000"
)

// kubernetes is the design of a real plane.
type kubernetes struct{}

func (kubernetes) ports() []string {
	return []string{storeName, storePeerPort, apiServerName, controllersName, schedulerName}
}

func (kubernetes) stages(rec *record) ([]stage, error) {
	server := address(rec.Ports[apiServerName])
	if err := errors.Join(writeIdentities(rec), writeKubeconfigs(rec, server), writeSettings(rec)); err != nil {
		return nil, err
	}
	provider, err := node.Parse(rec.Nodes)
	if err != nil {
		return nil, err
	}
	nodeSpecs, err := provider.Processes(node.Environment{
		Dir: rec.dir, Kubeconfig: rec.path("pki", "nodes.kubeconfig"), Binary: rec.Binaries.Path,
	})
	if err != nil {
		return nil, err
	}
	store, err := client(rec, storeName, "store-ca", "store-client")
	if err != nil {
		return nil, err
	}
	api, err := client(rec, apiServerName, "ca", "admin")
	if err != nil {
		return nil, err
	}
	controllers, err := client(rec, controllersName, "ca", "admin")
	if err != nil {
		return nil, err
	}
	scheduler, err := client(rec, schedulerName, "ca", "admin")
	if err != nil {
		return nil, err
	}
	return []stage{
		{specs: []proc.Spec{storeSpec(rec)}, ready: []condition{answers(rec, storeName, store, "/readyz")}},
		{specs: []proc.Spec{apiServerSpec(rec)}, ready: []condition{answers(rec, apiServerName, api, "/readyz")}},
		{
			specs: append([]proc.Spec{controllersSpec(rec), schedulerSpec(rec)}, nodeSpecs...),
			ready: []condition{
				nodesReady(rec, provider, nodeSpecs, api),
				answers(rec, controllersName, controllers, "/healthz"),
				answers(rec, schedulerName, scheduler, "/readyz"),
				serviceAccount(rec, api),
			},
		},
	}, nil
}

func storeSpec(rec *record) proc.Spec {
	client, peer := address(rec.Ports[storeName]), address(rec.Ports[storePeerPort])
	return proc.Spec{
		Name: storeName, Path: rec.Binaries.Path(storeName), Ports: []int{rec.Ports[storeName], rec.Ports[storePeerPort]},
		Args: []string{
			"--name=localplane", "--data-dir=" + rec.path("etcd"), "--log-level=warn",
			"--unsafe-no-fsync", // the plane is thrown away; its data need not survive the machine
			"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=localplane=" + peer,
			"--cert-file=" + rec.path("pki", "store.crt"), "--key-file=" + rec.path("pki", "store.key"),
			"--client-cert-auth", "--trusted-ca-file=" + rec.path("pki", "store-ca.crt"),
			"--peer-cert-file=" + rec.path("pki", "store.crt"), "--peer-key-file=" + rec.path("pki", "store.key"),
			"--peer-client-cert-auth", "--peer-trusted-ca-file=" + rec.path("pki", "store-ca.crt"),
		},
	}
}

func apiServerSpec(rec *record) proc.Spec {
	pki := func(name string) string { return rec.path("pki", name) }
	args := []string{
		"--etcd-servers=" + address(rec.Ports[storeName]), "--etcd-cafile=" + pki("store-ca.crt"),
		"--etcd-certfile=" + pki("store-client.crt"), "--etcd-keyfile=" + pki("store-client.key"),
		"--service-cluster-ip-range=" + serviceRange,
		"--endpoint-reconciler-type=none", // loopback is no address for endpoints
		"--client-ca-file=" + pki("ca.crt"),
		"--authorization-mode=Node,RBAC", "--allow-privileged",
		"--service-account-issuer=" + tokenIssuer,
		"--service-account-key-file=" + pki("tokens.pub"), "--service-account-signing-key-file=" + pki("tokens.key"),
		"--kubelet-client-certificate=" + pki("kubelet-client.crt"), "--kubelet-client-key=" + pki("kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--max-requests-inflight=" + readRequests, "--max-mutating-requests-inflight=" + writeRequests,
		"--profiling=false",
	}
	if rec.Audit {
		args = append(args, "--audit-policy-file="+rec.path("audit-policy.yaml"),
			"--audit-log-path="+rec.path("audit.log"), "--audit-log-maxsize="+neverRotateInMega)
	}
	return proc.Spec{
		Name: apiServerName, Path: rec.Binaries.Path(apiServerName), Ports: []int{rec.Ports[apiServerName]},
		Args: append(args, serving(rec, apiServerName)...),
	}
}

func controllersSpec(rec *record) proc.Spec {
	return proc.Spec{
		Name: controllersName, Path: rec.Binaries.Path(controllersName), Ports: []int{rec.Ports[controllersName]},
		Args: append([]string{
			"--kubeconfig=" + rec.path("pki", "controller-manager.kubeconfig"),
			"--use-service-account-credentials", "--leader-elect=false",
			"--service-account-private-key-file=" + rec.path("pki", "tokens.key"),
			"--root-ca-file=" + rec.path("pki", "ca.crt"),
			"--cluster-signing-cert-file=" + rec.path("pki", "ca.crt"), "--cluster-signing-key-file=" + rec.path("pki", "ca.key"),
			"--kube-api-qps=" + controllersRate, "--kube-api-burst=" + controllersBurst,
		}, serving(rec, controllersName)...),
	}
}

func schedulerSpec(rec *record) proc.Spec {
	return proc.Spec{
		Name: schedulerName, Path: rec.Binaries.Path(schedulerName), Ports: []int{rec.Ports[schedulerName]},
		Args: append([]string{"--config=" + rec.path("scheduler.yaml")}, serving(rec, schedulerName)...),
	}
}

// serving are the flags that the components of Kubernetes share.
func serving(rec *record, name string) []string {
	return []string{
		"--bind-address=" + loopback, "--secure-port=" + strconv.Itoa(rec.Ports[name]),
		"--tls-cert-file=" + rec.path("pki", "server.crt"), "--tls-private-key-file=" + rec.path("pki", "server.key"),
	}
}

func address(port int) string {
	return "https://" + net.JoinHostPort(loopback, strconv.Itoa(port))
}

func client(rec *record, port, authority, identity string) (*apiclient.Client, error) {
	var read [][]byte
	for _, name := range []string{authority + ".crt", identity + ".crt", identity + ".key"} {
		content, err := os.ReadFile(rec.path("pki", name))
		if err != nil {
			return nil, fmt.Errorf("read the plane's certificates: %w", err)
		}
		read = append(read, content)
	}
	return apiclient.New(address(rec.Ports[port]), read[0], read[1], read[2])
}

func answers(rec *record, name string, client *apiclient.Client, path string) condition {
	return condition{
		what: name + " to be ready", log: rec.path("logs", name+".log"),
		check: func(ctx context.Context) error { return client.Get(ctx, path, nil) },
	}
}

// serviceAccount holds when pods can be created in the namespace "default",
// which also shows that controllers work.
func serviceAccount(rec *record, api *apiclient.Client) condition {
	return condition{
		what: "the service account of the default namespace", log: rec.path("logs", controllersName+".log"),
		check: func(ctx context.Context) error {
			return api.Get(ctx, "/api/v1/namespaces/default/serviceaccounts/default", nil)
		},
	}
}

// nodesReady makes the nodes join, and holds when all of them are Ready.
func nodesReady(rec *record, provider node.Provider, specs []proc.Spec, api *apiclient.Client) condition {
	log := rec.path("logs", controllersName+".log")
	if len(specs) > 0 {
		log = rec.path("logs", specs[0].Name+".log")
	}
	joined := false
	return condition{
		what: "the nodes to be Ready", log: log,
		check: func(ctx context.Context) error {
			if !joined {
				if err := provider.Join(ctx, api); err != nil {
					return err
				}
				joined = true
			}
			for _, name := range provider.Names() {
				if err := nodeReady(ctx, api, name); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func nodeReady(ctx context.Context, api *apiclient.Client, name string) error {
	var found struct {
		Status struct {
			Conditions []struct{ Type, Status string }
		}
	}
	if err := api.Get(ctx, "/api/v1/nodes/"+name, &found); err != nil {
		return err
	}
	for _, condition := range found.Status.Conditions {
		if condition.Type == "Ready" && condition.Status == "True" {
			return nil
		}
	}
	return fmt.Errorf("node %s is not Ready", name)
}
