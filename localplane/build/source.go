package build

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
)

const (
	// Module is the path of the nested module that holds the components.
	Module = "github.com/homeostat-dev/homeostat/localplane"
	// SourceVariable names the environment variable with the folder of the sources.
	SourceVariable = "HOMEOSTAT_LOCALPLANE_SOURCE"
	// VersionVariable names the environment variable with the version of the
	// module to use where no sources are at hand.
	VersionVariable = "HOMEOSTAT_LOCALPLANE_VERSION"
)

// ErrNoSource says that the sources of the components cannot be found.
var ErrNoSource = errors.New("no sources of the local plane: this is not a checkout of Homeostat, and this " +
	"executable is not an installed version. Run it inside a checkout, or set " + SourceVariable +
	" to the checkout's localplane folder, or install a version with go install")

// FindSource returns the folder of the nested module: the one that the
// environment names, that of the checkout around dir, or else the module's
// installed version in Go's module cache, downloaded when it is missing.
func FindSource(ctx context.Context, dir string) (string, error) {
	if named := os.Getenv(SourceVariable); named != "" {
		absolute, err := filepath.Abs(named)
		if err != nil || !isSource(absolute) {
			return "", fmt.Errorf("%s=%s does not hold the module %s; set it to the localplane folder of a checkout",
				SourceVariable, named, Module)
		}
		return absolute, nil
	}
	for at := dir; ; at = filepath.Dir(at) {
		for _, candidate := range []string{filepath.Join(at, "localplane"), at} {
			if isSource(candidate) {
				return candidate, nil
			}
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	version := os.Getenv(VersionVariable)
	if info, ok := debug.ReadBuildInfo(); version == "" && ok && info.Main.Path == Module && info.Main.Sum != "" {
		version = info.Main.Version
	}
	if version == "" {
		return "", ErrNoSource
	}
	return download(ctx, version)
}

func isSource(dir string) bool {
	content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	return err == nil && bytes.HasPrefix(content, []byte("module "+Module+"\n"))
}

// download asks the go command for the module. The components are compiled in
// the module cache, which is read-only, exactly as in a checkout.
func download(ctx context.Context, version string) (string, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return "", ErrNoGo
	}
	command := exec.CommandContext(ctx, "go", "mod", "download", "-json", Module+"@"+version)
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	command.Dir = os.TempDir()
	output, err := command.Output()
	var answer struct{ Dir, Error string }
	if decodeErr := json.Unmarshal(output, &answer); decodeErr == nil && answer.Error != "" {
		return "", fmt.Errorf("download %s@%s: %s", Module, version, answer.Error)
	}
	if err != nil {
		return "", fmt.Errorf("download %s@%s (is the network or GOPROXY set up?): %w", Module, version, err)
	}
	return answer.Dir, nil
}

// key hashes everything that decides what the components are.
func (b *Builder) key() (string, error) {
	files := []string{"go.mod", "go.sum"}
	for _, component := range b.Components {
		found, err := filepath.Glob(filepath.Join(b.Source, "cmd", component, "*.go"))
		if err != nil || len(found) == 0 {
			return "", fmt.Errorf("no sources of %s in %s: %w", component, b.Source, errors.Join(err, os.ErrNotExist))
		}
		for _, file := range found {
			files = append(files, filepath.Join("cmd", component, filepath.Base(file)))
		}
	}
	hash := sha256.New()
	_, _ = fmt.Fprintln(hash, "layout 1", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(b.Source, file))
		if err != nil && (file != "go.sum" || !errors.Is(err, os.ErrNotExist)) {
			return "", fmt.Errorf("read the sources of the local plane: %w", err)
		}
		_, _ = fmt.Fprintln(hash, file, len(content))
		hash.Write(content)
	}
	const enough = 16
	return hex.EncodeToString(hash.Sum(nil))[:enough], nil
}

var kubernetesLine = regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes (v\S+)`)

// kubernetesVersion reads the version of Kubernetes from go.mod; a module
// without Kubernetes has none.
func kubernetesVersion(source string) (string, error) {
	content, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("read the version of Kubernetes: %w", err)
	}
	match := kubernetesLine.FindSubmatch(content)
	if match == nil {
		return "", nil
	}
	return string(match[1]), nil
}
