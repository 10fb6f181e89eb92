// Package operatortest is the test kit for authors of operators: a fixture is a
// world in a file, with the answer that the operator gives to it. [Run] compares
// the answer and holds the operator to the laws of the contract in every one of
// these worlds: the same question gets the same answer, nothing given is
// changed, the answer comes to rest, and it holds until the time it names. It
// never talks to a cluster; the world it folds answers into is in memory.
//
// A fixture is a txtar archive: a comment that says in a sentence what it
// shows, then sections.
//
//	A pod that succeeded is saved before it goes.
//	-- now --
//	2026-01-02T03:04:05Z
//	-- parent.yaml --
//	metadata: {name: sample}
//	spec: {size: 3}
//	-- children.yaml --
//	-- related.yaml --
//	-- taken --
//	Pod netperf-server-0123456789ab
//
// Only parent.yaml is required. What a cluster would fill in (apiVersion, kind,
// namespace, uid, versions, the owner of a child, the defaults of the CRD) is
// filled in, and a parent that the CRD refuses is an error. Children are what
// the parent controls; of a kind with an Adopt rule those that do not match are
// there, but released: Sync does not see them. Related objects that no Read
// selects are not seen either.
//
// The expected sections are written by go test -update: want/status.yaml,
// want/children.yaml, want/parent.yaml, want/until, want/conditions.yaml,
// want/events.yaml, want/error, and the same under want/settled where the
// answer at rest differs from the first one. An absent section means nothing.
//
// The invariant: Run never passes a world in which a law is broken.
package operatortest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/homeostat-dev/homeostat/operator"
)

var update = flag.Bool("update", false, "rewrite the want sections of the fixtures")

// Run tests the operator on every fixture that matches the pattern, such as
// "testdata/*.txtar", each as a subtest. With -update it writes the answers
// into the files; the laws are checked all the same.
func Run(t *testing.T, op *operator.Operator, pattern string) {
	t.Helper()
	if err := op.Validate(); err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no fixture matches %s (%v)", pattern, err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			runFile(t, op, path)
		})
	}
}

func runFile(t *testing.T, op *operator.Operator, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := parseFixture(op, data)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	got, err := f.answer(op)
	if err != nil {
		t.Errorf("%s: %v", path, err)
	}
	if *update {
		if err := os.WriteFile(path, f.format(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := f.compare(got); diff != "" {
		t.Errorf("%s is not as expected (-want +got); go test -update accepts it:\n%s", path, diff)
	}
}
