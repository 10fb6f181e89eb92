//go:build !linux

package proc

import (
	"os/exec"
	"strconv"
	"strings"
)

// identity returns when the process started and whether it runs. The system
// calls for that differ between systems; ps is on all of them.
func identity(pid int) (started string, running bool) {
	output, err := exec.Command("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return "", false
	}
	state, started, ok := strings.Cut(strings.TrimSpace(string(output)), " ")
	return strings.TrimSpace(started), ok && !strings.HasPrefix(state, "Z")
}
