package operatortest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/homeostat-dev/homeostat/operator"
)

// defaultNow is the time in worlds that do not name one.
const defaultNow = "2026-01-01T00:00:00Z"

// fixture is one file: a world and the expected sections.
type fixture struct {
	archive *txtar.Archive
	world   World
	want    map[string]string
}

func parseFixture(op *operator.Operator, data []byte) (*fixture, error) {
	f := &fixture{archive: txtar.Parse(data), want: map[string]string{}}
	f.world.Now, _ = time.Parse(time.RFC3339, defaultNow)
	seen := map[string]bool{}
	for _, file := range f.archive.Files {
		if seen[file.Name] {
			return nil, fmt.Errorf("section %s is there twice", file.Name)
		}
		seen[file.Name] = true
		if err := f.section(op, file.Name, file.Data); err != nil {
			return nil, fmt.Errorf("section %s: %w", file.Name, err)
		}
	}
	if f.world.Parent == nil {
		return nil, errors.New("there is no section parent.yaml")
	}
	if err := f.world.complete(op); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *fixture) section(op *operator.Operator, name string, data []byte) (err error) {
	w := &f.world
	switch {
	case name == "now":
		w.Now, err = time.Parse(time.RFC3339Nano, strings.TrimSpace(string(data)))
	case name == "parent.yaml":
		var parents []*unstructured.Unstructured
		if parents, err = parseObjects(data, op.Parent.GroupVersionKind); err == nil && len(parents) != 1 {
			err = fmt.Errorf("it has %d objects, not one", len(parents))
		}
		if err == nil {
			w.Parent = parents[0]
		}
	case name == "children.yaml":
		w.Children, err = parseObjects(data, noKind)
	case name == "related.yaml":
		w.Related, err = parseObjects(data, noKind)
	case name == "taken":
		w.Taken, err = parseTaken(op, string(data))
	case strings.HasPrefix(name, "want/") && slices.Contains(sections, strings.TrimPrefix(strings.TrimPrefix(name, "want/"), "settled/")):
		f.want[strings.TrimPrefix(name, "want/")] = string(data)
	default:
		err = errors.New("there is no such section; see the package comment")
	}
	return err
}

// parseTaken reads lines such as "Pod netperf-server-0123456789ab".
func parseTaken(op *operator.Operator, text string) ([]operator.Ref, error) {
	var refs []operator.Ref
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		i := slices.IndexFunc(op.Children, func(c operator.Child) bool { return c.Kind.Kind == words[0] })
		if len(words) != 2 || i < 0 {
			return nil, fmt.Errorf("%q is not a declared child kind and a name", strings.TrimSpace(line))
		}
		ref := operator.Ref{Kind: op.Children[i].Kind.GroupVersionKind, Name: words[1]}
		if namespace, name, ok := strings.Cut(words[1], "/"); ok {
			ref.Namespace, ref.Name = namespace, name
		}
		refs = append(refs, ref)
	}
	return refs, nil
}

// answer asks the operator about the world and checks the laws. The answer, as
// sections, is there even when the error says that a law is broken.
func (f *fixture) answer(op *operator.Operator) (map[string]string, error) {
	got := map[string]string{}
	first, err := op.Decide(f.world.Request(op))
	renderAnswer(got, "", first, err)
	lawErr := Check(op, f.world)
	if err != nil || lawErr != nil {
		return got, lawErr
	}
	settled, err := Settle(op, f.world)
	atRest := map[string]string{}
	renderAnswer(atRest, "", settled.Decision, err)
	for _, name := range sections {
		if atRest[name] != got[name] {
			got["settled/"+name] = orNothing(atRest[name])
		}
	}
	return got, nil
}

// orNothing marks a section that is empty at rest although it was not at first.
func orNothing(text string) string {
	if text == "" {
		return "# nothing\n"
	}
	return text
}

// compare is the difference of the expected sections to the given ones.
func (f *fixture) compare(got map[string]string) string {
	return cmp.Diff(f.want, got)
}

// format is the file with the answer in place of what was expected.
func (f *fixture) format(got map[string]string) []byte {
	a := &txtar.Archive{Comment: f.archive.Comment}
	for _, file := range f.archive.Files {
		if !strings.HasPrefix(file.Name, "want/") {
			a.Files = append(a.Files, file)
		}
	}
	for _, prefix := range []string{"", "settled/"} {
		for _, name := range sections {
			if text, ok := got[prefix+name]; ok {
				a.Files = append(a.Files, txtar.File{Name: "want/" + prefix + name, Data: []byte(text)})
			}
		}
	}
	return bytes.TrimLeft(txtar.Format(a), "\n")
}
