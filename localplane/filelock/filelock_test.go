package filelock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

func TestSecondWaitsUntilTheFirstReleases(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	first, err := Acquire(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TryAcquire(path); !errors.Is(err, ErrHeld) {
		t.Fatalf("second holder: got %v, want ErrHeld", err)
	}

	waiting := make(chan string, 1)
	got := make(chan error, 1)
	go func() {
		second, err := Acquire(context.Background(), path, func(holder string) { waiting <- holder })
		if err == nil {
			second.Release()
		}
		got <- err
	}()
	if holder := <-waiting; holder != strconv.Itoa(os.Getpid()) {
		t.Errorf("holder: got %q, want this process", holder)
	}
	select {
	case err := <-got:
		t.Fatalf("the second got the lock while the first held it (%v)", err)
	default:
	}
	first.Release()
	if err := <-got; err != nil {
		t.Fatal(err)
	}
}

func TestWaitEndsWithTheContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	first, err := TryAcquire(path)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Release()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := Acquire(ctx, path, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v, want the context's error", err)
	}
}

func TestRemovedLockIsNotShared(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	first, err := TryAcquire(path)
	if err != nil {
		t.Fatal(err)
	}
	// A waiter has the old file open when the holder removes it.
	stale, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stale.Close() }()
	first.Remove()
	if isCurrent(stale, path) {
		t.Error("a removed file passes for the current one")
	}
	second, err := TryAcquire(path)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Release()
	if isCurrent(stale, path) {
		t.Error("the removed file passes for its successor")
	}
}
