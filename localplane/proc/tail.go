package proc

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"strings"
)

// Tail returns the last lines of a log, without those that are empty, at most
// n of them and none longer than a few hundred characters. Where a Go program
// ended with a trace of its goroutines, the last lines are those before the
// trace, which say why. A log that cannot be read has no lines.
func Tail(path string, n int) []string {
	const window, longest = 1 << 20, 400
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err == nil && info.Size() > window {
		_, _ = file.Seek(-window, io.SeekEnd)
	}
	content, _ := io.ReadAll(file)
	var lines []string
	for line := range strings.SplitSeq(string(bytes.ToValidUTF8(content, nil)), "\n") {
		if line = strings.TrimRight(line, " \r\t"); line == "" {
			continue
		}
		if len(line) > longest {
			line = strings.ToValidUTF8(line[:longest], "") + "…"
		}
		lines = append(lines, line)
	}
	lines = withoutTrace(lines)
	return lines[max(0, len(lines)-n):]
}

var (
	// death begins the line that says why a Go program ended: the runtime's own,
	// or that of klog or zap, in the forms of the components.
	death = regexp.MustCompile(`^(panic: |fatal error: |F[0-9]{4} |\{"level":"(fatal|panic)")`)
	// alive begins a line that a program logged while it ran.
	alive = regexp.MustCompile(`^([IWE][0-9]{4} |\{"level":"(debug|info|warn|error)")`)
)

// withoutTrace cuts the trace that ends the lines, if one does.
func withoutTrace(lines []string) []string {
	for i := len(lines) - 1; i >= 0 && !alive.MatchString(lines[i]); i-- {
		if !death.MatchString(lines[i]) {
			continue
		}
		for j := i; j < len(lines); j++ {
			if strings.HasPrefix(lines[j], "goroutine ") {
				return lines[:j]
			}
		}
		return lines
	}
	return lines
}
