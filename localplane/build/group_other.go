//go:build !linux

package build

import (
	"os/exec"
	"syscall"
)

// ownGroup gives the command a process group that is interrupted as a whole.
func ownGroup(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGINT) }
}
