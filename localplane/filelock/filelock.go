// Package filelock lets several processes of one user take turns at a folder.
//
// A lock is an advisory lock (flock) on a small file that also holds the
// process id of its owner, for messages. The kernel releases it when the owner
// ends, however it ends, so a killed process never leaves a lock behind.
//
// It never trusts the file's content, and it never waits without an end: every
// wait follows the caller's context.
//
// Invariant: whoever holds a Lock holds the file that is at its path now.
// Removing the file therefore needs the lock (see [Lock.Remove]).
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// ErrHeld says that another process holds the lock.
var ErrHeld = errors.New("the lock is held by another process")

// retryEvery is how often a waiting process tries again.
const retryEvery = 50 * time.Millisecond

// Lock is a lock that this process holds.
type Lock struct {
	file *os.File
	path string
}

// Acquire takes the lock at path and waits for it as long as ctx allows. When
// that takes more than a moment it calls waiting once, if not nil, with the
// process id of the holder (or "" when that is not known).
func Acquire(ctx context.Context, path string, waiting func(holder string)) (*Lock, error) {
	ticker := time.NewTicker(retryEvery)
	defer ticker.Stop()
	tried := false
	for {
		lock, err := TryAcquire(path)
		if !errors.Is(err, ErrHeld) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the lock %s: %w", path, context.Cause(ctx))
		case <-ticker.C:
		}
		if waiting != nil && tried { // a short wait is not worth a word
			waiting(Holder(path))
			waiting = nil
		}
		tried = true
	}
}

// TryAcquire takes the lock at path, or returns [ErrHeld] at once.
func TryAcquire(path string) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the lock: %w", err)
	}
	for {
		file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, fmt.Errorf("open the lock: %w", err)
		}
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			_ = file.Close()
			if errors.Is(err, syscall.EWOULDBLOCK) {
				return nil, ErrHeld
			}
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if !isCurrent(file, path) { // removed between open and lock: the lock is worth nothing
			_ = file.Close()
			continue
		}
		_ = file.Truncate(0)
		_, _ = file.WriteAt([]byte(fmt.Sprintln(os.Getpid())), 0)
		return &Lock{file: file, path: path}, nil
	}
}

// Holder returns the process id that the lock file names, "" when it names
// none. It is for messages only: the process may be gone.
func Holder(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}

// Release gives the lock back and leaves the file.
func (l *Lock) Release() {
	_ = l.file.Truncate(0)
	_ = l.file.Close()
}

// Remove gives the lock back and deletes the file. Processes that wait for it
// notice and lock the file's successor.
func (l *Lock) Remove() {
	_ = os.Remove(l.path)
	_ = l.file.Close()
}

func isCurrent(file *os.File, path string) bool {
	held, err := file.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(path)
	return err == nil && os.SameFile(held, now)
}
