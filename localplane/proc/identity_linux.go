package proc

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
)

// bootID tells one boot of the machine from another, because start times are
// counted from the boot.
var bootID = sync.OnceValue(func() string {
	content, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(content))
})

// identity returns when the process started and whether it runs.
func identity(pid int) (started string, running bool) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", false
	}
	// The second field is the command's name in parentheses and may contain
	// anything; the fields that follow its last parenthesis are plain.
	end := bytes.LastIndexByte(content, ')')
	fields := strings.Fields(string(content[end+1:]))
	const state, startTime = 0, 19 // fields 3 and 22 of proc(5)
	if len(fields) <= startTime {
		return "", false
	}
	ended := fields[state] == "Z" || fields[state] == "X"
	return bootID() + "/" + fields[startTime], !ended
}
