package build

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Progress says how far a build is.
type Progress struct {
	// Component is the component that is being made, and Index its place,
	// counted from 1, among Of. While modules are resolved and downloaded
	// Component is empty.
	Component string
	Index, Of int
	// Downloaded is how many modules were downloaded.
	Downloaded int
	// Compiled is how many packages were compiled, and Total how many there
	// are. Packages that the compiler's cache holds are not compiled again, so
	// Compiled may end below Total.
	Compiled, Total int
	// Elapsed is the time since the build began.
	Elapsed time.Duration
}

// String is the progress as one line of text, which fits a terminal of 80
// columns.
func (p Progress) String() string {
	elapsed := p.Elapsed.Round(time.Second)
	switch {
	case p.Component == "" && p.Downloaded > 0:
		return fmt.Sprintf("building the local plane: %d modules downloaded, %s", p.Downloaded, elapsed)
	case p.Component == "":
		return fmt.Sprintf("building the local plane: resolving modules, %s", elapsed)
	}
	return fmt.Sprintf("building %s (%d/%d): %d of at most %d packages, %s",
		p.Component, p.Index, p.Of, p.Compiled, p.Total, elapsed)
}

// reportEvery is how often a report is made when nothing else happens.
const reportEvery = time.Second

// tracker watches the go command's output and the folder that the executables
// appear in, and reports.
type tracker struct {
	components []string
	draft      string
	report     func(Progress)
	begin      time.Time
	progress   Progress
	events     chan func(*Progress)
	closed     chan struct{}
}

func newTracker(components []string, draft string, report func(Progress)) *tracker {
	t := &tracker{
		components: components, draft: draft, report: report, begin: time.Now(),
		progress: Progress{Of: len(components)},
		events:   make(chan func(*Progress)), closed: make(chan struct{}),
	}
	go t.run()
	return t
}

// run is the only goroutine that touches the progress.
func (t *tracker) run() {
	defer close(t.closed)
	ticker := time.NewTicker(reportEvery)
	defer ticker.Stop()
	for {
		select {
		case event, open := <-t.events:
			if !open {
				return
			}
			event(&t.progress)
		case <-ticker.C:
		}
		t.progress.Elapsed = time.Since(t.begin)
		if t.progress.Total > 0 {
			t.locate()
		}
		if t.report != nil {
			t.report(t.progress)
		}
	}
}

// locate finds the component at work: the first one that is not there yet.
func (t *tracker) locate() {
	for i, component := range t.components {
		t.progress.Component, t.progress.Index = component, i+1
		if _, err := os.Stat(filepath.Join(t.draft, component)); err != nil {
			return
		}
	}
}

func (t *tracker) close() {
	close(t.events)
	<-t.closed
}

// resolve runs "go list -deps" and counts the packages. It returns the last
// lines that the command wrote to its standard error.
func (t *tracker) resolve(list *exec.Cmd) ([]string, error) {
	packages := &lineWriter{}
	total := 0
	packages.line = func(string) { total++ }
	list.Stdout = packages
	said, err := t.watch(list, func(line string) bool {
		downloading := strings.HasPrefix(line, "go: downloading ")
		if downloading {
			t.events <- func(p *Progress) { p.Downloaded++ }
		}
		return downloading
	})
	packages.flush()
	t.events <- func(p *Progress) { p.Total = total }
	return said, err
}

// compile runs "go build -v", which names each package that it compiles.
func (t *tracker) compile(build *exec.Cmd) ([]string, error) {
	said, err := t.watch(build, func(line string) bool {
		// A package path has no spaces; errors and their "# path" headings do.
		isPackage := line != "" && !strings.ContainsAny(line, " \t")
		if isPackage {
			t.events <- func(p *Progress) { p.Compiled++ }
		}
		return isPackage
	})
	t.events <- func(*Progress) {} // a last look at the folder
	return said, err
}

// watch runs the command and returns the last lines of its standard error
// that seen does not recognise as progress.
func (t *tracker) watch(command *exec.Cmd, seen func(line string) bool) ([]string, error) {
	const keep = 60
	var said []string
	output := &lineWriter{line: func(line string) {
		if !seen(line) {
			said = append(said, line)
			said = said[max(0, len(said)-keep):]
		}
	}}
	command.Stderr = output
	// The kernel ends the command with the thread that started it (see
	// ownGroup), so that thread must not end before the command does.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := command.Run()
	output.flush()
	return said, err
}

// lineWriter calls line for every complete line that is written to it.
type lineWriter struct {
	line func(string)
	rest string
}

var _ io.Writer = (*lineWriter)(nil)

// Write implements io.Writer.
func (w *lineWriter) Write(content []byte) (int, error) {
	text := w.rest + string(content)
	complete := strings.LastIndexByte(text, '\n') + 1
	w.rest = text[complete:]
	for line := range strings.Lines(text[:complete]) {
		w.line(strings.TrimRight(line, "\r\n"))
	}
	return len(content), nil
}

// flush hands over a last line without an end.
func (w *lineWriter) flush() {
	if w.rest != "" {
		w.line(w.rest)
		w.rest = ""
	}
}
