package node

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/homeostat-dev/homeostat/localplane/apiclient"
	"github.com/homeostat-dev/homeostat/localplane/pki"
)

func TestParse(t *testing.T) {
	provider, err := Parse("simulated=3")
	if err != nil {
		t.Fatal(err)
	}
	if got := provider.Names(); !slices.Equal(got, []string{"sim-1", "sim-2", "sim-3"}) {
		t.Errorf("names: %v", got)
	}
	if provider.String() != "simulated=3" {
		t.Errorf("String: %q does not read back", provider)
	}
	if !strings.Contains(provider.Notice(), "SIMULATED") {
		t.Errorf("the notice does not say that the nodes are simulated: %q", provider.Notice())
	}
	for description, want := range map[string]string{
		"real=1":        "not available yet",
		"imagined=1":    "not a kind",
		"simulated":     "simulated=N",
		"simulated=-1":  "simulated=N",
		"simulated=x":   "simulated=N",
		"simulated=1e9": "simulated=N",
	} {
		if _, err := Parse(description); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want a usage error with %q", description, err, want)
		}
	}
}

func TestProcessesGetAllStages(t *testing.T) {
	provider := &Simulated{Count: 1}
	dir := t.TempDir()
	specs, err := provider.Processes(Environment{Dir: dir, Kubeconfig: "k", Binary: func(c string) string { return "/bin/" + c }})
	if err != nil {
		t.Fatal(err)
	}
	if len(specs) != 1 || specs[0].Path != "/bin/kwok" {
		t.Fatalf("specs: %+v", specs)
	}
	content, err := os.ReadFile(dir + "/kwok.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, stage := range []string{"node-initialize", "node-heartbeat-with-lease", "pod-ready", "pod-complete", "pod-delete"} {
		if !strings.Contains(string(content), "name: "+stage) {
			t.Errorf("no stage %s: kwok would leave its objects alone", stage)
		}
	}
}

func TestJoinAgainIsNoError(t *testing.T) {
	authority, err := pki.NewAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var node struct {
			Metadata struct {
				Name        string
				Annotations map[string]string
			}
		}
		content, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(content, &node); err != nil || node.Metadata.Annotations[marker] != markerValue {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		if known[node.Metadata.Name] {
			w.WriteHeader(http.StatusConflict)
		}
		known[node.Metadata.Name] = true
	}))
	defer server.Close()
	client, err := apiclient.New(server.URL, authority.Pair.Cert, authority.Pair.Cert, authority.Pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	for _, count := range []int{1, 3, 3} {
		if err := (&Simulated{Count: count}).Join(t.Context(), client); err != nil {
			t.Fatal(err)
		}
	}
	if len(known) != 3 {
		t.Errorf("joined: %v", known)
	}
}
