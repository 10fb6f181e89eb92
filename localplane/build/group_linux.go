package build

import (
	"os/exec"
	"syscall"
)

// ownGroup gives the command a process group that is interrupted as a whole,
// and lets the kernel kill the command when this process is killed: an orphan
// would make its output folder again after somebody has cleaned up.
func ownGroup(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGINT) }
}
