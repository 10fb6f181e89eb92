package layers_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/homeostat-dev/homeostat/test/layers"
)

const root = "../.."

func load(t *testing.T) []layers.File {
	t.Helper()
	files, err := layers.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func report(t *testing.T, violations []layers.Violation) {
	t.Helper()
	for _, v := range violations {
		t.Error(v)
	}
}

func TestArrows(t *testing.T) {
	report(t, layers.Check(load(t), layers.Rules))
}

func TestPackageComments(t *testing.T) {
	report(t, layers.Comments(load(t)))
}

// listed are the folders whose subfolders the map names too.
var listed = []string{"engine", "operator", "internal", "operators", "examples", "test"}

func TestDirectoryMap(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)/` \\|").FindAllStringSubmatch(string(readme), -1) {
		named = append(named, m[1])
	}
	report(t, layers.Map(named, there(t, load(t))))
}

// there are the top-level folders with sources, and the second level where listed.
func there(t *testing.T, files []layers.File) []string {
	t.Helper()
	var out []string
	for _, f := range files {
		parts := strings.Split(f.Dir, "/")
		if parts[0] == "." {
			continue
		}
		if slices.Contains(listed, parts[0]) {
			if len(parts) > 1 {
				out = append(out, strings.Join(parts[:2], "/"))
			}
			if parts[0] != "engine" && parts[0] != "operator" {
				continue // It has no package of its own.
			}
		}
		out = append(out, parts[0])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// TestReadmeOperator keeps the operator that the README shows equal to the one
// that is compiled.
func TestReadmeOperator(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(root, "examples", "memcached", "memcached.go"))
	if err != nil {
		t.Fatal(err)
	}
	snippets := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	if len(snippets) == 0 {
		t.Fatal("README.md shows no Go code")
	}
	for _, s := range snippets {
		if !strings.Contains(string(source), s[1]) {
			t.Errorf("examples/memcached/memcached.go does not contain what README.md shows; copy it from there:\n%s", s[1])
		}
	}
}

// TestCheckCatches seeds one violation of each kind.
func TestCheckCatches(t *testing.T) {
	cases := map[string]struct {
		file layers.File
		want bool
	}{
		"an operator with a client":           {layers.File{Dir: "operators/memcached", Name: "a.go", Imports: []string{"k8s.io/client-go/dynamic"}}, true},
		"an operator that sees the engine":    {layers.File{Dir: "operators/netperf", Name: "a.go", Imports: []string{"./engine/plan"}}, true},
		"a test of an operator, the engine":   {layers.File{Dir: "operators/netperf", Name: "a_test.go", Imports: []string{"./engine"}}, true},
		"an operator that sees another":       {layers.File{Dir: "operators/machine", Name: "a.go", Imports: []string{"./operators/netperf/v1alpha1"}}, true},
		"a WebServer that sees Memcached":     {layers.File{Dir: "operators/webserver", Name: "a.go", Imports: []string{"./operators/memcached"}}, true},
		"an operator that sees its own types": {layers.File{Dir: "operators/machine", Name: "a.go", Imports: []string{"./operators/machine/v1alpha1", "./operator"}}, false},
		"an operator that reads the clock":    {layers.File{Dir: "operators/machine", Name: "a.go", Imports: []string{"time"}, Calls: []string{"time.Now"}}, true},
		"an operator with a duration":         {layers.File{Dir: "operators/machine", Name: "a.go", Imports: []string{"time"}, Calls: []string{"time.Second"}}, false},
		"the contract with a network":         {layers.File{Dir: "operator", Name: "a.go", Imports: []string{"net/http"}}, true},
		"the contract that sees the engine":   {layers.File{Dir: "operator", Name: "a.go", Imports: []string{"./engine"}}, true},
		"a plan with a client":                {layers.File{Dir: "engine/plan", Name: "a.go", Imports: []string{"k8s.io/client-go/rest"}}, true},
		"a plan that reads the clock":         {layers.File{Dir: "engine/plan", Name: "a.go", Calls: []string{"time.Now"}}, true},
		"the core that reads the clock":       {layers.File{Dir: "engine", Name: "core.go", Calls: []string{"time.Now"}}, true},
		"the shell that reads the clock":      {layers.File{Dir: "engine", Name: "engine.go", Calls: []string{"time.Now"}}, false},
		"the engine that knows an operator":   {layers.File{Dir: "engine", Name: "a.go", Imports: []string{"./operators/memcached"}}, true},
		"the engine tested with the sim":      {layers.File{Dir: "engine", Name: "a_test.go", Imports: []string{"./sim"}}, true},
		"a second writer":                     {layers.File{Dir: "internal/render", Name: "a.go", Imports: []string{"k8s.io/client-go/dynamic"}}, true},
		"somebody who needs the program":      {layers.File{Dir: "internal/verb", Name: "a.go", Imports: []string{"./internal/cli"}}, true},
		"the program itself":                  {layers.File{Dir: "cmd/homeostat", Name: "main.go", Imports: []string{"./internal/cli"}}, false},
		"localplane that imports us":          {layers.File{Dir: "localplane/plane", Name: "a.go", Imports: []string{"./operator"}}, true},
		"localplane that imports the façade":  {layers.File{Dir: "localplane/plane", Name: "a.go", Imports: []string{"./."}}, true},
		"localplane that imports itself":      {layers.File{Dir: "localplane/plane", Name: "a.go", Imports: []string{"./localplane/build"}}, false},
		"we that import localplane":           {layers.File{Dir: "internal/plane", Name: "a.go", Imports: []string{"./localplane/plane"}}, true},
		"testing in a program":                {layers.File{Dir: "engine", Name: "a.go", Imports: []string{"testing"}}, true},
		"testing in a test":                   {layers.File{Dir: "engine", Name: "a_test.go", Imports: []string{"testing"}}, false},
		"testing in test support":             {layers.File{Dir: "operator/operatortest", Name: "a.go", Imports: []string{"testing"}}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if found := layers.Check([]layers.File{c.file}, layers.Rules); (len(found) > 0) != c.want {
				t.Errorf("found %v; a violation is there: %v", found, c.want)
			}
		})
	}
}

func TestCommentsCatches(t *testing.T) {
	files := []layers.File{
		{Dir: "a", Name: "a.go"}, {Dir: "a", Name: "a_test.go", Doc: true},
		{Dir: "b", Name: "b.go"}, {Dir: "b", Name: "doc.go", Doc: true},
	}
	if found := layers.Comments(files); len(found) != 1 || found[0].Where != "a" {
		t.Errorf("found %v, want one for a: a comment in a test file is not the package's", found)
	}
}

func TestMapCatches(t *testing.T) {
	if found := layers.Map([]string{"a", "gone"}, []string{"a", "new"}); len(found) != 2 {
		t.Errorf("found %v, want the folder that is new and the one that is gone", found)
	}
}

func TestLoadReads(t *testing.T) {
	dir := t.TempDir()
	source := "// Package a is a test.\npackage a\n\nimport (\n\tclock \"time\"\n\n\t_ \"" + layers.Module + "/engine\"\n)\n\nvar _ = clock.Now\n"
	if err := os.Mkdir(filepath.Join(dir, "a"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a", "a.go"), []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := layers.Load(dir)
	if err != nil || len(files) != 1 {
		t.Fatalf("Load: %v, %v", files, err)
	}
	f := files[0]
	if !f.Doc || f.Dir != "a" || !slices.Equal(f.Imports, []string{"time", "./engine"}) || !slices.Equal(f.Calls, []string{"time.Now"}) {
		t.Errorf("got %+v", f)
	}
}
