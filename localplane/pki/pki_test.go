package pki

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"
	"time"
)

func TestIssuedCertificatesVerify(t *testing.T) {
	authority, err := NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	server, err := authority.Issue(Subject{CommonName: "server", DNSNames: []string{"localhost"}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}})
	if err != nil {
		t.Fatal(err)
	}
	client, err := authority.Issue(Subject{CommonName: "admin", Organization: "system:masters"})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.Pair.Cert)

	verify := func(pair Pair, options x509.VerifyOptions) error {
		loaded, err := tls.X509KeyPair(pair.Cert, pair.Key)
		if err != nil {
			t.Fatal(err)
		}
		options.Roots = roots
		_, err = loaded.Leaf.Verify(options)
		return err
	}
	asServer := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	asClient := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	inYears := time.Now().AddDate(5, 0, 0)

	for name, test := range map[string]struct {
		pair    Pair
		options x509.VerifyOptions
		ok      bool
	}{
		"server by address":          {server, x509.VerifyOptions{DNSName: "127.0.0.1", KeyUsages: asServer}, true},
		"server by name":             {server, x509.VerifyOptions{DNSName: "localhost", KeyUsages: asServer}, true},
		"server under another name":  {server, x509.VerifyOptions{DNSName: "example.com", KeyUsages: asServer}, false},
		"client calls":               {client, x509.VerifyOptions{KeyUsages: asClient}, true},
		"client does not serve":      {client, x509.VerifyOptions{KeyUsages: asServer}, false},
		"valid in years":             {client, x509.VerifyOptions{KeyUsages: asClient, CurrentTime: inYears}, true},
		"a clock ten minutes behind": {client, x509.VerifyOptions{KeyUsages: asClient, CurrentTime: time.Now().Add(-10 * time.Minute)}, true},
	} {
		if err := verify(test.pair, test.options); (err == nil) != test.ok {
			t.Errorf("%s: got %v, want ok=%v", name, err, test.ok)
		}
	}

	other, err := NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := other.Issue(Subject{CommonName: "admin", Organization: "system:masters"})
	if err != nil {
		t.Fatal(err)
	}
	if err := verify(foreign, x509.VerifyOptions{KeyUsages: asClient}); err == nil {
		t.Error("a certificate of another plane's authority of the same name verifies")
	}
}
