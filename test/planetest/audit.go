package planetest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/rand"
)

// Request is a request that the API server has answered, or a watch that it
// has begun to answer.
type Request struct {
	// Verb is the API's verb: create, update, patch, delete, get, list, watch…
	Verb string
	// Group, Resource and Subresource say what it was for; Resource is empty
	// for paths such as /version.
	Group, Resource, Subresource string
	Namespace, Name              string
	// Code is the HTTP status code of the answer.
	Code int
	// UserAgent and User say who asked.
	UserAgent, User string
	// Time is when the request arrived.
	Time time.Time
}

// String is the request on one line, for messages.
func (r Request) String() string {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	return fmt.Sprintf("%s %s %s %s/%s %d by %s", r.Time.Format("15:04:05.000"), r.Verb, resource, r.Namespace, r.Name, r.Code, r.UserAgent)
}

// Match says which requests are wanted; what is empty matches all.
type Match struct {
	// User is the exact name of the user.
	User string
	// UserAgent is a part of the user agent.
	UserAgent string
	// Namespace is the exact name of the namespace.
	Namespace string
}

// Requests returns the matching requests that arrived since then, in the order
// of the log. Requests that were answered before the call are in it.
func (p *Plane) Requests(t testing.TB, match Match, since time.Time) []Request {
	t.Helper()
	if os.Getenv(KubeconfigVariable) != "" {
		t.Skipf("counts requests in the API server's audit log, which the cluster of %s does not give", KubeconfigVariable)
	}
	if p.AuditLog == "" {
		t.Fatalf("plane %q was started without an audit log: run \"homeostat down %s\" and try again", name, name)
	}
	p.settle(t)
	file, err := os.Open(p.AuditLog)
	if err != nil {
		t.Fatalf("open the audit log: %v", err)
	}
	defer func() { _ = file.Close() }()
	requests, err := read(file, match, since)
	if err != nil {
		t.Fatalf("read the audit log: %v", err)
	}
	return requests
}

// settle makes a request and waits until it is in the log. The server logs a
// request just after the client has its answer, so a log that is read at once
// may lack the last ones.
func (p *Plane) settle(t testing.TB) {
	t.Helper()
	file, err := os.Open(p.AuditLog)
	if err != nil {
		t.Fatalf("open the audit log: %v", err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(0, io.SeekEnd); err != nil {
		t.Fatalf("read the audit log: %v", err)
	}
	const length = 16
	mark := "planetest-" + rand.String(length)
	if err := p.client.CoreV1().RESTClient().Get().AbsPath("/version").Param("mark", mark).Do(t.Context()).Error(); err != nil {
		t.Fatalf("make a mark in the audit log: %v", err)
	}
	var seen []byte
	until(t, "a request to be in the audit log", func() bool {
		more, err := io.ReadAll(file)
		if err != nil {
			t.Fatalf("read the audit log: %v", err)
		}
		seen = append(seen, more...)
		return bytes.Contains(seen, []byte(mark))
	})
}

// event is what is of interest in an audit event.
type event struct {
	AuditID   string
	Verb      string
	UserAgent string
	User      struct{ Username string }
	ObjectRef struct {
		APIGroup, Resource, Subresource, Namespace, Name string
	}
	ResponseStatus           struct{ Code int }
	RequestReceivedTimestamp time.Time
}

// read decodes the log. A watch has two events, at its begin and its end, and
// counts once. A last line that is still being written is left out.
func read(log io.Reader, match Match, since time.Time) ([]Request, error) {
	var requests []Request
	seen := map[string]bool{}
	reader := bufio.NewReader(log)
	for {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return requests, nil
		}
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(line, []byte(match.UserAgent)) { // spares decoding most of a long log
			continue
		}
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("an audit event cannot be decoded: %w", err)
		}
		if seen[e.AuditID] || !match.fits(e) || e.RequestReceivedTimestamp.Before(since) {
			continue
		}
		seen[e.AuditID] = true
		requests = append(requests, Request{
			Verb: e.Verb, Group: e.ObjectRef.APIGroup, Resource: e.ObjectRef.Resource, Subresource: e.ObjectRef.Subresource,
			Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name, Code: e.ResponseStatus.Code,
			UserAgent: e.UserAgent, User: e.User.Username, Time: e.RequestReceivedTimestamp,
		})
	}
}

func (m Match) fits(e event) bool {
	return (m.User == "" || m.User == e.User.Username) &&
		(m.Namespace == "" || m.Namespace == e.ObjectRef.Namespace) &&
		strings.Contains(e.UserAgent, m.UserAgent)
}
