package plane

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

const (
	ours   = "github.com/homeostat-dev/homeostat"
	nested = ours + "/localplane"
	// The supervisor reads these variables too, so both find the same sources.
	sourceVariable  = "HOMEOSTAT_LOCALPLANE_SOURCE"
	versionVariable = "HOMEOSTAT_LOCALPLANE_VERSION"
)

// ErrNoSource says that there is nothing to build the supervisor from.
var ErrNoSource = errors.New("no sources of the local plane: this is not a checkout of Homeostat, and this program is " +
	"not an installed version. Run it inside a checkout, set " + sourceVariable + " to the checkout's localplane folder, " +
	"install a version with go install, or use a cluster of your own with --kubeconfig")

// ErrNoGo says that there is no Go toolchain to build with.
var ErrNoGo = errors.New("the go command is not in PATH. The local plane is compiled from source: install Go from " +
	"https://go.dev/dl, or use a cluster of your own with --kubeconfig")

// supervisor is the program of the nested module, built or not.
type supervisor struct {
	// path is where it is, once built.
	path string
	// source is the folder of the nested module; when empty, version is the
	// version to download.
	source, version string
	// environment tells the supervisor what was found.
	environment []string
	say         io.Writer
}

// find works out which supervisor is wanted. It runs nothing.
func find(say io.Writer) (*supervisor, error) {
	s := &supervisor{say: say}
	var err error
	if s.source, err = checkout(); err != nil {
		return nil, err
	}
	identity := []byte(s.source)
	if s.source != "" {
		s.environment = []string{sourceVariable + "=" + s.source}
		identity, err = fingerprint(s.source)
	} else if s.version = installed(); s.version != "" {
		s.environment = []string{versionVariable + "=" + s.version}
		identity = []byte(s.version)
	} else {
		err = ErrNoSource
	}
	if err != nil {
		return nil, err
	}
	cache, err := cacheDir()
	if err != nil {
		return nil, err
	}
	const enough = 16
	hash := sha256.Sum256(fmt.Appendf(identity, "\n%s %s %s", runtime.Version(), runtime.GOOS, runtime.GOARCH))
	s.path = filepath.Join(cache, hex.EncodeToString(hash[:])[:enough])
	return s, nil
}

// ready finds and builds the supervisor. The verbs that look after planes that
// are there do with the newest supervisor in the cache where none can be built.
func ready(ctx context.Context, say io.Writer, args []string) (*supervisor, error) {
	s, err := find(say)
	if err == nil {
		err = s.build(ctx)
	}
	if !errors.Is(err, ErrNoSource) && !errors.Is(err, ErrNoGo) {
		return s, err
	}
	if len(args) > 0 && slices.Contains([]string{"status", "kubeconfig", "kubectl", "down"}, args[0]) {
		if path := newest(); path != "" {
			return &supervisor{path: path}, nil
		}
	}
	return nil, err
}

// newest is the supervisor that was built last, "" when there is none.
func newest() string {
	cache, err := cacheDir()
	if err != nil {
		return ""
	}
	entries, err := os.ReadDir(cache)
	if err != nil {
		return ""
	}
	var path string
	var last time.Time
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() || !info.ModTime().After(last) {
			continue
		}
		path, last = filepath.Join(cache, entry.Name()), info.ModTime()
	}
	return path
}

// cacheDir is the folder of the supervisors.
func cacheDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder (set HOME or XDG_CACHE_HOME): %w", err)
	}
	return filepath.Join(cache, "homeostat", "supervisor"), nil
}

// checkout returns the folder of the nested module that the environment names
// or that is beside or above the current folder, "" when there is none.
func checkout() (string, error) {
	if named := os.Getenv(sourceVariable); named != "" {
		absolute, err := filepath.Abs(named)
		if err != nil || !isSource(absolute) {
			return "", fmt.Errorf("%s=%s does not hold the module %s; set it to the localplane folder of a checkout",
				sourceVariable, named, nested)
		}
		return absolute, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the current folder: %w", err)
	}
	for {
		for _, candidate := range []string{filepath.Join(dir, "localplane"), dir} {
			if isSource(candidate) {
				return candidate, nil
			}
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", nil
		}
		dir = parent
	}
}

func isSource(dir string) bool {
	content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	return err == nil && bytes.HasPrefix(content, []byte("module "+nested+"\n"))
}

// installed returns the version at which this program, or a module that it is
// built with, got Homeostat; "" when it was built from a checkout.
func installed() string {
	if version := os.Getenv(versionVariable); version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, module := range append(info.Deps, &info.Main) {
		if module.Path == ours && module.Sum != "" && module.Replace == nil {
			return module.Version
		}
	}
	return ""
}

// fingerprint hashes what the supervisor is made of: the module's files and
// all Go files that are not a component's.
func fingerprint(source string) ([]byte, error) {
	hash := sha256.New()
	err := filepath.WalkDir(source, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(source, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if filepath.Dir(relative) == "cmd" && entry.Name() != "localplane" {
				return filepath.SkipDir
			}
			return nil
		}
		name := entry.Name()
		wanted := relative == "go.mod" || relative == "go.sum" ||
			strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
		if !wanted {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		hash.Write(fmt.Appendf(nil, "%s %d\n", relative, len(content)))
		hash.Write(content)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the sources of the local plane's supervisor: %w", err)
	}
	return hash.Sum(nil), nil
}

// build compiles the supervisor unless it is there. Several builds at once do
// no harm: each writes a file of its own and renames it.
func (s *supervisor) build(ctx context.Context) error {
	if _, err := os.Stat(s.path); err == nil {
		return nil
	}
	if _, err := exec.LookPath("go"); err != nil {
		return ErrNoGo
	}
	if s.say != nil {
		_, _ = fmt.Fprintln(s.say, "compiling the local plane's supervisor (once per version)")
	}
	source := s.source
	if source == "" {
		var err error
		if source, err = download(ctx, s.version); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o755); err != nil {
		return fmt.Errorf("make the cache folder: %w", err)
	}
	draft, err := os.MkdirTemp(filepath.Dir(s.path), "tmp-")
	if err != nil {
		return fmt.Errorf("make a folder to build in: %w", err)
	}
	defer func() { _ = os.RemoveAll(draft) }()
	binary := filepath.Join(draft, "localplane")
	command := exec.CommandContext(ctx, "go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags=-s -w",
		"-o", binary, "./cmd/localplane")
	command.Dir = source
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	output, err := command.CombinedOutput()
	if ctx.Err() != nil {
		return fmt.Errorf("compile the local plane's supervisor: %w", context.Cause(ctx))
	}
	if err != nil {
		return fmt.Errorf("compile the local plane's supervisor in %s: %w; the compiler said:\n%s", source, err, bytes.TrimSpace(output))
	}
	if err := os.Rename(binary, s.path); err != nil {
		return fmt.Errorf("put the supervisor into the cache: %w", err)
	}
	return nil
}

// download gets the nested module at the version of ours; they are released
// together.
func download(ctx context.Context, version string) (string, error) {
	command := exec.CommandContext(ctx, "go", "mod", "download", "-json", nested+"@"+version)
	command.Dir = os.TempDir()
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	output, err := command.Output()
	var answer struct{ Dir, Error string }
	if json.Unmarshal(output, &answer) == nil && answer.Error != "" {
		return "", fmt.Errorf("download %s@%s: %s", nested, version, answer.Error)
	}
	if err != nil {
		return "", fmt.Errorf("download %s@%s (are the network and GOPROXY set up?): %w", nested, version, err)
	}
	return answer.Dir, nil
}
