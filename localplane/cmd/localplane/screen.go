package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"
)

// plainEvery is how often progress is written where it cannot be overwritten.
const plainEvery = 10 * time.Second

// screen shows progress: a line that changes on a terminal, and elsewhere
// plain lines now and then.
type screen struct {
	mu       sync.Mutex
	out      io.Writer
	terminal bool
	width    int
	now      func() time.Time
	last     time.Time
	dirty    bool
}

func newScreen(file *os.File) *screen {
	const usual = 80
	s := &screen{out: file, width: usual, now: time.Now}
	if info, err := file.Stat(); err == nil {
		s.terminal = info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	}
	if columns, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && columns > 0 {
		s.width = columns
	}
	return s
}

// progress shows a line that the next one replaces.
func (s *screen) progress(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.terminal {
		if runes := []rune(line); len(runes) >= s.width {
			line = string(runes[:s.width-1])
		}
		_, _ = fmt.Fprintf(s.out, "\r\x1b[K%s", line)
		s.dirty = true
		return
	}
	if now := s.now(); s.last.IsZero() || now.Sub(s.last) >= plainEvery {
		s.last = now
		_, _ = fmt.Fprintln(s.out, line)
	}
}

// say writes a line that stays.
func (s *screen) say(line string) {
	s.clear()
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = fmt.Fprintln(s.out, line)
}

// clear removes the line that progress shows.
func (s *screen) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dirty {
		_, _ = fmt.Fprint(s.out, "\r\x1b[K")
		s.dirty = false
	}
}
