package plane

import (
	"crypto/tls"
	"crypto/x509"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/homeostat-dev/homeostat/localplane/build"
)

// prepared is a plane whose files are written and whose processes are not started.
func prepared(t *testing.T) (*record, []stage) {
	t.Helper()
	rec := &record{
		dir: filepath.Join(t.TempDir(), "p"), Name: "p", Phase: phaseStarting, Audit: true,
		Nodes: "simulated=1", Binaries: build.Set{Dir: "/binaries"},
	}
	if err := rec.create(); err != nil {
		t.Fatal(err)
	}
	ports, releases, err := choosePorts(kubernetes{}.ports())
	if err != nil {
		t.Fatal(err)
	}
	for _, release := range releases {
		release()
	}
	rec.Ports = ports
	stages, err := kubernetes{}.stages(rec)
	if err != nil {
		t.Fatal(err)
	}
	return rec, stages
}

func TestEverythingListensOnLoopbackOnly(t *testing.T) {
	_, stages := prepared(t)
	hosts := regexp.MustCompile(`https?://([^:/, ]+)`)
	count := 0
	for _, stage := range stages {
		for _, spec := range stage.specs {
			count++
			all := strings.Join(spec.Args, " ")
			for _, match := range hosts.FindAllStringSubmatch(all, -1) {
				if match[1] != loopback && !strings.Contains(tokenIssuer, match[1]) {
					t.Errorf("%s: address %s", spec.Name, match[1])
				}
			}
			if strings.Contains(all, "--secure-port") && !strings.Contains(all, "--bind-address="+loopback) {
				t.Errorf("%s listens everywhere", spec.Name)
			}
			if strings.Contains(all, "http://") {
				t.Errorf("%s without TLS: %s", spec.Name, all)
			}
		}
	}
	if want := len(build.Components()) - 1; count != want { // kubectl is no process
		t.Errorf("%d processes, want %d", count, want)
	}
}

func TestCertificatesServeAndStaySeparate(t *testing.T) {
	rec, _ := prepared(t)
	authority := func(name string) *x509.CertPool {
		content, err := os.ReadFile(rec.path("pki", name+".crt"))
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(content)
		return pool
	}
	verify := func(name, by, host string, usage x509.ExtKeyUsage) error {
		pair, err := tls.LoadX509KeyPair(rec.path("pki", name+".crt"), rec.path("pki", name+".key"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: authority(by), DNSName: host, KeyUsages: []x509.ExtKeyUsage{usage}})
		return err
	}
	for _, host := range []string{loopback, "localhost", "kubernetes.default.svc", serviceAddress} {
		if err := verify("server", "ca", host, x509.ExtKeyUsageServerAuth); err != nil {
			t.Errorf("server as %s: %v", host, err)
		}
	}
	if err := verify("admin", "ca", "", x509.ExtKeyUsageClientAuth); err != nil {
		t.Errorf("admin: %v", err)
	}
	if err := verify("store-client", "store-ca", "", x509.ExtKeyUsageClientAuth); err != nil {
		t.Errorf("store client: %v", err)
	}
	if err := verify("admin", "store-ca", "", x509.ExtKeyUsageClientAuth); err == nil {
		t.Error("a client of the API server may open the store")
	}
}

// A later start has new ports perhaps, but the same identities: kubeconfigs
// that were copied and tokens that were issued stay good.
func TestIdentitiesAreKept(t *testing.T) {
	rec, _ := prepared(t)
	before, err := os.ReadFile(rec.path("pki", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	rec.Ports[apiServerName] = 12345
	if _, err := (kubernetes{}).stages(rec); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(rec.path("pki", "ca.crt"))
	if err != nil || string(before) != string(after) {
		t.Errorf("the authority changed (%v)", err)
	}
	config, err := os.ReadFile(rec.path("kubeconfig"))
	if err != nil || !strings.Contains(string(config), "https://127.0.0.1:12345") {
		t.Errorf("the kubeconfig has an old address (%v):\n%s", err, config)
	}
}

func TestNobodyElseCanReadThePlane(t *testing.T) {
	rec, _ := prepared(t)
	err := filepath.WalkDir(rec.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %s", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestPorts(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	ports, releases, err := choosePorts(names)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, name := range names {
		port := ports[name]
		if port == 0 || seen[port] {
			t.Errorf("%s: port %d is none or not its own", name, port)
		}
		seen[port] = true
		if takenPort([]int{port}) != port {
			t.Errorf("port %d is not held while the plane is prepared", port)
		}
	}
	for _, release := range releases {
		release()
	}
	for port := range seen {
		if takenPort([]int{port}) != 0 {
			t.Errorf("port %d is still held", port)
		}
	}
}

func TestRoot(t *testing.T) {
	t.Setenv("HOMEOSTAT_HOME", "/h")
	t.Setenv("XDG_STATE_HOME", "/x")
	t.Setenv("HOME", "/home/user")
	for _, test := range []struct{ unset, want string }{
		{"", "/h/planes"},
		{"HOMEOSTAT_HOME", "/x/homeostat/planes"},
		{"XDG_STATE_HOME", "/home/user/.local/state/homeostat/planes"},
	} {
		if test.unset != "" {
			t.Setenv(test.unset, "")
		}
		if got, err := Root(); err != nil || got != test.want {
			t.Errorf("without %q: %q, %v; want %s", test.unset, got, err, test.want)
		}
	}
}
