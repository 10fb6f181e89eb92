// Package apiclient is the few lines of HTTPS and JSON with which the
// supervisor asks a plane's servers whether they are ready, and creates nodes.
//
// It never retries and never caches: callers poll. It knows no Kubernetes
// types, so that the supervisor compiles in seconds.
//
// Invariant: it talks only to the server it was made for, verified against
// that plane's own authority, with that plane's client certificate.
package apiclient

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// requestTimeout bounds one request; whoever polls asks again.
const requestTimeout = 5 * time.Second

// Client calls one server.
type Client struct {
	server string
	http   *http.Client
}

// StatusError is an answer that is not a success.
type StatusError struct {
	// Code is the HTTP status code.
	Code int
	// Message is what the server said, shortened.
	Message string
}

// Error implements error.
func (e *StatusError) Error() string {
	return fmt.Sprintf("HTTP %d: %s", e.Code, e.Message)
}

// HasCode says whether err is an answer of the server with that status code.
func HasCode(err error, code int) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Code == code
}

// New makes a client of the server (https://host:port), trusting the
// authority and presenting the certificate, all as PEM.
func New(server string, authority, cert, key []byte) (*Client, error) {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("load the client certificate for %s: %w", server, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("load the authority for %s: no certificate in it", server)
	}
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true,
		Proxy:             nil, // the servers are on this machine
	}
	return &Client{server: server, http: &http.Client{Transport: transport, Timeout: requestTimeout}}, nil
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Get fetches path and decodes the JSON answer into out, unless out is nil.
func (c *Client) Get(ctx context.Context, path string, out any) error {
	return c.do(ctx, http.MethodGet, path, nil, out)
}

// Post sends in as JSON to path.
func (c *Client) Post(ctx context.Context, path string, in any) error {
	return c.do(ctx, http.MethodPost, path, in, nil)
}

func (c *Client) do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		encoded, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encode the body for %s: %w", path, err)
		}
		body = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.server+path, body)
	if err != nil {
		return fmt.Errorf("make the request %s %s: %w", method, path, err)
	}
	request.Header.Set("User-Agent", "homeostat-localplane")
	request.Header.Set("Accept", "application/json")
	if in != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err // *url.Error names the method and the address
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("read the answer to %s %s: %w", method, path, err)
	}
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("%s %s: %w", method, path, &StatusError{Code: response.StatusCode, Message: message(content)})
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(content, out); err != nil {
		return fmt.Errorf("decode the answer to %s %s: %w", method, path, err)
	}
	return nil
}

// message takes the sentence out of a Kubernetes Status, or the failed checks
// out of a health report.
func message(content []byte) string {
	var status struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(content, &status) == nil && status.Message != "" {
		return status.Message
	}
	var failed []string
	for line := range strings.SplitSeq(string(content), "\n") {
		if strings.HasPrefix(line, "[-]") {
			failed = append(failed, strings.TrimPrefix(line, "[-]"))
		}
	}
	if len(failed) > 0 {
		return strings.Join(failed, "; ")
	}
	const enough = 300
	text := strings.TrimSpace(string(content))
	return text[:min(len(text), enough)]
}
