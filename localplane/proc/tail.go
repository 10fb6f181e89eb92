package proc

import (
	"bytes"
	"io"
	"os"
	"strings"
)

// Tail returns the last lines of a log, without those that are empty, at most
// n of them and none longer than a few hundred characters. A log that cannot
// be read has no lines.
func Tail(path string, n int) []string {
	const window, longest = 16 << 10, 400
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
	return lines[max(0, len(lines)-n):]
}
