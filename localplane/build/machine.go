package build

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	mebibyte = 1 << 20
	// setSpace is what a set takes in the cache folder.
	setSpace = 600 * mebibyte
	// compilerSpace is what the first build takes in the compiler's own cache.
	compilerSpace = 3000 * mebibyte
)

// ErrNoGo says that there is no Go toolchain.
var ErrNoGo = errors.New("the go command is not in PATH. The local plane is compiled from source: " +
	"install Go from https://go.dev/dl, or use a cluster of your own with --kubeconfig")

// NoSpaceError says that a file system is full, or will be.
type NoSpaceError struct {
	// Dir is a folder on that file system.
	Dir string
	// Free and Needed are in bytes.
	Free, Needed uint64
	// Remedy completes "Free some, or …"; when empty, what helps a build.
	Remedy string
}

// CheckSpace returns a [NoSpaceError] when less than needed is free at dir, or
// at the nearest folder above it that exists.
func CheckSpace(dir string, needed uint64, remedy string) error {
	if free, ok := freeSpace(dir); ok && free < needed {
		return &NoSpaceError{Dir: dir, Free: free, Needed: needed, Remedy: remedy}
	}
	return nil
}

// Error implements error.
func (e *NoSpaceError) Error() string {
	remedy := e.Remedy
	if remedy == "" {
		remedy = "set XDG_CACHE_HOME, GOCACHE and TMPDIR to folders on a bigger disk, and try again; nothing is left half-built"
	}
	return fmt.Sprintf("not enough disk space at %s: %d MiB are free, about %d MiB are needed. Free some, or %s",
		e.Dir, e.Free/mebibyte, e.Needed/mebibyte, remedy)
}

// checkMachine finds out early what would make a build of minutes fail late.
func (b *Builder) checkMachine(ctx context.Context) error {
	if _, err := exec.LookPath("go"); err != nil {
		return ErrNoGo
	}
	if err := CheckSpace(b.Cache, setSpace, ""); err != nil {
		return err
	}
	// How much of the compiler's cache is filled already is unknown, so little
	// space there is a reason to warn, not to refuse.
	cache := b.compilerCache(ctx)
	if free, ok := freeSpace(cache); ok && free < compilerSpace {
		b.notify(fmt.Sprintf("warning: %d MiB are free at %s; a first build needs about %d MiB there",
			free/mebibyte, cache, compilerSpace/mebibyte))
	}
	return nil
}

func (b *Builder) compilerCache(ctx context.Context) string {
	output, err := b.goCommand(ctx, "env", "GOCACHE").Output()
	if err != nil {
		return b.Cache
	}
	return strings.TrimSpace(string(output))
}

// fullDisk recognises a full disk in what the compiler printed: it has nothing
// but text to say so.
func (b *Builder) fullDisk(output []string) error {
	if !strings.Contains(strings.Join(output, "\n"), syscall.ENOSPC.Error()) {
		return nil
	}
	free, _ := freeSpace(b.Cache)
	return &NoSpaceError{Dir: b.Cache, Free: free, Needed: setSpace + compilerSpace}
}

// freeSpace returns the bytes that this user may still write at dir, or at
// the nearest folder above it that exists.
func freeSpace(dir string) (uint64, bool) {
	for {
		var stat syscall.Statfs_t
		err := syscall.Statfs(dir, &stat)
		if err == nil {
			return stat.Bavail * uint64(stat.Bsize), true
		}
		parent := filepath.Dir(dir)
		if !errors.Is(err, syscall.ENOENT) || parent == dir {
			return 0, false
		}
		dir = parent
	}
}
