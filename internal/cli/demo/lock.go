package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lockName is the lock of demos on the local control plane.
const lockName = "demo.lock"

// errRunning says that one demo at a time can use the local control plane: the
// one that started it stops it.
var errRunning = errors.New("another demo is running; wait until it has ended, or interrupt it")

// only takes a lock in the user's cache folder, or refuses. The kernel gives it
// back when this process ends, however it ends.
func only(name string) (release func(context.Context) error, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("find the cache folder (set HOME or XDG_CACHE_HOME): %w", err)
	}
	path := filepath.Join(cache, "homeostat", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("make the cache folder: %w", err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the demo's lock: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errRunning
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func(context.Context) error { return file.Close() }, nil
}
