package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/homeostat-dev/homeostat/internal/plane"
)

// conductor sets the stage for contestants and watches what becomes of it.
type conductor struct {
	options
	api    *api
	audit  auditLog
	id     string
	phases int
}

// phase is one contestant at work on a namespace of its own.
type phase struct {
	*conductor
	entry
	parents, poisoned int
	edits             int
	events            <-chan event
	tell              io.WriteCloser
	answers           *bufio.Reader
	wait              func() error
}

func conduct(ctx context.Context) (err error) {
	o, err := parse(os.Args[1:])
	if err != nil {
		return err
	}
	down, err := o.plane(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, down()) }()
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return fmt.Errorf("read %s: %w", o.kubeconfig, err)
	}
	c, err := newConductor(ctx, config, o)
	if err != nil {
		return err
	}
	results, err := c.all(ctx)
	if err != nil {
		return err
	}
	document := results.markdown()
	fmt.Println(document)
	if o.out == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(o.out), 0o755); err != nil {
		return err
	}
	return os.WriteFile(o.out, []byte(document), 0o644)
}

// plane starts a local plane where no cluster was given.
func (o *options) plane(ctx context.Context) (down func() error, err error) {
	if o.kubeconfig != "" {
		return func() error { return nil }, nil
	}
	info, err := plane.Up(ctx, "bench", plane.Options{Audit: true, Program: "homeostat"})
	if err != nil {
		return nil, err
	}
	o.kubeconfig, o.auditLog, o.planeDir = info.Kubeconfig, info.AuditLog, info.Dir
	return func() error { return plane.Down(context.WithoutCancel(ctx), "bench") }, nil
}

func newConductor(ctx context.Context, config *rest.Config, o options) (*conductor, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.UserAgent = -1, "homeostat-bench"
	a, err := newAPI(config)
	if err != nil {
		return nil, err
	}
	c := &conductor{options: o, api: a, audit: auditLog{path: o.auditLog}, id: fmt.Sprintf("bench-%d", time.Now().UnixNano()%1e9)}
	var version struct{ GitVersion string }
	if err := a.get(ctx, &version, "/version"); err != nil {
		return nil, fmt.Errorf("ask the cluster for its version: %w", err)
	}
	c.kubernetes = version.GitVersion
	definition, err := yaml.YAMLToJSON(crd)
	if err != nil {
		return nil, err
	}
	const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/trios.bench.homeostat.dev"
	if err := a.send(ctx, a.client.Patch(types.ApplyYAMLPatchType).Param("force", "true").Param("fieldManager", "bench"), definition, path); err != nil {
		return nil, fmt.Errorf("install the CRD: %w", err)
	}
	return c, c.collected(ctx)
}

// collected waits until the garbage collector watches the new kind. Until then
// it asks for each parent that a child names, which would be counted against
// whoever is first.
func (c *conductor) collected(ctx context.Context) error {
	if c.auditLog == "" {
		return pause(ctx, time.Minute)
	}
	progress("waiting until the garbage collector knows the kind")
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	var seen time.Time
	for seen.IsZero() {
		err := c.audit.each(func(e auditEntry) {
			if seen.IsZero() && e.ObjectRef.Resource == "trios" && e.Verb == "watch" && strings.Contains(e.UserAgent, "kube-controller-manager") {
				seen = e.RequestReceivedTimestamp
			}
		})
		if err == nil && seen.IsZero() {
			err = pause(ctx, time.Second)
		}
		if err != nil {
			return fmt.Errorf("wait for the controller manager to watch Trios: %w", err)
		}
	}
	const period = 35 * time.Second // The quotas share that watch; the collector looks for new kinds every 30 s.
	if err := pause(ctx, time.Until(seen.Add(period))); err != nil {
		return err
	}
	return c.settle(ctx)
}

// settle waits until the plane has little to do, so that one contestant does not
// pay for another, and a while for the rest of the machine to become quiet.
func (c *conductor) settle(ctx context.Context) error {
	const little, mostSeconds = 0.3, 300
	for i := range mostSeconds {
		before := processors(c.planeDir)
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
		used := since(processors(c.planeDir), before)
		all, ours := used[busyAll], 0.0
		for k, v := range used {
			if k != busyAll {
				ours += v
			}
		}
		if ours < little && (all-ours < little || i > mostSeconds/2 || c.planeDir == "") {
			return nil
		}
	}
	return errors.New("the cluster does not come to rest; is somebody else using it?")
}

// stage makes a namespace with parents and a contestant that is ready to begin.
func (c *conductor) stage(ctx context.Context, kind string, atOnce, parents, poisoned int) (*phase, error) {
	c.phases++
	name := fmt.Sprintf("%s-%d", c.id, c.phases)
	p := &phase{conductor: c, parents: parents, poisoned: poisoned, entry: entry{
		kind: kind, kubeconfig: c.kubeconfig, namespace: name, agent: name + "-" + kind, atOnce: atOnce,
	}}
	if c.profiles != "" {
		p.profile = filepath.Join(c.profiles, fmt.Sprintf("%s-%d-%d-%d.cpu.prof", kind, parents+poisoned, atOnce, c.phases))
	}
	if err := c.post(ctx, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}, "/api/v1/namespaces"); err != nil {
		return nil, fmt.Errorf("make namespace %s: %w", name, err)
	}
	if err := p.createParents(ctx); err != nil {
		return nil, fmt.Errorf("make parents: %w", err)
	}
	var err error
	if p.events, err = c.api.watch(ctx, name); err != nil {
		return nil, err
	}
	if err := p.start(ctx); err != nil {
		return nil, err
	}
	return p, c.settle(ctx)
}

func (c *conductor) post(ctx context.Context, object any, path ...string) error {
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return c.api.send(ctx, c.api.client.Post(), body, path...)
}

// createParents makes the healthy ones, and the poisoned ones spread among them.
func (p *phase) createParents(ctx context.Context) error {
	const atOnce = 16
	return each(atOnce, p.parents+p.poisoned, func(i int) error {
		t := &Trio{TypeMeta: metav1.TypeMeta{APIVersion: group.String(), Kind: "Trio"}, ObjectMeta: metav1.ObjectMeta{Name: parentName(i)}}
		t.Spec.Value = "one"
		if p.isPoisoned(i) {
			if t.Spec.Value = panics; i%2 == 0 {
				t.Spec.Value = refused
			}
		}
		return p.post(ctx, t, trios(p.namespace)...)
	})
}

func (p *phase) isPoisoned(i int) bool {
	return p.poisoned > 0 && i*p.poisoned/(p.parents+p.poisoned) != (i+1)*p.poisoned/(p.parents+p.poisoned)
}

func (p *phase) start(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	process := exec.CommandContext(ctx, self, p.args()...)
	process.Stderr = os.Stderr
	if p.tell, err = process.StdinPipe(); err != nil {
		return err
	}
	out, err := process.StdoutPipe()
	if err != nil {
		return err
	}
	p.answers = bufio.NewReader(out)
	if err := process.Start(); err != nil {
		return err
	}
	p.wait = process.Wait
	_, err = p.answer()
	return err
}

func (p *phase) answer() (usage, error) {
	var u usage
	line, err := p.answers.ReadBytes('\n')
	if err != nil {
		return u, fmt.Errorf("contestant %s ended: %w", p.kind, errors.Join(err, p.wait()))
	}
	return u, json.Unmarshal(line, &u)
}

func (p *phase) ask(word string) (usage, error) {
	if _, err := fmt.Fprintln(p.tell, word); err != nil {
		return usage{}, err
	}
	return p.answer()
}

// end stops the contestant and removes its namespace, and waits for both.
func (p *phase) end(ctx context.Context) error {
	if err := errors.Join(p.tell.Close(), p.wait()); err != nil {
		return fmt.Errorf("contestant %s: %w", p.kind, err)
	}
	path := "/api/v1/namespaces/" + p.namespace
	if err := p.api.send(ctx, p.api.client.Delete(), nil, path); err != nil {
		return err
	}
	for {
		var ignored json.RawMessage
		if err := p.api.get(ctx, &ignored, path); err != nil {
			return ctx.Err() // It is gone.
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...)
}
