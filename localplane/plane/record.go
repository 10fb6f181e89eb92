package plane

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/homeostat-dev/homeostat/localplane/build"
	"github.com/homeostat-dev/homeostat/localplane/proc"
)

// The phases of a plane's life. A plane that was ready once can be healed; one
// that never was is started anew.
const (
	phaseStarting = "starting"
	phaseReady    = "ready"
)

// record is what a plane's folder says about it.
type record struct {
	dir string

	Name     string         `json:"name"`
	Phase    string         `json:"phase"`
	Binaries build.Set      `json:"binaries"`
	Ports    map[string]int `json:"ports"`
	Audit    bool           `json:"audit"`
	Nodes    string         `json:"nodes"`
	Created  time.Time      `json:"created"`
}

func (r *record) path(elements ...string) string {
	return filepath.Join(append([]string{r.dir}, elements...)...)
}

// processRecord is the file that a process is recorded in.
func (r *record) processRecord(name string) string { return r.path("run", name+".json") }

// create makes the plane's folder.
func (r *record) create() error {
	for _, dir := range []string{r.dir, r.path("run"), r.path("logs"), r.path("pki")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("make the plane's folder: %w", err)
		}
	}
	return r.save()
}

// save replaces the record in one step, so that readers need no lock.
func (r *record) save() error {
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the plane's record: %w", err)
	}
	draft := r.path("plane.json.new")
	if err := os.WriteFile(draft, content, 0o600); err != nil {
		return fmt.Errorf("write the plane's record: %w", err)
	}
	if err := os.Rename(draft, r.path("plane.json")); err != nil {
		return fmt.Errorf("write the plane's record: %w", err)
	}
	return nil
}

// load reads the record of the plane in dir. Where there is no plane the error
// is os.ErrNotExist.
func load(dir string) (*record, error) {
	content, err := os.ReadFile(filepath.Join(dir, "plane.json"))
	if err != nil {
		if _, statErr := os.Stat(dir); statErr == nil && errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("the plane's folder %s has no record", dir)
		}
		return nil, fmt.Errorf("read the plane's record: %w", err)
	}
	rec := &record{dir: dir}
	if err := json.Unmarshal(content, rec); err != nil {
		return nil, fmt.Errorf("the plane's record in %s is damaged: %w", dir, err)
	}
	return rec, nil
}

// processes returns what is recorded in the plane's folder, alive or not.
func processes(dir string) []proc.Process {
	files, err := filepath.Glob(filepath.Join(dir, "run", "*.json"))
	if err != nil {
		return nil
	}
	var all []proc.Process
	for _, file := range files {
		if process, err := proc.Load(file); err == nil {
			all = append(all, process)
		}
	}
	return all
}
