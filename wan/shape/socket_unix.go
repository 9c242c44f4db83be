//go:build unix

package shape

import (
	"net"
	"syscall"
)

// directWriter returns what writeNow needs, or nil if c has no socket.
func directWriter(c net.Conn) syscall.RawConn {
	s, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// writeNow writes what the socket's buffer takes of p.
func writeNow(c syscall.RawConn, p []byte) (n int, err error) {
	failed := c.Write(func(fd uintptr) bool {
		for {
			n, err = syscall.Write(int(fd), p)
			if err != syscall.EINTR {
				return true
			}
		}
	})
	if failed != nil {
		return 0, failed
	}
	if err == syscall.EAGAIN {
		return 0, nil
	}
	return max(n, 0), err
}
