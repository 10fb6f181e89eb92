package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/homeostat-dev/homeostat/operator/operatortest"
)

func TestFixtures(t *testing.T) {
	operatortest.Run(t, Operator, "testdata/*.txtar")
}

// TestLines keeps the promise that an operator is small.
func TestLines(t *testing.T) {
	lines := map[string]int{}
	total := 0
	for _, file := range []string{"main.go", "memcached.go"} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		lines[file] = bytes.Count(source, []byte("\n"))
		total += lines[file]
	}
	if lines["main.go"] > 10 || total > 80 {
		t.Errorf("main.go has %d lines, 10 are promised; with memcached.go %d, 80 are promised", lines["main.go"], total)
	}
}
