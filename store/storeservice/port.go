package storeservice

import (
	"net"
	"sync/atomic"
	"time"
)

// A port is the address at which clients reach a machine, for all epochs in which the machine takes
// part: all machines of a store go on in another epoch at about the same time, and a client that no
// machine lets connect takes the store to be down. Who connects between two epochs waits instead.
type port struct{ listener *net.TCPListener }

func openPort(address string) (*port, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return &port{l.(*net.TCPListener)}, nil
}

// turn returns a listener for one epoch. The one before is closed by then.
func (p *port) turn() (net.Listener, error) {
	if err := p.listener.SetDeadline(time.Time{}); err != nil {
		return nil, err
	}
	return &turn{TCPListener: p.listener}, nil
}

// A turn is a port's listener as a server has it that closes its listener.
type turn struct {
	*net.TCPListener
	over atomic.Bool
}

// Accept implements net.Listener.
func (t *turn) Accept() (net.Conn, error) {
	conn, err := t.TCPListener.Accept()
	if t.over.Load() {
		if conn != nil {
			conn.Close()
		}
		return nil, net.ErrClosed
	}
	return conn, err
}

// Close ends the turn, and leaves the port open.
func (t *turn) Close() error {
	if t.over.Swap(true) {
		return net.ErrClosed
	}
	return t.SetDeadline(time.Unix(1, 0))
}
