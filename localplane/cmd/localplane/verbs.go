package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/homeostat-dev/homeostat/localplane/build"
	"github.com/homeostat-dev/homeostat/localplane/node"
	"github.com/homeostat-dev/homeostat/localplane/plane"
)

// defaultWait is long enough for a slow machine under load.
const defaultWait = 60 * time.Second

func (a *app) flags(verb string) *pflag.FlagSet {
	flags := pflag.NewFlagSet(verb, pflag.ContinueOnError)
	flags.SetOutput(a.stderr)
	flags.Usage = func() { _, _ = fmt.Fprintf(a.stdout, help, a.program, plane.DefaultName) }
	return flags
}

// parse reads the flags and the name, which may be given as an argument or
// with --name.
func parse(flags *pflag.FlagSet, args []string) (name string, given bool, err error) {
	flagged := flags.String("name", "", "the plane's name")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return "", false, err
		}
		return "", false, usageError{err}
	}
	positional := flags.Args()
	if dash := flags.ArgsLenAtDash(); dash >= 0 {
		positional = positional[:dash]
	}
	if *flagged != "" {
		positional = append(positional, *flagged)
	}
	switch len(positional) {
	case 0:
		return plane.DefaultName, false, nil
	case 1:
		return positional[0], true, nil
	}
	return "", false, usagef("want one name, got %s", strings.Join(positional, " "))
}

func (a *app) manager() (*plane.Manager, error) {
	root, err := plane.Root()
	if err != nil {
		return nil, err
	}
	return &plane.Manager{Root: root, Notify: a.screen.say}, nil
}

func (a *app) build(ctx context.Context, args []string) error {
	if _, given, err := parse(a.flags("build"), args); err != nil || given {
		if given {
			return usagef("build wants no name: all planes use the same components")
		}
		return err
	}
	set, err := a.components(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.stdout, set.Dir)
	return err
}

// components compiles the components unless that has been done.
func (a *app) components(ctx context.Context) (build.Set, error) {
	cache, err := build.CacheDir()
	if err != nil {
		return build.Set{}, err
	}
	dir, err := os.Getwd()
	if err != nil {
		return build.Set{}, fmt.Errorf("find the current folder: %w", err)
	}
	source, err := build.FindSource(ctx, dir)
	if err != nil {
		return build.Set{}, err
	}
	begin := time.Now()
	compiled := false
	builder := &build.Builder{
		Source: source, Cache: cache, Components: build.Components(), Notify: a.screen.say,
		Report: func(p build.Progress) { compiled = true; a.screen.progress(p.String()) },
	}
	set, err := builder.Build(ctx)
	if err == nil && compiled {
		a.screen.say(fmt.Sprintf("built Kubernetes %s in %s: %s", set.Version, time.Since(begin).Round(time.Second), set.Dir))
	}
	return set, err
}

func (a *app) up(ctx context.Context, args []string) error {
	flags := a.flags("up")
	nodes := flags.String("nodes", "", "simulated=N")
	audit := flags.Bool("audit", false, "keep a log of all requests")
	wait := flags.Duration("wait", defaultWait, "how long to wait until the plane is ready")
	output := flags.StringP("output", "o", "", "json or yaml")
	name, _, err := parse(flags, args)
	if err != nil {
		return err
	}
	if err := errors.Join(plane.CheckName(name), checkFormat(*output)); err != nil {
		return err
	}
	if *nodes != "" {
		if _, err := node.Parse(*nodes); err != nil { // before minutes of building
			return err
		}
	}
	manager, err := a.manager()
	if err != nil {
		return err
	}
	set, err := a.components(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	if before, err := manager.Status(name); err != nil || before.State != plane.StateRunning {
		a.screen.progress(fmt.Sprintf("starting plane %q", name))
	}
	status, started, err := manager.Up(ctx, plane.Options{
		Name: name, Binaries: set, Nodes: *nodes, Audit: *audit, Wait: *wait,
	})
	if errors.Is(err, plane.ErrDamaged) {
		return fmt.Errorf("%w; take it down first: %s down %s", err, a.program, name)
	}
	if err != nil {
		return err
	}
	a.screen.clear()
	if *output != "" {
		return a.print(*output, status)
	}
	return a.welcome(status, started, time.Since(begin))
}

func (a *app) down(ctx context.Context, args []string) error {
	flags := a.flags("down")
	all := flags.Bool("all", false, "every plane")
	name, given, err := parse(flags, args)
	if err != nil {
		return err
	}
	if *all && given {
		return usagef("want a name or --all, not both")
	}
	manager, err := a.manager()
	if err != nil {
		return err
	}
	names := []string{name}
	if *all {
		if names, err = manager.Names(); err != nil {
			return err
		}
	}
	for _, name := range names {
		existed, err := manager.Down(ctx, name)
		if err != nil {
			return fmt.Errorf("take plane %q down: %w", name, err)
		}
		if existed {
			a.screen.say(fmt.Sprintf("plane %q is stopped and removed", name))
		} else {
			a.screen.say(fmt.Sprintf("there is no plane %q; nothing to do", name))
		}
	}
	return nil
}

func (a *app) status(_ context.Context, args []string) error {
	flags := a.flags("status")
	output := flags.StringP("output", "o", formatTable, "table, json or yaml")
	name, given, err := parse(flags, args)
	if err != nil {
		return err
	}
	if err := checkFormat(*output); err != nil {
		return err
	}
	manager, err := a.manager()
	if err != nil {
		return err
	}
	names := []string{name}
	if !given {
		if names, err = manager.Names(); err != nil {
			return err
		}
	}
	all := []plane.Status{}
	healthy := true
	for _, name := range names {
		status, err := manager.Status(name)
		if err != nil {
			return err
		}
		healthy = healthy && status.State == plane.StateRunning
		all = append(all, status)
	}
	if err := a.printAll(*output, all); err != nil {
		return err
	}
	if !healthy {
		return errSilent
	}
	return nil
}

func (a *app) kubeconfig(_ context.Context, args []string) error {
	flags := a.flags("kubeconfig")
	raw := flags.Bool("raw", false, "print the content instead of the path")
	name, _, err := parse(flags, args)
	if err != nil {
		return err
	}
	status, err := a.existing(name)
	if err != nil {
		return err
	}
	if !*raw {
		_, err := fmt.Fprintln(a.stdout, status.Kubeconfig)
		return err
	}
	content, err := os.ReadFile(status.Kubeconfig)
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	_, err = a.stdout.Write(content)
	return err
}

// kubectl becomes kubectl, so that its streams, signals and exit code are the
// user's.
func (a *app) kubectl(_ context.Context, args []string) error {
	flags := a.flags("kubectl")
	path := flags.Bool("path", false, "print the path of kubectl")
	name, _, err := parse(flags, args)
	if err != nil {
		return err
	}
	status, err := a.existing(name)
	if err != nil {
		return err
	}
	if *path {
		_, err := fmt.Fprintln(a.stdout, status.Kubectl)
		return err
	}
	var rest []string
	if dash := flags.ArgsLenAtDash(); dash >= 0 {
		rest = flags.Args()[dash:]
	}
	// kubectl caches what a server serves by its address; another plane may
	// have the same address tomorrow.
	environment := append(os.Environ(), "KUBECONFIG="+status.Kubeconfig, "KUBECACHEDIR="+filepath.Join(status.Dir, "kubectl-cache"))
	if err := syscall.Exec(status.Kubectl, append([]string{"kubectl"}, rest...), environment); err != nil {
		return fmt.Errorf("run %s (was the cache deleted? %s build makes it again): %w", status.Kubectl, a.program, err)
	}
	return nil
}

// existing returns the status of a plane that the user wants to use.
func (a *app) existing(name string) (plane.Status, error) {
	manager, err := a.manager()
	if err != nil {
		return plane.Status{}, err
	}
	status, err := manager.Status(name)
	if err != nil {
		return plane.Status{}, fmt.Errorf("%w; start it with: %s up %s", err, a.program, name)
	}
	if status.Kubeconfig == "" {
		return plane.Status{}, fmt.Errorf("plane %q cannot be used: %s", name, status.Message)
	}
	return status, nil
}
