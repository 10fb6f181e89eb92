package plane

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// loopback is the only address that a plane listens on.
const loopback = "127.0.0.1"

// choosePorts finds a free port for each name and holds all of them, so that
// no two names get the same and nobody else gets one, until the releases are
// called.
func choosePorts(names []string) (ports map[string]int, releases []func(), err error) {
	ports = map[string]int{}
	for _, name := range names {
		listener, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
		if err != nil {
			for _, release := range releases {
				release()
			}
			return nil, nil, fmt.Errorf("find a free port on %s for %s (end programs that hold many ports, "+
				"or raise the limit of open files): %w", loopback, name, err)
		}
		ports[name] = listener.Addr().(*net.TCPAddr).Port
		releases = append(releases, func() { _ = listener.Close() })
	}
	return ports, releases, nil
}

// takenPort returns the first of the ports that something else listens on, or
// 0 when all are free.
func takenPort(ports []int) int {
	for _, port := range ports {
		listener, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
		if errors.Is(err, syscall.EADDRINUSE) {
			return port
		}
		if err == nil {
			_ = listener.Close()
		}
	}
	return 0
}
