package plane

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/homeostat-dev/homeostat/localplane/pki"
)

// clients are the identities that call the API server, by file name.
func clients() map[string]pki.Subject {
	return map[string]pki.Subject{
		"admin":              {CommonName: "admin", Organization: "system:masters"},
		"controller-manager": {CommonName: "system:kube-controller-manager"},
		"scheduler":          {CommonName: "system:kube-scheduler"},
		"nodes":              {CommonName: "homeostat:nodes", Organization: "system:masters"},
		"kubelet-client":     {CommonName: "kube-apiserver-kubelet-client", Organization: "system:masters"},
	}
}

// writeIdentities makes the plane's authorities, certificates and keys, once
// in its life. The store has an authority of its own: a certificate for the
// API server must not open the store.
func writeIdentities(rec *record) error {
	const last = "done"
	if _, err := os.Stat(rec.path("pki", last)); err == nil {
		return nil
	}
	servers := pki.Subject{
		CommonName: "localplane",
		DNSNames:   []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		IPs:        []net.IP{net.ParseIP(loopback), net.ParseIP(serviceAddress)},
	}
	authority, err := pki.NewAuthority("homeostat plane " + rec.Name)
	if err != nil {
		return err
	}
	store, err := pki.NewAuthority("homeostat store of plane " + rec.Name)
	if err != nil {
		return err
	}
	pairs := map[string]pki.Pair{"ca": authority.Pair, "store-ca": store.Pair}
	issue := func(by *pki.Authority, name string, subject pki.Subject) {
		pair, issueErr := by.Issue(subject)
		pairs[name], err = pair, errors.Join(err, issueErr)
	}
	issue(authority, "server", servers)
	issue(store, "store", servers)
	issue(store, "store-client", pki.Subject{CommonName: "kube-apiserver"})
	for name, subject := range clients() {
		issue(authority, name, subject)
	}
	if err != nil {
		return err
	}
	files := map[string][]byte{}
	for name, pair := range pairs {
		files[name+".crt"], files[name+".key"] = pair.Cert, pair.Key
	}
	if files["tokens.key"], files["tokens.pub"], err = pki.SigningKey(); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(rec.path("pki", name), content, 0o600); err != nil {
			return fmt.Errorf("write the plane's certificates: %w", err)
		}
	}
	return os.WriteFile(rec.path("pki", last), nil, 0o600)
}

// writeKubeconfigs writes a kubeconfig per identity; the ports may be new.
func writeKubeconfigs(rec *record, server string) error {
	for identity, file := range map[string]string{
		"admin":              rec.path("kubeconfig"),
		"controller-manager": rec.path("pki", "controller-manager.kubeconfig"),
		"scheduler":          rec.path("pki", "scheduler.kubeconfig"),
		"nodes":              rec.path("pki", "nodes.kubeconfig"),
	} {
		content, err := kubeconfig(rec, identity, server)
		if err != nil {
			return err
		}
		if err := os.WriteFile(file, content, 0o600); err != nil {
			return fmt.Errorf("write the kubeconfig of %s: %w", identity, err)
		}
	}
	return nil
}

const kubeconfigForm = `apiVersion: v1
kind: Config
current-context: %[1]s
clusters:
- name: %[1]s
  cluster:
    server: %[3]s
    certificate-authority-data: %[4]s
users:
- name: %[1]s-%[2]s
  user:
    client-certificate-data: %[5]s
    client-key-data: %[6]s
contexts:
- name: %[1]s
  context:
    cluster: %[1]s
    user: %[1]s-%[2]s
`

func kubeconfig(rec *record, identity, server string) ([]byte, error) {
	var encoded []any
	for _, name := range []string{"ca.crt", identity + ".crt", identity + ".key"} {
		content, err := os.ReadFile(rec.path("pki", name))
		if err != nil {
			return nil, fmt.Errorf("read the plane's certificates: %w", err)
		}
		encoded = append(encoded, base64.StdEncoding.EncodeToString(content))
	}
	return fmt.Appendf(nil, kubeconfigForm, append([]any{"homeostat-" + rec.Name, identity, server}, encoded...)...), nil
}

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

const schedulerForm = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: false
clientConnection:
  kubeconfig: %q
  qps: 1000
  burst: 2000
`

func writeSettings(rec *record) error {
	for file, content := range map[string]string{
		"audit-policy.yaml": auditPolicy,
		"scheduler.yaml":    fmt.Sprintf(schedulerForm, rec.path("pki", "scheduler.kubeconfig")),
	} {
		if err := os.WriteFile(rec.path(file), []byte(content), 0o600); err != nil {
			return fmt.Errorf("write the settings of the plane: %w", err)
		}
	}
	return nil
}
