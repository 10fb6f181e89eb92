// Package demo tells the story of an operator on a real cluster, with kubectl's
// own words beside each step, and measures by watching how long the cluster
// took to follow. The operator runs in this process, through the same command
// as its own program has, as a service account that has exactly the derived
// role. A story is a table of steps; what is in this package besides is how any
// story is told.
//
// It never touches objects outside the namespace it makes, definitions apart,
// and removes what it made, also when interrupted, unless told to keep it. Its
// invariant: a step counts as done only when the whole condition was seen.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/homeostat-dev/homeostat"
	"github.com/homeostat-dev/homeostat/internal/command"
	"github.com/homeostat-dev/homeostat/internal/manifest"
	"github.com/homeostat-dev/homeostat/operator"
)

// Plane is a control plane to tell a story on.
type Plane struct {
	Kubeconfig, Kubectl string
	// Note is said before the story, such as that nodes are simulated.
	Note string
	// Down stops it; Look says how to look at it and stop it by hand.
	Down func(context.Context) error
	Look string
}

// Up starts a local control plane and reports progress.
type Up func(ctx context.Context, name string, progress io.Writer) (Plane, error)

// clearWithin bounds the clearing up, which also happens after an interrupt.
const clearWithin = 90 * time.Second

// startWithin bounds the wait for the operator to hold its lease.
const startWithin = time.Minute

// logName is the file with what the operator says.
const logName = "operator.log"

type options struct {
	keep       bool
	kubeconfig string
	context    string
}

// New is the demo command; up starts the local control plane.
func New(program string, up Up) *cobra.Command {
	o := &options{}
	c := &cobra.Command{
		Use:   "demo",
		Short: "Show the Memcached operator on a real Kubernetes control plane",
		Long: `Start a local control plane (built first when needed, which takes minutes once), run
the Memcached operator against it and walk through what it does, with kubectl's
own words beside each step and the time each change took to heal.

The operator has exactly the role that is derived from its declaration.

` + command.Codes,
		Example: fmt.Sprintf(`  # The whole story; cleans up after itself.
  %[1]s demo

  # Leave everything running to look at.
  %[1]s demo --keep

  # On a cluster of your own, in a namespace of its own; kubectl must be installed.
  %[1]s demo --kubeconfig ~/.kube/config`, program),
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			d := &demo{options: *o, up: up, clock: time.Now, view: newView(c.OutOrStdout(), c.ErrOrStderr(), time.Now)}
			return d.run(c.Context(), Memcached())
		},
	}
	c.Flags().BoolVar(&o.keep, "keep", false, "leave everything running and say how to look at it; interrupt to stop the operator")
	c.Flags().StringVar(&o.kubeconfig, "kubeconfig", "", "use this cluster in place of a local control plane")
	c.Flags().StringVar(&o.context, "context", "", "context of the kubeconfig (default the current one)")
	return c
}

type demo struct {
	options
	up    Up
	view  *view
	clock func() time.Time
}

func (d *demo) run(ctx context.Context, story Story) (err error) {
	dir, err := os.MkdirTemp("", "homeostat-demo-")
	if err != nil {
		return fmt.Errorf("make a folder for the demo's files: %w", err)
	}
	var undo []func(context.Context) error
	defer func() {
		if d.keep {
			return
		}
		if failed := unwind(ctx, undo); failed != nil {
			err = errors.Join(err, fmt.Errorf("clean up: %w", failed))
		}
		// The operator's log is kept where something went wrong after it started.
		if _, missing := os.Stat(filepath.Join(dir, logName)); err == nil || missing != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	plane, err := d.plane(ctx)
	if err != nil {
		return err
	}
	undo = append(undo, plane.Down)
	stage, files, err := d.prepare(ctx, plane, story, dir)
	if stage != nil && d.kubeconfig != "" {
		undo = append(undo, stage.clear) // A plane of the demo's own goes as a whole.
	}
	if err != nil {
		return err
	}
	stopped, stop := d.operate(ctx, story.Operators, stage.namespace, files)
	defer stop()
	return d.tell(ctx, story, plane, stage, files, stopped)
}

// unwind undoes in reverse order, also when the context has been cancelled.
func unwind(ctx context.Context, undo []func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearWithin)
	defer cancel()
	var errs []error
	for i := range undo {
		errs = append(errs, undo[len(undo)-1-i](ctx))
	}
	return errors.Join(errs...)
}

// plane is the local control plane, or the user's own cluster.
func (d *demo) plane(ctx context.Context) (Plane, error) {
	if d.kubeconfig == "" {
		return d.up(ctx, "demo", d.view.progress)
	}
	binary, err := exec.LookPath("kubectl")
	if err != nil {
		return Plane{}, fmt.Errorf("find kubectl: %w; install it, or leave out --kubeconfig to use a local control plane that has one", err)
	}
	return Plane{
		Kubeconfig: d.kubeconfig, Kubectl: binary, Note: "This is the cluster of " + d.kubeconfig + ".",
		Down: func(context.Context) error { return nil },
	}, nil
}

// files are where the demo's files are.
type files struct{ dir, admin, operator, log string }

// prepare sets the stage and writes the files: a kubeconfig for kubectl, one
// for the operators, and those of the story.
func (d *demo) prepare(ctx context.Context, plane Plane, story Story, dir string) (*stage, files, error) {
	defer d.view.waiting("setting the stage")()
	f := files{
		dir: dir, admin: filepath.Join(dir, "kubeconfig"),
		operator: filepath.Join(dir, "operator.kubeconfig"), log: filepath.Join(dir, logName),
	}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: plane.Kubeconfig}, &clientcmd.ConfigOverrides{CurrentContext: d.context})
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, f, fmt.Errorf("read %s: %w", plane.Kubeconfig, err)
	}
	s, err := newStage(config)
	if err != nil {
		return nil, f, err
	}
	if err := s.set(ctx, story.Operators); err != nil {
		return s, f, err
	}
	if err := d.admin(loader, s.namespace, f.admin); err != nil {
		return s, f, err
	}
	identity, err := s.identity(ctx, manifest.Name(story.Operators))
	if err != nil {
		return s, f, err
	}
	for name, text := range story.Files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return s, f, fmt.Errorf("write a file of the story: %w", err)
		}
	}
	return s, f, save(identity, f.operator)
}

// admin is the user's kubeconfig with the story's namespace as the default.
func (d *demo) admin(loader clientcmd.ClientConfig, namespace, path string) error {
	raw, err := loader.RawConfig()
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	config := raw.DeepCopy()
	if d.context != "" {
		config.CurrentContext = d.context
	}
	if err := clientcmdapi.MinifyConfig(config); err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	if err := clientcmdapi.FlattenConfig(config); err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.Contexts[config.CurrentContext].Namespace = namespace
	return save(config, path)
}

// operate runs the operators as their own program would: the run command, with
// their own identity. Its log goes to a file.
func (d *demo) operate(ctx context.Context, ops []*operator.Operator, namespace string, f files) (stopped <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		log, err := os.Create(f.log)
		if err != nil {
			return
		}
		defer func() { _ = log.Close() }()
		streams := genericiooptions.IOStreams{In: nil, Out: log, ErrOut: log}
		homeostat.Run(ctx, streams, []string{"run", "--kubeconfig", f.operator, "--namespace", namespace,
			"--leader-elect", "--leader-election-namespace", namespace, "--v", "1"}, ops...)
	}()
	return done, func() { cancel(); <-done }
}

// tell tells the story, prints the table and, where asked to, stays.
func (d *demo) tell(ctx context.Context, story Story, plane Plane, s *stage, f files, stopped <-chan struct{}) error {
	lease := operator.KindOf[coordinationv1.Lease]("coordination.k8s.io/v1")
	observer, err := observe(ctx, s.dynamic, s.namespace, append([]operator.Kind{lease}, story.Watch...), d.clock)
	if err != nil {
		return err
	}
	t := &teller{namespace: s.namespace, view: d.view, observer: observer, stopped: stopped,
		kubectl: kubectl{binary: plane.Kubectl, kubeconfig: f.admin, dir: f.dir}}
	d.view.say("%s\n%s", story.Title, plane.Note)
	name := manifest.Name(story.Operators)
	if err := t.started(ctx, held(lease, name)); err != nil {
		return fmt.Errorf("start the operator: %w; its log is %s", err, f.log)
	}
	d.view.say("The operator runs in namespace %s as service account %s, with the role derived from its declaration.", s.namespace, name)
	outcomes := t.tell(ctx, story.Steps)
	d.view.say("")
	d.view.table(story.Steps, outcomes)
	if last := outcomes[len(outcomes)-1]; last.err != nil {
		return fmt.Errorf("step %q: %w\nthe operator's log is %s", last.step.Name, last.err, f.log)
	}
	if d.keep {
		return d.stay(ctx, t, story, plane, f)
	}
	return nil
}

// held holds when somebody holds the lease.
func held(lease operator.Kind, name string) Condition {
	return func(w World) (bool, string) {
		holder, _ := w.at(lease, name).get("spec", "holderIdentity").(string)
		return holder != "", fmt.Sprintf("nobody holds the lease %s", name)
	}
}

func (t *teller) started(ctx context.Context, held Condition) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startWithin, errDeadline)
	defer cancel()
	defer t.view.waiting("starting the operator")()
	return t.await(ctx, t.observer.start(held))
}

// stay leaves something to look at and waits to be interrupted.
func (d *demo) stay(ctx context.Context, t *teller, story Story, plane Plane, f files) error {
	d.view.say("")
	for _, c := range story.Encore {
		if _, err := t.spoken(ctx, c); err != nil {
			return err
		}
	}
	d.view.say("\nEverything is left as it is. In another terminal:\n  export KUBECONFIG=%s\n  %s get memcached,deployment,pod\n  tail -f %s",
		f.admin, plane.Kubectl, f.log)
	if plane.Look != "" {
		d.view.say("%s", plane.Look)
	} else {
		d.view.say("To remove it:\n  %s --kubeconfig %s delete namespace %s", plane.Kubectl, f.admin, t.namespace)
	}
	d.view.say("The operator runs here until it is interrupted (Ctrl-C).")
	select {
	case <-ctx.Done():
		return nil
	case <-t.stopped:
		return fmt.Errorf("the operator has ended; its log is %s", f.log)
	}
}
