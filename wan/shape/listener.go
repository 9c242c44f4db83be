package shape

import (
	"net"
	"sync"
)

// backlog is how many connections wait for Accept; further ones are reset.
const backlog = 4096

// A listener accepts the connections to one address of a site.
type listener struct {
	net     *Network
	at      addr // its place among the site's listeners
	address net.Addr
	queue   chan conn

	mu     sync.Mutex
	closed bool
	done   chan struct{}

	doorstep *doorstep // nil in memory
}

func newListener(n *Network, at addr) *listener {
	return &listener{net: n, at: at, address: at, queue: make(chan conn, backlog), done: make(chan struct{})}
}

// offer queues c for Accept.
func (l *listener) offer(c conn) {
	if !l.enqueue(c) {
		c.crash()
	}
}

func (l *listener) enqueue(c conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	select {
	case l.queue <- c:
		return true
	default:
		return false
	}
}

// Accept waits for a connection, which it returns one and a half round trips after it was dialed.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case <-l.done:
		return nil, l.opError("accept")
	default:
	}
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.done:
		return nil, l.opError("accept")
	}
}

// Close stops listening. Connections that wait for Accept are reset.
func (l *listener) Close() error {
	if !l.stop() {
		return l.opError("close")
	}
	l.net.forgetListener(l)
	for {
		select {
		case c := <-l.queue:
			c.crash()
		default:
			return nil
		}
	}
}

func (l *listener) stop() (first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.closed = true
	close(l.done)
	if l.doorstep != nil {
		l.doorstep.raw.Close() // nothing to be told: it is closed in any case
	}
	return true
}

// Addr returns the address to dial.
func (l *listener) Addr() net.Addr { return l.address }

func (l *listener) opError(op string) error {
	return &net.OpError{Op: op, Net: l.address.Network(), Addr: l.address, Err: net.ErrClosed}
}
