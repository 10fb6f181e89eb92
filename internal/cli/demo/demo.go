// Package demo tells the stories of operators on a real cluster, one after the
// other, with kubectl's own words beside each step, and measures by watching how
// long the cluster took to follow. Each operator runs in this process, through
// the same command as its own program has, as a service account that has exactly
// the derived role. A story is a table of steps; what is in this package besides
// is how any story is told.
//
// It never touches objects outside the namespace it makes, definitions apart,
// and removes what it made, also when interrupted, unless told to keep it: a
// control plane that it did not start stays, and so does a definition that is in
// use. Its invariant: a step counts as done only when the whole condition was seen.
package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	// Started is true when the control plane was not there before. Only then may
	// the demo stop it, by Down.
	Started bool
	Down    func(context.Context) error
	// Look says how to look at it and stop it by hand.
	Look string
}

// Up makes sure that a local control plane runs, and reports progress.
type Up func(ctx context.Context, name string, progress io.Writer) (Plane, error)

// clearWithin bounds the clearing up, which also happens after an interrupt.
const clearWithin = 90 * time.Second

// startWithin bounds the wait for the operator to hold its lease.
const startWithin = time.Minute

// logSuffix ends the names of the files with what the operators say.
const logSuffix = ".log"

type options struct {
	keep       bool
	kubeconfig string
	context    string
	only       string
}

// New is the demo command; up starts the local control plane.
func New(program string, up Up) *cobra.Command {
	o := &options{}
	c := &cobra.Command{
		Use:   "demo",
		Short: "Show operators on a real Kubernetes control plane",
		Long: `Start a local control plane (built first when needed, which takes minutes once), run
the operators Memcached and WebServer against it, one after the other, and walk
through what they do, with kubectl's own words beside each step and the time
each change took to heal. A control plane "demo" that is running already is used
and left; one demo runs at a time.

Each operator has exactly the role that is derived from its declaration.

` + command.Codes,
		Example: fmt.Sprintf(`  # Both stories; cleans up after itself.
  %[1]s demo

  # One of them only.
  %[1]s demo --only webserver

  # Leave everything running to look at.
  %[1]s demo --keep

  # On a cluster of your own, in a namespace of its own; kubectl must be installed.
  %[1]s demo --kubeconfig ~/.kube/config`, program),
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			stories, err := chosen(Stories(), o.only)
			if err != nil {
				return err
			}
			d := &demo{options: *o, up: up, clock: time.Now, view: newView(c.OutOrStdout(), c.ErrOrStderr(), time.Now)}
			return d.run(c.Context(), stories)
		},
	}
	c.Flags().BoolVar(&o.keep, "keep", false, "leave everything running and say how to look at it; interrupt to stop the operators")
	c.Flags().StringVar(&o.kubeconfig, "kubeconfig", "", "use this cluster in place of a local control plane")
	c.Flags().StringVar(&o.context, "context", "", "context of the kubeconfig (default the current one)")
	c.Flags().StringVar(&o.only, "only", "", "tell one story: "+strings.Join(names(Stories()), " or ")+" (default all)")
	return c
}

// chosen is the story of that name, or all.
func chosen(stories []Story, only string) ([]Story, error) {
	if only == "" {
		return stories, nil
	}
	for _, s := range stories {
		if s.Name == only {
			return []Story{s}, nil
		}
	}
	return nil, command.Usagef("--only is %q; it can be %s", only, strings.Join(names(stories), " or "))
}

func names(stories []Story) []string {
	out := make([]string, 0, len(stories))
	for _, s := range stories {
		out = append(out, s.Name)
	}
	return out
}

type demo struct {
	options
	up    Up
	view  *view
	clock func() time.Time
}

func (d *demo) run(ctx context.Context, stories []Story) (err error) {
	dir, err := os.MkdirTemp("", "homeostat-demo-")
	if err != nil {
		return fmt.Errorf("make a folder for the demo's files: %w", err)
	}
	var undo []func(context.Context) error
	defer func() {
		if d.keep {
			return
		}
		failed := unwind(ctx, undo)
		if failed != nil {
			failed = fmt.Errorf("clean up: %w", failed)
		}
		if err != nil && ctx.Err() != nil {
			err = cmp.Or(failed, context.Cause(ctx)) // nothing went wrong but what did so since
		} else {
			err = errors.Join(err, failed)
		}
		err = errors.Join(err, sweep(dir, err != nil && ctx.Err() == nil))
	}()
	if d.kubeconfig == "" {
		release, err := only(lockName)
		if err != nil {
			return err
		}
		undo = append(undo, release)
	}
	plane, err := d.plane(ctx)
	if err != nil {
		return err
	}
	if plane.Started {
		undo = append(undo, plane.Down)
	} else if d.kubeconfig == "" {
		plane.Note += "\nThe control plane was running already; it stays when the demo has ended."
	}
	stage, kubectl, err := d.prepare(ctx, plane, stories, dir)
	if stage != nil && !plane.Started {
		undo = append(undo, stage.clear) // A plane of the demo's own goes as a whole.
	}
	if err != nil {
		return err
	}
	return d.tell(ctx, stories, plane, stage, kubectl)
}

// sweep deletes the demo's files. Of one that failed the operators' logs stay,
// for the error names them, and nothing else: there are credentials beside them.
func sweep(dir string, failed bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("delete the demo's files: %w", err)
	}
	kept := false
	for _, entry := range entries {
		if failed && strings.HasSuffix(entry.Name(), logSuffix) {
			kept = true
			continue
		}
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
	}
	if !kept {
		err = errors.Join(err, os.Remove(dir))
	}
	return err
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
	}, nil
}

// operatorConfig and operatorLog are the files of a story's operators.
func operatorConfig(dir string, s Story) string {
	return filepath.Join(dir, manifest.Name(s.Operators)+".kubeconfig")
}

func operatorLog(dir string, s Story) string {
	return filepath.Join(dir, manifest.Name(s.Operators)+logSuffix)
}

// prepare sets the stage and writes the files: a kubeconfig for kubectl, one
// for the operators of each story, and those of the stories.
func (d *demo) prepare(ctx context.Context, plane Plane, stories []Story, dir string) (*stage, kubectl, error) {
	defer d.view.waiting("setting the stage")()
	k := kubectl{binary: plane.Kubectl, kubeconfig: filepath.Join(dir, "kubeconfig"), dir: dir}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: plane.Kubeconfig}, &clientcmd.ConfigOverrides{CurrentContext: d.context})
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, k, fmt.Errorf("read %s: %w", plane.Kubeconfig, err)
	}
	s, err := newStage(config)
	if err != nil {
		return nil, k, err
	}
	if err := s.set(ctx, stories); err != nil {
		return s, k, err
	}
	if err := d.admin(loader, s.namespace, k.kubeconfig); err != nil {
		return s, k, err
	}
	for _, story := range stories {
		identity, err := s.identity(ctx, manifest.Name(story.Operators))
		if err != nil {
			return s, k, err
		}
		if err := save(identity, operatorConfig(dir, story)); err != nil {
			return s, k, err
		}
		for name, text := range story.Files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				return s, k, fmt.Errorf("write a file of the story: %w", err)
			}
		}
	}
	return s, k, nil
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

// operate runs the operators of a story as their own program would: the run
// command, with their own identity. Its log goes to a file.
func (d *demo) operate(ctx context.Context, story Story, namespace, dir string) (r *running, stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	r = &running{log: operatorLog(dir, story), stopped: make(chan struct{})}
	log, err := os.Create(r.log)
	if err != nil {
		cancel()
		return nil, nil, fmt.Errorf("make the operator's log: %w", err)
	}
	go func() {
		defer close(r.stopped)
		defer func() { _ = log.Close() }()
		streams := genericiooptions.IOStreams{In: nil, Out: log, ErrOut: log}
		r.code = homeostat.Run(ctx, streams, []string{"run", "--kubeconfig", operatorConfig(dir, story), "--namespace", namespace,
			"--leader-elect", "--leader-election-namespace", namespace, "--v", "1"}, story.Operators...)
	}()
	return r, func() { cancel(); <-r.stopped }, nil
}

// tell tells the stories, up to the first that fails, prints the table and,
// where asked to, stays. The operators of a story work on until the end.
func (d *demo) tell(ctx context.Context, stories []Story, plane Plane, s *stage, k kubectl) error {
	d.view.say("%s", plane.Note)
	var tellers []*teller
	var outcomes [][]outcome
	var failed error
	for _, story := range stories {
		operators, stop, err := d.operate(ctx, story, s.namespace, k.dir)
		if failed = err; err != nil {
			break
		}
		defer stop() // All of them, at the end of the demo.
		t := &teller{namespace: s.namespace, view: d.view, operators: operators, kubectl: k}
		told, err := d.story(ctx, story, s, t)
		tellers, outcomes = append(tellers, t), append(outcomes, told)
		if failed = err; err != nil {
			break
		}
	}
	d.view.say("")
	d.view.table(stories, outcomes)
	if failed != nil || !d.keep {
		return failed
	}
	return d.stay(ctx, tellers, stories, plane, k)
}

// story tells one story whose operators are starting.
func (d *demo) story(ctx context.Context, story Story, s *stage, t *teller) ([]outcome, error) {
	log := operatorLog(t.kubectl.dir, story)
	lease := operator.KindOf[coordinationv1.Lease]("coordination.k8s.io/v1")
	var err error
	if t.observer, err = observe(ctx, s.dynamic, s.namespace, append([]operator.Kind{lease}, story.Watch...), d.clock); err != nil {
		return nil, err
	}
	d.view.say("\n%s", story.Title)
	name := manifest.Name(story.Operators)
	if err := t.started(ctx, held(lease, name)); err != nil {
		return nil, fmt.Errorf("start %s: %w; its log is %s", name, err, log)
	}
	d.view.say("The operator runs in namespace %s as service account %s, with the role derived from its declaration.", s.namespace, name)
	outcomes := t.tell(ctx, story.Steps)
	if last := outcomes[len(outcomes)-1]; last.err != nil {
		return outcomes, fmt.Errorf("step %q: %w\nthe operator's log is %s", last.step.Name, last.err, log)
	}
	return outcomes, nil
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
func (d *demo) stay(ctx context.Context, tellers []*teller, stories []Story, plane Plane, k kubectl) error {
	d.view.say("")
	ended := make(chan error, len(tellers))
	var kinds []string
	for i, story := range stories {
		for _, c := range story.Encore {
			if _, err := tellers[i].spoken(ctx, c); err != nil {
				return err
			}
		}
		for _, op := range story.Operators {
			kinds = append(kinds, strings.ToLower(op.Parent.Kind))
		}
		go func() {
			<-tellers[i].operators.stopped
			ended <- fmt.Errorf("%w\nthe whole log is %s", tellers[i].operators.ended(), operatorLog(k.dir, story))
		}()
	}
	d.view.say("\nEverything is left as it is. In another terminal:\n  export KUBECONFIG=%s\n  %s get %s,deployment,service,pod\n  tail -f %s",
		k.kubeconfig, plane.Kubectl, strings.Join(kinds, ","), filepath.Join(k.dir, "*"+logSuffix))
	if plane.Look != "" {
		d.view.say("%s", plane.Look)
	} else {
		d.view.say("To remove it:\n  %s --kubeconfig %s delete namespace %s", plane.Kubectl, k.kubeconfig, tellers[0].namespace)
	}
	d.view.say("The operators run here until they are interrupted (Ctrl-C).")
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		if ctx.Err() != nil {
			return nil // it was interrupted with the demo
		}
		return err
	}
}
