package verb

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/homeostat-dev/homeostat/internal/command"
	"github.com/homeostat-dev/homeostat/internal/manifest"
	"github.com/homeostat-dev/homeostat/internal/render"
	"github.com/homeostat-dev/homeostat/operator"
)

// maxInput bounds a file that is read: an API server takes objects of 3 MiB at
// most, and a file may hold several.
const maxInput = 64 << 20

type renderOptions struct {
	file, children, related []string
	namespace, output, now  string
	status                  bool
}

// Render is the command that shows what a custom resource becomes.
func Render(program string, ops []*operator.Operator) *cobra.Command {
	o := &renderOptions{}
	c := &cobra.Command{
		Use:   "render -f FILE",
		Short: "Print the children of a custom resource, without a cluster",
		Long: `Print the children that an operator makes of a custom resource in a file. No cluster is
needed. The resource is defaulted and validated by its definition first; what a
cluster would give it, such as a UID, is made up, the same every time.

The answer is that of one round: what the operator says to what it is shown.
Show it existing objects with --children and --related.`,
		Example: examples(program, `
# The children of a custom resource.
{} render -f sample.yaml

# With the new status, given a pod that exists.
{} render -f sample.yaml --status --related pods.yaml

# From stdin.
cat sample.yaml | {} render -f -`),
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c, ops) },
	}
	f := c.Flags()
	f.StringSliceVarP(&o.file, "filename", "f", nil, "file with the custom resource; - for stdin")
	f.StringSliceVar(&o.children, "children", nil, "files with children that exist")
	f.StringSliceVar(&o.related, "related", nil, "files with other objects that exist")
	f.StringVarP(&o.namespace, "namespace", "n", "default", "namespace of objects that name none")
	f.BoolVar(&o.status, "status", false, "print the custom resource with its new status first")
	f.StringVar(&o.now, "now", "", "the time that the operator sees, RFC 3339 (default now)")
	outputFlag(c, &o.output, "yaml", "yaml", "json")
	return c
}

func (o *renderOptions) run(c *cobra.Command, ops []*operator.Operator) error {
	if len(o.file) == 0 {
		return command.Usagef("no custom resource: give -f FILE")
	}
	in := render.Input{Namespace: o.namespace, Now: time.Now()}
	var err error
	if o.now != "" {
		if in.Now, err = time.Parse(time.RFC3339Nano, o.now); err != nil {
			return command.Usagef("--now: %w", err)
		}
	}
	parents, err := read(c.InOrStdin(), o.file)
	if err != nil {
		return err
	}
	if len(parents) == 0 {
		return fmt.Errorf("%s: there is no object in it", strings.Join(o.file, ", "))
	}
	if in.Children, err = read(c.InOrStdin(), o.children); err != nil {
		return err
	}
	if in.Related, err = read(c.InOrStdin(), o.related); err != nil {
		return err
	}
	var objects []runtime.Object
	for _, parent := range parents {
		in.Parent = parent
		answer, err := answer(ops, in, o.status)
		if err != nil {
			return err
		}
		objects = append(objects, answer...)
	}
	return manifest.Write(c.OutOrStdout(), manifest.Format(o.output), objects)
}

// answer is what the operators that look after the parent say.
func answer(ops []*operator.Operator, in render.Input, status bool) ([]runtime.Object, error) {
	var objects []runtime.Object
	var known []string
	found := false
	for _, op := range ops {
		if err := op.Validate(); err != nil {
			return nil, err
		}
		known = append(known, fmt.Sprintf("%s %s", op.Parent.GroupVersion(), op.Parent.Kind))
		if op.Parent.GroupVersionKind != in.Parent.GroupVersionKind() {
			continue
		}
		found = true
		out, err := render.Render(op, in)
		if err != nil {
			return nil, err
		}
		if status {
			objects = append(objects, out.Parent)
		}
		for _, child := range out.Children {
			objects = append(objects, child)
		}
	}
	if !found {
		return nil, fmt.Errorf("no operator here looks after %s %s; they look after: %s",
			in.Parent.GetAPIVersion(), in.Parent.GetKind(), strings.Join(known, ", "))
	}
	return objects, nil
}

// read reads the objects of files, YAML or JSON, several to a file.
func read(stdin io.Reader, names []string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, name := range names {
		data, err := contents(stdin, name)
		if err != nil {
			return nil, err
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
		for {
			o := &unstructured.Unstructured{}
			err := decoder.Decode(&o.Object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			if len(o.Object) == 0 {
				continue
			}
			if o.GetAPIVersion() == "" || o.GetKind() == "" {
				return nil, fmt.Errorf("%s: an object without apiVersion or kind", name)
			}
			out = append(out, o)
		}
	}
	return out, nil
}

func contents(stdin io.Reader, name string) ([]byte, error) {
	source := stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
		source = file
	}
	data, err := io.ReadAll(io.LimitReader(source, maxInput+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(data) > maxInput {
		return nil, fmt.Errorf("%s has more than the %d bytes that are read", name, maxInput)
	}
	return data, nil
}
