package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/homeostat-dev/homeostat/internal/plane"
)

type options struct {
	kubeconfig, auditLog, profile string
	parents, concurrency          int
	heals                         int
	quiet                         time.Duration
}

// plane starts a local plane where no cluster was given.
func (o *options) plane(ctx context.Context) (down func(), err error) {
	if o.kubeconfig != "" {
		return func() {}, nil
	}
	info, err := plane.Up(ctx, "bench", plane.Options{Audit: true})
	if err != nil {
		return nil, err
	}
	o.kubeconfig, o.auditLog = info.Kubeconfig, info.AuditLog
	return func() { _ = plane.Down(context.WithoutCancel(ctx), "bench") }, nil
}

var (
	trios      = schema.GroupVersionResource{Group: "bench.homeostat.dev", Version: "v1", Resource: "trios"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	crds       = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

type bench struct {
	options
	config *rest.Config
	client dynamic.Interface
	agent  string
	// namespace is the engine's, posts and applies are those of the two floors.
	namespace, posts, applies string
}

func (b *bench) namespaces() []string { return []string{b.namespace, b.posts, b.applies} }

func newBench(ctx context.Context, config *rest.Config, o options) (*bench, error) {
	c, err := client(config, "homeostat-bench-user")
	if err != nil {
		return nil, err
	}
	id := fmt.Sprintf("bench-%d", time.Now().UnixNano()%1e9)
	b := &bench{options: o, config: config, client: c, agent: "homeostat-" + id, namespace: id, posts: id + "-posts", applies: id + "-applies"}
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(crd, &definition.Object); err != nil {
		return nil, err
	}
	if _, err := c.Resource(crds).Apply(ctx, definition.GetName(), definition, metav1.ApplyOptions{FieldManager: "bench", Force: true}); err != nil {
		return nil, fmt.Errorf("install the CRD: %w", err)
	}
	for _, name := range b.namespaces() {
		ns := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
		if _, err := c.Resource(namespaces).Create(ctx, ns, metav1.CreateOptions{}); err != nil {
			return nil, fmt.Errorf("make namespace %s: %w", name, err)
		}
	}
	return b, b.served(ctx)
}

// served waits until the CRD is.
func (b *bench) served(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		_, err := b.client.Resource(trios).Namespace(b.namespace).List(ctx, metav1.ListOptions{Limit: 1})
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the CRD is not served: %w", err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (b *bench) clean() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, name := range b.namespaces() {
		_ = b.client.Resource(namespaces).Delete(ctx, name, metav1.DeleteOptions{})
	}
}

func (b *bench) run(ctx context.Context) error {
	fmt.Printf("%d parents x %d ConfigMaps, %d at once\n", b.parents, childrenPerParent, b.concurrency)
	floor, err := b.measureFloor(ctx, b.posts, b.post)
	if err != nil {
		return fmt.Errorf("floor: %w", err)
	}
	applies, err := b.measureFloor(ctx, b.applies, b.apply)
	if err != nil {
		return fmt.Errorf("floor of applies: %w", err)
	}
	before := heap()
	if err := b.createParents(ctx, b.namespace); err != nil {
		return err
	}
	profiled, err := b.startProfile()
	if err != nil {
		return err
	}
	start := time.Now()
	stop, err := startEngine(b.config, b.agent, b.namespace, b.concurrency)
	if err != nil {
		return err
	}
	defer stop()
	if err := b.awaitReady(ctx); err != nil {
		return err
	}
	took := time.Since(start)
	profiled()
	children := float64(b.parents * childrenPerParent)
	fmt.Printf("time to converge      %8.2fs   floor %.2fs   ratio %.2f   (the same by bare exclusive applies %.2fs, ratio %.2f)\n",
		took.Seconds(), floor.Seconds(), took.Seconds()/floor.Seconds(), applies.Seconds(), took.Seconds()/applies.Seconds())
	fmt.Printf("heap of the process   %8.1f MiB for %d objects   (%.1f KiB per child, all of it counted)\n",
		float64(heap()-before)/(1<<20), b.parents+int(children), float64(heap()-before)/children/1024)
	b.printRequests("requests to converge", time.Time{}, b.parents*(childrenPerParent+1))
	if err := b.measureQuiet(ctx); err != nil {
		return err
	}
	return b.measureHealing(ctx)
}

// startProfile profiles the processor from here until the returned function is called.
func (b *bench) startProfile() (stop func(), err error) {
	if b.profile == "" {
		return func() {}, nil
	}
	f, err := os.Create(b.profile)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
	}, nil
}

// measureFloor makes the same children with bare concurrent requests, and one
// status write per parent.
func (b *bench) measureFloor(ctx context.Context, namespace string, create func(context.Context, *unstructured.Unstructured) error) (time.Duration, error) {
	if err := b.createParents(ctx, namespace); err != nil {
		return 0, err
	}
	start := time.Now()
	err := b.each(func(i int) error {
		t := &Trio{ObjectMeta: metav1.ObjectMeta{Name: parentName(i)}}
		t.Spec.Value = "one"
		for n := range childrenPerParent {
			values, err := apiruntime.DefaultUnstructuredConverter.ToUnstructured(child(t, n))
			if err != nil {
				return err
			}
			u := &unstructured.Unstructured{Object: values}
			u.SetAPIVersion("v1")
			u.SetKind("ConfigMap")
			u.SetNamespace(namespace)
			if err := create(ctx, u); err != nil {
				return err
			}
		}
		_, err := b.client.Resource(trios).Namespace(namespace).Patch(ctx, t.Name, types.MergePatchType,
			[]byte(`{"status":{"count":3}}`), metav1.PatchOptions{}, "status")
		return err
	})
	return time.Since(start), err
}

func (b *bench) post(ctx context.Context, u *unstructured.Unstructured) error {
	_, err := b.client.Resource(configMaps).Namespace(u.GetNamespace()).Create(ctx, u, metav1.CreateOptions{})
	return err
}

func (b *bench) apply(ctx context.Context, u *unstructured.Unstructured) error {
	u.SetResourceVersion("1")
	_, err := b.client.Resource(configMaps).Namespace(u.GetNamespace()).Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: "bench", Force: true})
	return err
}

func parentName(i int) string { return fmt.Sprintf("trio-%05d", i) }

func (b *bench) createParents(ctx context.Context, namespace string) error {
	return b.each(func(i int) error {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "bench.homeostat.dev/v1", "kind": "Trio",
			"metadata": map[string]any{"name": parentName(i)}, "spec": map[string]any{"value": "one"},
		}}
		_, err := b.client.Resource(trios).Namespace(namespace).Create(ctx, u, metav1.CreateOptions{})
		return err
	})
}

// each does something for every parent, as many at once as the engine does.
func (b *bench) each(do func(int) error) error {
	next, failed := make(chan int), make(chan error, b.parents)
	done := make(chan struct{})
	for range b.concurrency {
		go func() {
			for i := range next {
				if err := do(i); err != nil {
					failed <- err
				}
			}
			done <- struct{}{}
		}()
	}
	for i := range b.parents {
		next <- i
	}
	close(next)
	for range b.concurrency {
		<-done
	}
	close(failed)
	var errs []error
	for err := range failed {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// awaitReady watches until every parent's saved status counts its children.
func (b *bench) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	list, err := b.client.Resource(trios).Namespace(b.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	ready := map[string]bool{}
	note := func(u *unstructured.Unstructured) {
		count, _, _ := unstructured.NestedInt64(u.Object, "status", "count")
		ready[u.GetName()] = count == childrenPerParent
	}
	for i := range list.Items {
		note(&list.Items[i])
	}
	w, err := b.client.Resource(trios).Namespace(b.namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		return err
	}
	defer w.Stop()
	for {
		if missing := countFalse(ready); missing == 0 {
			return nil
		}
		select {
		case e := <-w.ResultChan():
			if u, ok := e.Object.(*unstructured.Unstructured); ok {
				note(u)
			}
		case <-ctx.Done():
			return fmt.Errorf("%d of %d parents are not ready: %w", countFalse(ready), b.parents, ctx.Err())
		}
	}
}

func countFalse(m map[string]bool) int {
	n := 0
	for _, ok := range m {
		if !ok {
			n++
		}
	}
	return n
}

func (b *bench) measureQuiet(ctx context.Context) error {
	since := time.Now()
	select {
	case <-time.After(b.quiet):
	case <-ctx.Done():
		return ctx.Err()
	}
	b.printRequests(fmt.Sprintf("requests in %v quiet", b.quiet), since, 0)
	return nil
}

// measureHealing deletes children one at a time and waits for each to return.
func (b *bench) measureHealing(ctx context.Context) error {
	resource := b.client.Resource(configMaps).Namespace(b.namespace)
	w, err := resource.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer w.Stop()
	var heal, bare []time.Duration
	for i := range min(b.heals, b.parents) {
		name := child(&Trio{ObjectMeta: metav1.ObjectMeta{Name: parentName(i)}}, 0).Name
		start := time.Now()
		if err := resource.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			return err
		}
		if err := awaitAdded(ctx, w, name, start); err != nil {
			return err
		}
		heal = append(heal, time.Since(start))
		took, err := b.roundTrip(ctx, w, i)
		if err != nil {
			return err
		}
		bare = append(bare, took)
	}
	slices.Sort(heal)
	slices.Sort(bare)
	fmt.Printf("deleted child returns %8.1fms median, %.1fms worst of %d   (a bare POST until its watch event: %.1fms median)\n",
		ms(heal[len(heal)/2]), ms(heal[len(heal)-1]), len(heal), ms(bare[len(bare)/2]))
	return nil
}

// roundTrip is a POST and the watch event that it causes.
func (b *bench) roundTrip(ctx context.Context, w watch.Interface, i int) (time.Duration, error) {
	name := fmt.Sprintf("bare-%d", i)
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}}}
	start := time.Now()
	if _, err := b.client.Resource(configMaps).Namespace(b.namespace).Create(ctx, u, metav1.CreateOptions{}); err != nil {
		return 0, err
	}
	err := awaitAdded(ctx, w, name, start)
	return time.Since(start), err
}

// awaitAdded waits for the event that an object appeared after a moment.
func awaitAdded(ctx context.Context, w watch.Interface, name string, _ time.Time) error {
	deadline := time.After(30 * time.Second)
	deleted := strings.HasPrefix(name, "bare-")
	for {
		select {
		case e := <-w.ResultChan():
			u, ok := e.Object.(*unstructured.Unstructured)
			if !ok || u.GetName() != name {
				continue
			}
			deleted = deleted || e.Type == watch.Deleted
			if deleted && e.Type == watch.Added {
				return nil
			}
		case <-deadline:
			return fmt.Errorf("%s did not appear within 30 s", name)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// printRequests counts the engine's requests in the audit log, by verb. Lists,
// watches, discovery and leases are not counted, events apart.
func (b *bench) printRequests(what string, since time.Time, floor int) {
	if b.auditLog == "" {
		fmt.Printf("%-21s not counted: no audit log given\n", what)
		return
	}
	counts, err := countRequests(b.auditLog, b.agent, since)
	if err != nil {
		fmt.Printf("%-21s not counted: %v\n", what, err)
		return
	}
	total := 0
	var parts []string
	for _, verb := range sortedKeys(counts) {
		parts = append(parts, fmt.Sprintf("%s %d", verb, counts[verb]))
		if verb != "events" {
			total += counts[verb]
		}
	}
	ratio := ""
	if floor > 0 {
		ratio = fmt.Sprintf("   floor %d   ratio %.3f", floor, float64(total)/float64(floor))
	}
	fmt.Printf("%-21s %8d   %s%s\n", what, total, strings.Join(parts, ", "), ratio)
}

func countRequests(path, agent string, since time.Time) (map[string]int, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	counts := map[string]int{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			Stage, Verb, UserAgent   string
			ObjectRef                *struct{ Resource, Subresource string }
			RequestReceivedTimestamp time.Time
		}
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.UserAgent != agent || e.Stage != "ResponseComplete" || e.ObjectRef == nil ||
			e.RequestReceivedTimestamp.Before(since) || e.Verb == "watch" || e.Verb == "list" || e.ObjectRef.Resource == "leases" {
			continue
		}
		if e.ObjectRef.Resource == "events" {
			counts["events"]++
			continue
		}
		key := e.Verb + " " + e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			key += "/" + e.ObjectRef.Subresource
		}
		counts[key]++
	}
	return counts, lines.Err()
}

func sortedKeys(m map[string]int) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
