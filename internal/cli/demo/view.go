package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"golang.org/x/term"
)

// view prints the story: what is said goes to out; on a terminal a line of
// progress, on progress, says what is being waited for and for how long.
type view struct {
	out, progress io.Writer
	live          bool
	clock         func() time.Time

	// mu keeps the line of progress and what is said apart.
	mu sync.Mutex
}

// erase ends the line of progress on a terminal.
const erase = "\r\x1b[K"

func newView(out, progress io.Writer, clock func() time.Time) *view {
	file, ok := progress.(*os.File)
	return &view{out: out, progress: progress, clock: clock, live: ok && term.IsTerminal(int(file.Fd()))}
}

func (v *view) say(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.draw(erase)
	_, _ = fmt.Fprintf(v.out, format+"\n", args...)
}

func (v *view) draw(text string) {
	if v.live {
		_, _ = fmt.Fprint(v.progress, text)
	}
}

// quote prints what a command printed, indented.
func (v *view) quote(text string) {
	for line := range strings.Lines(text) {
		v.say("    %s", strings.TrimRight(line, "\n"))
	}
}

// waiting shows what is waited for until the returned function is called.
func (v *view) waiting(what string) (stop func()) {
	if !v.live {
		return func() {}
	}
	start, done := v.clock(), make(chan struct{})
	var drawing sync.WaitGroup
	drawing.Go(func() {
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for frame := 0; ; frame++ {
			select {
			case <-done:
				v.mu.Lock()
				v.draw(erase)
				v.mu.Unlock()
				return
			case <-ticker.C:
				v.mu.Lock()
				v.draw(fmt.Sprintf(erase+"%c %s %.1fs", []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")[frame%10], what, v.clock().Sub(start).Seconds()))
				v.mu.Unlock()
			}
		}
	})
	return func() { close(done); drawing.Wait() }
}

// outcome is how a step ended.
type outcome struct {
	step Step
	// healed is the operator's share, settled the whole, from when the change was seen.
	timed           bool
	healed, settled time.Duration
	err             error
}

// table sums up the stories; outcomes are those of each that was begun. Steps
// that were not reached are listed as such.
func (v *view) table(stories []Story, outcomes [][]outcome) {
	w := tabwriter.NewWriter(v.out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "STORY\tSTEP\tRESULT\tHEALED\tSETTLED")
	for i, story := range stories {
		for j, step := range story.Steps {
			result, healed, settled := "not reached", "", ""
			if i < len(outcomes) && j < len(outcomes[i]) {
				result, healed, settled = outcomes[i][j].cells()
			}
			_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", story.Name, step.Name, result, healed, settled)
		}
	}
	_ = w.Flush()
	v.say("Times count from when the change was seen: HEALED until the operator had done its part,\nSETTLED until the cluster had followed.")
}

// cells are the outcome in the table.
func (o outcome) cells() (result, healed, settled string) {
	switch {
	case o.err != nil:
		return "FAILED", "", ""
	case !o.timed:
		return "ok", "", ""
	case o.healed > 0:
		healed = duration(o.healed)
	}
	return "ok", healed, duration(o.settled)
}

func duration(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
