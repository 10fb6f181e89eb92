// Package build compiles the components of the local plane from their Go
// modules, once per version, into the user's cache folder.
//
// A set of components lives in <cache>/<key>/. The key is a hash of everything
// that decides the outcome: go.mod, go.sum, the components' sources, the Go
// version and the platform. Compilation happens in a temporary folder beside
// it that is renamed when everything is there.
//
// It never changes a finished set, never removes one, and downloads nothing
// but Go modules.
//
// Invariant: a folder named by a key holds every component, complete. A build
// that fails or is killed leaves at most a temporary folder, which nothing
// uses and the next build removes.
package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/homeostat-dev/homeostat/localplane/filelock"
)

// temporary is the prefix of folders of unfinished builds.
const temporary = "tmp-"

// tag is the build tag of the components' sources.
const tag = "components"

// Components returns the names of what a plane is made of, in build order.
func Components() []string {
	return []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok"}
}

// Set is a complete set of compiled components.
type Set struct {
	// Dir is the folder with the executables.
	Dir string
	// Key identifies the sources and the toolchain.
	Key string
	// Version is the Kubernetes version, such as v1.36.3.
	Version string
}

// Path returns the executable of a component.
func (s Set) Path(component string) string { return filepath.Join(s.Dir, component) }

// Builder compiles components.
type Builder struct {
	// Source is the folder of the nested module; see [FindSource].
	Source string
	// Cache is the folder that holds the sets; see [CacheDir].
	Cache string
	// Components are the folders below cmd/ to compile.
	Components []string
	// Report, if not nil, is told how far the build is. Calls do not overlap.
	Report func(Progress)
	// Notify, if not nil, gets sentences for the user.
	Notify func(string)
}

// CacheDir returns the folder for sets in the user's cache folder.
func CacheDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder (set HOME or XDG_CACHE_HOME): %w", err)
	}
	return filepath.Join(cache, "homeostat", "plane"), nil
}

// Existing returns the finished set for the sources as they are, if there is
// one. It runs no compiler and needs no Go toolchain.
func (b *Builder) Existing() (Set, bool, error) {
	key, err := b.key()
	if err != nil {
		return Set{}, false, err
	}
	version, err := kubernetesVersion(b.Source)
	if err != nil {
		return Set{}, false, err
	}
	set := Set{Dir: filepath.Join(b.Cache, key), Key: key, Version: version}
	for _, component := range b.Components {
		if _, err := os.Stat(set.Path(component)); err != nil {
			return set, false, nil
		}
	}
	return set, true, nil
}

// Build returns the set, compiling it if it does not exist yet. Only one
// build runs at a time; others wait and then mostly find their work done.
func (b *Builder) Build(ctx context.Context) (Set, error) {
	set, ok, err := b.Existing()
	if err != nil || ok {
		return set, err
	}
	lock, err := filelock.Acquire(ctx, filepath.Join(b.Cache, "build.lock"), func(holder string) {
		b.notify(fmt.Sprintf("another build is running (pid %s); waiting for it", holder))
	})
	if err != nil {
		return Set{}, fmt.Errorf("wait for another build: %w", err)
	}
	defer lock.Release()
	if set, ok, err = b.Existing(); err != nil || ok {
		return set, err
	}
	if err := b.removeStale(); err != nil {
		return Set{}, err
	}
	if err := b.checkMachine(ctx); err != nil {
		return Set{}, err
	}
	draft, err := os.MkdirTemp(b.Cache, temporary)
	if err != nil {
		return Set{}, fmt.Errorf("make a folder to build in: %w", err)
	}
	defer func() { _ = os.RemoveAll(draft) }() // gone already after a success
	if err := b.compile(ctx, set, draft); err != nil {
		return Set{}, err
	}
	return set, b.publish(set, draft)
}

// publish makes the draft the set, in one step.
func (b *Builder) publish(set Set, draft string) error {
	for _, component := range b.Components {
		if _, err := os.Stat(filepath.Join(draft, component)); err != nil {
			return fmt.Errorf("the compiler reported success without making %s; please report this: %w", component, err)
		}
	}
	if err := os.Chmod(draft, 0o755); err != nil {
		return fmt.Errorf("finish the build: %w", err)
	}
	// A folder of that name without all its components can only be one that
	// somebody deleted files from.
	if err := os.RemoveAll(set.Dir); err != nil {
		return fmt.Errorf("remove the damaged build %s: %w", set.Dir, err)
	}
	if err := os.Rename(draft, set.Dir); err != nil {
		return fmt.Errorf("finish the build: %w", err)
	}
	return nil
}

// removeStale removes what killed builds left. The caller holds the lock, so
// no temporary folder is in use.
func (b *Builder) removeStale() error {
	stale, err := filepath.Glob(filepath.Join(b.Cache, temporary+"*"))
	if err != nil {
		return fmt.Errorf("look for unfinished builds: %w", err)
	}
	for _, dir := range stale {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("remove the unfinished build %s: %w", dir, err)
		}
	}
	return nil
}

// compile runs the compiler once for all components: it shares their common
// packages and links one while it compiles the next.
func (b *Builder) compile(ctx context.Context, set Set, draft string) error {
	tracker := newTracker(b.Components, draft, b.Report)
	defer tracker.close()

	list := b.goCommand(ctx, append([]string{"list", "-mod=readonly", "-tags=" + tag, "-deps"}, b.packages()...)...)
	output, err := tracker.resolve(list)
	if err != nil {
		return b.explain(ctx, "resolve the modules of the local plane", output, err)
	}
	arguments := slices.Concat(
		[]string{"build", "-mod=readonly", "-tags=" + tag, "-trimpath", "-buildvcs=false", "-v", "-ldflags", linkerFlags(set.Version), "-o", draft + "/"},
		b.packages())
	output, err = tracker.compile(b.goCommand(ctx, arguments...))
	if err != nil {
		return b.explain(ctx, "compile the local plane", output, err)
	}
	return nil
}

func (b *Builder) packages() []string {
	var packages []string
	for _, component := range b.Components {
		packages = append(packages, "./cmd/"+component)
	}
	return packages
}

func linkerFlags(version string) string {
	flags := "-s -w"
	numbers := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(numbers) == 3 {
		const in = " -X k8s.io/component-base/version."
		flags += in + "gitVersion=" + version + in + "gitMajor=" + numbers[0] + in + "gitMinor=" + numbers[1]
	}
	return flags
}

// goCommand prepares a run of the go command in the source folder, in a
// process group of its own so that a cancelled build takes its compilers along.
func (b *Builder) goCommand(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = b.Source
	command.Env = append(os.Environ(),
		"CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH, "PWD="+b.Source)
	ownGroup(command)
	const patience = 5 * time.Second
	command.WaitDelay = patience
	return command
}

func (b *Builder) notify(sentence string) {
	if b.Notify != nil {
		b.Notify(sentence)
	}
}

// explain turns a failure of the go command into an error that shows what the
// command said.
func (b *Builder) explain(ctx context.Context, doing string, output []string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", doing, context.Cause(ctx))
	}
	if full := b.fullDisk(output); full != nil {
		return fmt.Errorf("%s: %w", doing, full)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(output) > 0 {
		return fmt.Errorf("%s: the go command failed (%w) and said:\n\t%s", doing, err, strings.Join(output, "\n\t"))
	}
	return fmt.Errorf("%s: %w", doing, err)
}
