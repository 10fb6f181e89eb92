package apiclient

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/homeostat-dev/homeostat/localplane/pki"
)

func TestErrorsCarryTheServersWords(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/taken":
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte(`{"kind":"Status","message":"nodes \"sim-1\" already exists"}`))
		case "/readyz":
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte("[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed\n"))
		}
	}))
	defer server.Close()
	authority, err := pki.NewAuthority("client")
	if err != nil {
		t.Fatal(err)
	}
	client, err := New(server.URL, authority.Pair.Cert, authority.Pair.Cert, authority.Pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Get(t.Context(), "/taken", nil); err == nil || HasCode(err, http.StatusConflict) {
		t.Fatalf("a server of another authority was trusted: %v", err)
	}

	client.http.Transport = server.Client().Transport
	err = client.Post(t.Context(), "/taken", map[string]string{})
	if !HasCode(err, http.StatusConflict) || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("conflict: got %v", err)
	}
	err = client.Get(t.Context(), "/readyz", nil)
	if err == nil || !strings.Contains(err.Error(), "etcd failed") || strings.Contains(err.Error(), "ping") {
		t.Errorf("readyz: got %v, want the failed checks alone", err)
	}
}
