package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// counts are numbers of requests: by verb and resource, events under their own name.
type counts map[string]int

// total counts what a controller does to objects: without events, which are
// counted apart.
func (c counts) total() int {
	n := 0
	for k, v := range c {
		if k != "events" {
			n += v
		}
	}
	return n
}

func (c counts) String() string {
	var parts []string
	for _, k := range sortedKeys(c) {
		parts = append(parts, fmt.Sprintf("%s %d", k, c[k]))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

type auditEntry struct {
	Stage, Verb, UserAgent   string
	ObjectRef                *struct{ Resource, Subresource string }
	RequestReceivedTimestamp time.Time
}

// auditLog reads the log from where it was left off.
type auditLog struct {
	path   string
	offset int64
}

// skip forgets what was logged until now.
func (l *auditLog) skip() {
	if info, err := os.Stat(l.path); err == nil {
		l.offset = info.Size()
	}
}

// each gives the complete lines since the last time.
func (l *auditLog) each(do func(auditEntry)) error {
	if l.path == "" {
		return nil
	}
	f, err := os.Open(l.path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Seek(l.offset, io.SeekStart); err != nil {
		return err
	}
	lines := bufio.NewReaderSize(f, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil // The rest of a line comes with the next reading.
		}
		l.offset += int64(len(line))
		var e auditEntry
		if json.Unmarshal(line, &e) == nil && e.ObjectRef != nil {
			do(e)
		}
	}
}

// count counts what an agent has asked for since the last time. Lists, watches,
// discovery and leases are not counted.
func (l *auditLog) count(agent string) (counts, error) {
	out := counts{}
	err := l.each(func(e auditEntry) {
		if e.Stage != "ResponseComplete" || e.UserAgent != agent || e.Verb == "watch" || e.Verb == "list" || e.ObjectRef.Resource == "leases" {
			return
		}
		key := e.Verb + " " + e.ObjectRef.Resource
		if e.ObjectRef.Subresource != "" {
			key += "/" + e.ObjectRef.Subresource
		}
		if e.ObjectRef.Resource == "events" {
			key = "events"
		}
		out[key]++
	})
	return out, err
}
