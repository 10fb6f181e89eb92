package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/homeostat-dev/homeostat/internal/metric"
)

func TestTheFilesAreWhatTheTableSays(t *testing.T) {
	made, err := files(metric.Table)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range made {
		got, err := os.ReadFile(filepath.Join("../../../docs", name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("docs/%s is not what internal/metric/table.go says (%v): run make generate", name, err)
		}
	}
}

func TestEveryMetricIsOnThePageAndTheDashboard(t *testing.T) {
	made, err := files(metric.Table)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range metric.Table {
		for name, data := range made {
			if !strings.Contains(string(data), s.Name) {
				t.Errorf("%s lacks %s", name, s.Name)
			}
		}
	}
}
