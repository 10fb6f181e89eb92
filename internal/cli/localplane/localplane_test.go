package localplane

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/homeostat-dev/homeostat/internal/command"
)

// pretender is a supervisor that tells how it was called, and fails when asked.
const pretender = `package main

import (
	"fmt"
	"os"
	"strings"
)

func main() {
	fmt.Println(strings.Join(os.Args[1:], "|"))
	if os.Args[len(os.Args)-1] == "fail" {
		os.Exit(5)
	}
}
`

func TestWhatIsTypedReachesTheSupervisor(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a small program")
	}
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod": "module github.com/homeostat-dev/homeostat/localplane\n\ngo 1.26.0\n", "cmd/localplane/main.go": pretender,
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if os.Getenv("GOCACHE") == "" { // keep it, though the user's cache folder moves
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv("GOCACHE", filepath.Join(cache, "go-build"))
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOMEOSTAT_LOCALPLANE_SOURCE", dir)

	for typed, want := range map[string]string{
		"up":                               "up|--wait|1m0s",
		"up x --audit --nodes simulated=2": "up|x|--wait|1m0s|--nodes|simulated=2|--audit",
		"up -o json --wait 5s":             "up|--wait|5s|--output|json",
		"down":                             "down",
		"down --all":                       "down|--all",
		"down x":                           "down|x",
		"status":                           "status|--output|table",
		"status x -o yaml":                 "status|x|--output|yaml",
		"kubeconfig x --raw":               "kubeconfig|x|--raw",
		"kubectl -- get pods -A":           "kubectl|--|get|pods|-A",
		"kubectl x -- get --help":          "kubectl|x|--|get|--help",
		"kubectl --path":                   "kubectl|--path",
	} {
		if code, out := runs(t, strings.Fields(typed)); code != command.OK || strings.TrimSpace(out) != want {
			t.Errorf("%s: code %d, got %q, want %q", typed, code, out, want)
		}
	}
	if code, _ := runs(t, []string{"kubectl", "--", "fail"}); code != 5 {
		t.Errorf("exit code %d, want kubectl's own", code)
	}
	for _, typed := range []string{"up a b", "kubectl get pods", "status --frob"} {
		if code, out := runs(t, strings.Fields(typed)); code != command.Misused || out != "" {
			t.Errorf("%s: code %d, %q; want misuse without running anything", typed, code, out)
		}
	}
}

func runs(t *testing.T, args []string) (code int, out string) {
	t.Helper()
	root := &cobra.Command{Use: "homeostat"}
	root.AddCommand(Commands("homeostat")...)
	var stdout, stderr bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr}
	return command.Run(t.Context(), streams, args, root), stdout.String()
}
