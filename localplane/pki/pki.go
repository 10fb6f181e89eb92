// Package pki makes the certificates and keys of one local plane.
//
// Every plane has authorities of its own, made when the plane is made and
// deleted with it; nothing is added to the machine's trusted roots. All keys
// are ECDSA P-256, which are made in well under a millisecond.
//
// It never reads or writes files: callers decide where PEM blocks live.
//
// Invariant: everything that an [Authority] issues verifies against it for the
// whole life of the authority.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// lifetime is how long certificates are valid. A plane is thrown away long
// before that; the number only has to outlast any forgotten one.
const lifetime = 10 * 365 * 24 * time.Hour

// Pair is a certificate and its private key as PEM.
type Pair struct {
	Cert, Key []byte
}

// Authority signs certificates.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	// Pair is the authority's own certificate and key.
	Pair Pair
}

// Subject says for whom a certificate is and what it may be used for. A
// certificate with names is for serving as well as for calling; one without
// is for calling only.
type Subject struct {
	CommonName   string
	Organization string
	DNSNames     []string
	IPs          []net.IP
}

// NewAuthority makes an authority with a self-signed certificate.
func NewAuthority(commonName string) (*Authority, error) {
	template, err := template(Subject{CommonName: commonName}, time.Now())
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = nil
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of %s: %w", commonName, err)
	}
	pair, cert, err := sign(template, template, key, key)
	if err != nil {
		return nil, err
	}
	return &Authority{cert: cert, key: key, Pair: pair}, nil
}

// Issue makes a certificate and key for the subject.
func (a *Authority) Issue(subject Subject) (Pair, error) {
	template, err := template(subject, a.cert.NotBefore)
	if err != nil {
		return Pair{}, err
	}
	template.NotBefore, template.NotAfter = a.cert.NotBefore, a.cert.NotAfter
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("make the key of %s: %w", subject.CommonName, err)
	}
	pair, _, err := sign(template, a.cert, key, a.key)
	return pair, err
}

// SigningKey makes a private key and its public key, as used for the tokens
// of service accounts.
func SigningKey() (private, public []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a signing key: %w", err)
	}
	private, err = encodeKey(key)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return nil, nil, fmt.Errorf("encode a public key: %w", err)
	}
	return private, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), nil
}

func template(subject Subject, now time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("choose a serial number: %w", err)
	}
	name := pkix.Name{CommonName: subject.CommonName}
	if subject.Organization != "" {
		name.Organization = []string{subject.Organization}
	}
	usage := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(subject.DNSNames)+len(subject.IPs) > 0 {
		usage = append(usage, x509.ExtKeyUsageServerAuth)
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      name,
		NotBefore:    now.Add(-time.Hour), // clocks may differ, and may be set back
		NotAfter:     now.Add(lifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  usage,
		DNSNames:     subject.DNSNames,
		IPAddresses:  subject.IPs,
	}, nil
}

func sign(template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) (Pair, *x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		return Pair{}, nil, fmt.Errorf("sign the certificate of %s: %w", template.Subject.CommonName, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return Pair{}, nil, fmt.Errorf("read back the certificate of %s: %w", template.Subject.CommonName, err)
	}
	keyPEM, err := encodeKey(key)
	if err != nil {
		return Pair{}, nil, err
	}
	return Pair{Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), Key: keyPEM}, cert, nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}
