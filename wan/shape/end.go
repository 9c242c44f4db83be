package shape

import (
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/foresay/foresay/wan"
)

// A conn is one end of a connection, as its network sees it.
type conn interface {
	net.Conn
	base() *end
	// fail ends it at once: operations return err, and what it sent and has not arrived is lost.
	fail(err error)
	// crash ends it as its process's death does: what has left arrives, and then a reset.
	crash()
}

// An end is what the ends of all connections have in common: the sending direction.
type end struct {
	net           *Network
	id            uint64
	path          wan.Path // in which it sends
	local, remote net.Addr
	out           *line
	writer        chan struct{} // holds a token unless somebody writes
	writeBy       *deadline

	mu   sync.Mutex
	err  error         // why it can be used no more, or nil
	done chan struct{} // closed when err is set
}

func newEnd(n *Network, p wan.Path, local, remote net.Addr) *end {
	e := &end{
		net:     n,
		path:    p,
		local:   local,
		remote:  remote,
		out:     newLine(n.links[p], n.schedule),
		writer:  make(chan struct{}, 1),
		writeBy: newDeadline(),
		done:    make(chan struct{}),
	}
	notify(e.writer)
	return e
}

func (e *end) base() *end           { return e }
func (e *end) LocalAddr() net.Addr  { return e.local }
func (e *end) RemoteAddr() net.Addr { return e.remote }

// stop records why the end can be used no more; first is false if there was a reason already.
func (e *end) stop(err error) (first bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return false
	}
	e.err = err
	close(e.done)
	return true
}

func (e *end) stopped() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

// Write queues p for departure. It waits only while 4 MiB are written that the other end has not
// read.
func (e *end) Write(p []byte) (int, error) {
	n, err := e.write(p)
	if err != nil {
		return n, e.opError("write", err)
	}
	return n, nil
}

func (e *end) write(p []byte) (n int, err error) {
	if err := e.wait(e.writer); err != nil {
		return 0, err
	}
	defer notify(e.writer)
	for {
		left, err := e.out.write(p[n:])
		n += left
		if err != nil || n == len(p) {
			return n, err
		}
		if err := e.wait(e.out.room); err != nil {
			return n, err
		}
	}
}

// wait takes a token out of c, unless the end stops or its write deadline passes before.
func (e *end) wait(c <-chan struct{}) error {
	for {
		if err := e.stopped(); err != nil {
			return err
		}
		deadline := e.writeBy.current()
		if deadline.hasPassed() {
			return os.ErrDeadlineExceeded
		}
		select {
		case <-c:
			return nil
		case <-deadline.over:
			if deadline.passed {
				return os.ErrDeadlineExceeded
			}
		case <-e.done:
		}
	}
}

// SetWriteDeadline sets the time after which Write fails, if it waits.
func (e *end) SetWriteDeadline(t time.Time) error {
	if err := e.stopped(); err != nil {
		return e.opError("set", err)
	}
	e.writeBy.set(t)
	return nil
}

func (e *end) opError(op string, err error) error {
	if errno, ok := err.(syscall.Errno); ok {
		err = os.NewSyscallError(op, errno)
	}
	return &net.OpError{Op: op, Net: e.local.Network(), Source: e.local, Addr: e.remote, Err: err}
}
