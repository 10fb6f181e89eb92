package verb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/homeostat-dev/homeostat/internal/command"
)

// Tree is the command that shows an object with all that belongs to it.
func Tree(program string) *cobra.Command {
	output := ""
	cluster := connection(true)
	c := &cobra.Command{
		Use:   "tree KIND NAME",
		Short: "Show an object and everything that belongs to it, with its state",
		Long: `Show an object and, below it, the objects that name it as their owner, those that
name them, and so on; each with its state as kstatus reads it: Current, InProgress,
Failed, Terminating or Unknown. It works for every kind, whoever made the object.
Kinds that you may not list are left out, and named on stderr.

` + command.Codes,
		Example: examples(program, `
# What a Memcached consists of, down to the pods.
{} tree memcached memcached-sample

# In another namespace, for a program.
{} tree deployment web -n shop -o json`),
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			return tree(c, cluster, args[0], args[1], output)
		},
	}
	cluster.AddFlags(c.Flags())
	outputFlag(c, &output, "text", "text", "json", "yaml")
	return c
}

// node is an object in a tree.
type node struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Namespace  string    `json:"namespace,omitempty"`
	Name       string    `json:"name"`
	UID        types.UID `json:"uid"`
	Ready      string    `json:"ready"`
	Reason     string    `json:"reason,omitempty"`
	Message    string    `json:"message,omitempty"`
	Created    time.Time `json:"created"`
	Children   []*node   `json:"children,omitempty"`
}

func tree(c *cobra.Command, cluster *genericclioptions.ConfigFlags, kind, name, output string) error {
	config, err := configOf(cluster)
	if err != nil {
		return err
	}
	root, err := find(cluster, kind, name)
	if err != nil {
		return err
	}
	f, err := newForest(config)
	if err != nil {
		return err
	}
	n, err := f.grow(c.Context(), root)
	if err != nil {
		return err
	}
	for _, note := range f.notes() {
		_, _ = fmt.Fprintln(c.ErrOrStderr(), note)
	}
	if output != "text" {
		return encode(c.OutOrStdout(), output, n)
	}
	return draw(c.OutOrStdout(), n, time.Now())
}

// find is the object that a user names as for kubectl.
func find(cluster *genericclioptions.ConfigFlags, kind, name string) (*unstructured.Unstructured, error) {
	if strings.Contains(kind, "/") || strings.Contains(kind, ",") || strings.Contains(name, "/") {
		return nil, command.Usagef("give one kind and one name")
	}
	namespace, _, err := cluster.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, fmt.Errorf("find the namespace: %w; give --namespace", err)
	}
	infos, err := resource.NewBuilder(cluster).Unstructured().NamespaceParam(namespace).DefaultNamespace().
		ResourceTypeOrNameArgs(false, kind, name).SingleResourceType().Do().Infos()
	if err != nil {
		return nil, fmt.Errorf("find %s %s: %w", kind, name, err)
	}
	object, ok := infos[0].Object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("find %s %s: the answer is a %T", kind, name, infos[0].Object)
	}
	return object, nil
}

// forest finds what belongs to an object. Metadata of all kinds says what
// belongs to whom; only what is in the tree is read whole.
type forest struct {
	discovery discovery.DiscoveryInterface
	metadata  metadata.Interface
	dynamic   dynamic.Interface

	mu        sync.Mutex
	owned     map[types.UID][]member
	forbidden []string
	failed    []string
}

// served is a kind that can be listed.
type served struct {
	schema.GroupVersionResource
	kind string
}

// member is an object that names an owner.
type member struct {
	served
	meta *metav1.PartialObjectMetadata
}

func newForest(config *rest.Config) (*forest, error) {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{} // That a kind is deprecated is not the question.
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", config.Host, err)
	}
	m, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", config.Host, err)
	}
	o, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", config.Host, err)
	}
	return &forest{discovery: d, metadata: m, dynamic: o, owned: map[types.UID][]member{}}, nil
}

// inFlight is how many requests are made at once.
const inFlight = 16

// each calls do for every item, several at once.
func each[T any](items []T, do func(T)) {
	slots := make(chan struct{}, inFlight)
	var all sync.WaitGroup
	for _, item := range items {
		slots <- struct{}{}
		all.Go(func() {
			do(item)
			<-slots
		})
	}
	all.Wait()
}

// grow is the tree of an object.
func (f *forest) grow(ctx context.Context, root *unstructured.Unstructured) (*node, error) {
	kinds, err := f.kinds(root.GetNamespace())
	if err != nil {
		return nil, err
	}
	each(kinds, func(k served) { f.list(ctx, k, root.GetNamespace()) })
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	top := nodeOf(root)
	var members []placed
	f.attach(top, map[types.UID]bool{root.GetUID(): true}, &members)
	each(members, func(p placed) { f.read(ctx, p) })
	return top, ctx.Err()
}

// kinds are what may be listed where the children of an object can be: those of
// a namespaced object are in its namespace. Events are about objects and belong
// to none. What cannot be discovered is noted.
func (f *forest) kinds(namespace string) ([]served, error) {
	lists, err := f.discovery.ServerPreferredResources()
	if broken, ok := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err); ok {
		for gv := range broken.Groups {
			f.failed = append(f.failed, gv.String())
		}
	} else if err != nil {
		return nil, fmt.Errorf("ask what kinds there are: %w", err)
	}
	var out []served
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, r := range list.APIResources {
			reachable := r.Namespaced || namespace == ""
			if reachable && r.Name != "events" && slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "get") {
				out = append(out, served{gv.WithResource(r.Name), r.Kind})
			}
		}
	}
	return out, nil
}

// list notes which objects of a kind have an owner.
func (f *forest) list(ctx context.Context, kind served, namespace string) {
	options := metav1.ListOptions{Limit: 1000}
	for {
		page, err := f.metadata.Resource(kind.GroupVersionResource).Namespace(namespace).List(ctx, options)
		if err != nil {
			f.miss(kind, err)
			return
		}
		f.mu.Lock()
		for i := range page.Items {
			for _, owner := range page.Items[i].OwnerReferences {
				f.owned[owner.UID] = append(f.owned[owner.UID], member{kind, &page.Items[i]})
			}
		}
		f.mu.Unlock()
		if options.Continue = page.Continue; options.Continue == "" {
			return
		}
	}
}

// miss notes a kind that could not be listed. One that has gone has no objects.
func (f *forest) miss(kind served, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case apierrors.IsForbidden(err):
		f.forbidden = append(f.forbidden, kind.GroupResource().String())
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
	default:
		f.failed = append(f.failed, kind.GroupResource().String())
	}
}

func (f *forest) notes() []string {
	var out []string
	for what, names := range map[string][]string{"not seen, because you may not list them": f.forbidden, "not seen, because the server did not answer": f.failed} {
		if slices.Sort(names); len(names) > 0 {
			out = append(out, what+": "+strings.Join(names, ", "))
		}
	}
	slices.Sort(out)
	return out
}

// placed is a node whose object is to be read.
type placed struct {
	node   *node
	member member
}

// attach hangs what belongs to a node below it. An object is shown once, where
// it is met first: owners may go round in circles, and one object may be served
// by two API groups.
func (f *forest) attach(n *node, seen map[types.UID]bool, all *[]placed) {
	below := f.owned[n.UID]
	slices.SortFunc(below, func(a, b member) int {
		return cmp.Or(strings.Compare(a.kind, b.kind), strings.Compare(a.meta.Namespace, b.meta.Namespace),
			strings.Compare(a.meta.Name, b.meta.Name), strings.Compare(a.Group, b.Group))
	})
	for _, m := range below {
		if seen[m.meta.UID] {
			continue
		}
		seen[m.meta.UID] = true
		child := &node{
			APIVersion: m.GroupVersion().String(), Kind: m.kind, Namespace: m.meta.Namespace, Name: m.meta.Name,
			UID: m.meta.UID, Ready: string(kstatus.UnknownStatus), Created: m.meta.CreationTimestamp.Time,
		}
		n.Children = append(n.Children, child)
		*all = append(*all, placed{child, m})
	}
	for _, child := range n.Children {
		f.attach(child, seen, all)
	}
}

// read fills a node in. What has gone meanwhile, or may be listed but not read,
// stays as the list had it.
func (f *forest) read(ctx context.Context, p placed) {
	o, err := f.dynamic.Resource(p.member.GroupVersionResource).Namespace(p.node.Namespace).Get(ctx, p.node.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || err == nil && o.GetUID() != p.node.UID:
		p.node.Ready = string(kstatus.NotFoundStatus)
	case err != nil:
		p.node.Reason = string(apierrors.ReasonForError(err))
	default:
		children := p.node.Children
		*p.node = *nodeOf(o)
		p.node.Children = children
	}
}

// nodeOf is an object without children.
func nodeOf(o *unstructured.Unstructured) *node {
	n := &node{
		APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(),
		Ready: string(kstatus.UnknownStatus), Created: o.GetCreationTimestamp().Time,
	}
	result, err := kstatus.Compute(o)
	if err != nil {
		n.Message = err.Error()
		return n
	}
	n.Ready = string(result.Status)
	if result.Status == kstatus.CurrentStatus {
		if phase, _, _ := unstructured.NestedString(o.Object, "status", "phase"); n.Kind == "Pod" && n.APIVersion == "v1" && phase == "Failed" {
			n.Ready, n.Message = string(kstatus.FailedStatus), "the pod has failed" // To kstatus it is current: nothing moves any more.
			n.Reason, _, _ = unstructured.NestedString(o.Object, "status", "reason")
		}
		return n
	}
	n.Message = result.Message
	for _, c := range result.Conditions {
		n.Reason = c.Reason
	}
	return n
}

// draw writes a tree as a table.
func draw(w io.Writer, root *node, now time.Time) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "NAMESPACE\tNAME\tREADY\tREASON\tAGE") // Errors of a tabwriter come with Flush.
	row(table, root, "", "", now)
	return table.Flush()
}

// row writes a node and those below it; first is what stands before its own
// name, rest before those of its children.
func row(table io.Writer, n *node, first, rest string, now time.Time) {
	age := "<unknown>"
	if !n.Created.IsZero() {
		age = duration.HumanDuration(now.Sub(n.Created))
	}
	_, _ = fmt.Fprintf(table, "%s\t%s%s/%s\t%s\t%s\t%s\n", n.Namespace, first, n.Kind, n.Name, n.Ready, n.Reason, age)
	for i, child := range n.Children {
		if i == len(n.Children)-1 {
			row(table, child, rest+"└─", rest+"  ", now)
		} else {
			row(table, child, rest+"├─", rest+"│ ", now)
		}
	}
}
