package shape

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/foresay/foresay/wan"
)

// A pipe is one end of a connection in memory.
type pipe struct {
	*end
	in     *line
	peer   *pipe
	readBy *deadline
	accept *listener // whose queue it joins when the handshake ends; nil at the dialing end
	// ended is whether the last byte of in has arrived, guarded by end.mu.
	ended bool
}

// newPipe returns the two ends of a connection that has not been accepted yet.
func (n *Network) newPipe(p wan.Path, local addr, l *listener) (client, server *pipe) {
	client = &pipe{end: newEnd(n, p, local, l.address), readBy: newDeadline()}
	server = &pipe{end: newEnd(n, p.Reverse(), l.address, local), readBy: newDeadline(), accept: l}
	client.peer, server.peer = server, client
	client.in, server.in = server.out, client.out
	client.in.arrive, server.in.arrive = client.arrived, server.arrived
	return client, server
}

// arrived is called when something has arrived at p.
func (p *pipe) arrived(signs sign) {
	if signs&signReset != 0 {
		p.fail(syscall.ECONNRESET)
		p.net.forget(p.peer.id)
		return
	}
	if signs&signOpen != 0 {
		p.accept.offer(p)
	}
	if p.stopped() != nil {
		p.refuse()
	}
	if signs&signClose != 0 {
		p.setEnded()
		if p.peer.hasEnded() {
			p.net.forget(p.id)
			p.net.forget(p.peer.id)
		}
	}
	notify(p.in.ready)
}

// refuse answers bytes that arrive at a closed end with a reset.
func (p *pipe) refuse() {
	refused := 0
	p.in.take(func(b []byte) int {
		refused = len(b)
		return refused
	})
	if refused > 0 {
		p.out.signal(signReset, net.ErrClosed)
	}
}

func (p *pipe) Read(b []byte) (int, error) {
	n, err := p.read(b)
	if err != nil && err != io.EOF {
		err = p.opError("read", err)
	}
	return n, err
}

func (p *pipe) read(b []byte) (n int, err error) {
	for {
		if err := p.stopped(); err != nil {
			return 0, err
		}
		deadline := p.readBy.current()
		if deadline.hasPassed() {
			return 0, os.ErrDeadlineExceeded
		}
		if len(b) == 0 {
			return 0, nil
		}
		ended := p.hasEnded() // before looking for bytes: none come after it
		more := false
		p.in.take(func(arrived []byte) int {
			n = copy(b, arrived)
			more = n < len(arrived)
			return n
		})
		if more || ended {
			notify(p.in.ready) // for another reader
		}
		if n > 0 {
			return n, nil
		}
		if ended {
			return 0, io.EOF
		}
		select {
		case <-p.in.ready:
		case <-deadline.over:
			if deadline.passed {
				return 0, os.ErrDeadlineExceeded
			}
		case <-p.done:
		}
	}
}

// Close ends both directions. What was written arrives, and then the end of the stream.
func (p *pipe) Close() error {
	if !p.stop(net.ErrClosed) {
		return p.opError("close", net.ErrClosed)
	}
	p.in.take(func(b []byte) int { return len(b) })
	p.out.signal(signClose, net.ErrClosed)
	return nil
}

func (p *pipe) fail(err error) {
	p.stop(err)
	p.out.drop(err)
	p.in.drop(err)
	p.net.forget(p.id)
}

func (p *pipe) crash() {
	p.stop(net.ErrClosed)
	p.in.take(func(b []byte) int { return len(b) })
	p.out.cut(net.ErrClosed)
}

func (p *pipe) hasEnded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

func (p *pipe) setEnded() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
}

// SetReadDeadline sets the time after which Read fails.
func (p *pipe) SetReadDeadline(t time.Time) error {
	if err := p.stopped(); err != nil {
		return p.opError("set", err)
	}
	p.readBy.set(t)
	return nil
}

// SetDeadline sets the deadlines of Read and Write.
func (p *pipe) SetDeadline(t time.Time) error {
	if err := p.SetReadDeadline(t); err != nil {
		return err
	}
	return p.SetWriteDeadline(t)
}
