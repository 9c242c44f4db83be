package shape

import (
	"net"
	"syscall"
	"time"

	"github.com/foresay/foresay/wan"
)

// A socket is this process's end of a real connection: it delays what it sends. What arrives was
// delayed by the other end.
type socket struct {
	*end
	raw    net.Conn
	direct syscall.RawConn // of raw, or nil if it can only be written to by waiting
	accept *listener       // whose queue peer joins when the handshake ends; nil at the accepting end
	peer   *socket         // the accepting end, if accept is set

	// Guarded by end.mu.
	pumping bool // a goroutine writes to raw
	ending  sign // what has arrived of signClose and signReset
	gone    bool // raw is closed
	broken  bool // raw takes no more bytes; it may still have some to read
	opened  bool // the handshake has ended
}

// newSocket wraps one end of a connection.
func (n *Network) newSocket(p wan.Path, raw net.Conn) *socket {
	s := &socket{end: newEnd(n, p, raw.LocalAddr(), raw.RemoteAddr()), raw: raw, direct: directWriter(raw)}
	s.out.arrive = s.deliver
	return s
}

// deliver is called when something has arrived at the other end, as far as time goes.
func (s *socket) deliver(signs sign) {
	if signs&signOpen != 0 {
		s.open()
	}
	s.mu.Lock()
	s.ending |= signs & (signClose | signReset)
	if s.pumping {
		s.mu.Unlock()
		return
	}
	// Written without waiting as a rule: a goroutine per connection would cost a switch per
	// message.
	rest, err := s.push()
	if err == nil && rest {
		s.pumping = s.net.start(s.pump)
	}
	s.mu.Unlock()
	s.settle(err)
}

func (s *socket) open() {
	s.mu.Lock()
	s.opened = true
	s.mu.Unlock()
	s.accept.offer(s.peer)
}

// push writes to raw what has arrived, without waiting; rest tells that raw takes no more. s.mu is
// held.
func (s *socket) push() (rest bool, err error) {
	s.out.take(func(p []byte) (n int) {
		if len(p) > 0 && s.direct != nil {
			n, err = writeNow(s.direct, p)
		}
		rest = n < len(p)
		return n
	})
	return rest, err
}

// pump writes to raw, waiting, until nothing that has arrived is left.
func (s *socket) pump() {
	buf := make([]byte, keepBytes)
	for {
		n := 0
		s.mu.Lock()
		s.out.take(func(p []byte) int {
			n = copy(buf, p)
			return n
		})
		s.pumping = n > 0
		s.mu.Unlock()
		if n == 0 {
			s.settle(nil)
			return
		}
		if _, err := s.raw.Write(buf[:n]); err != nil {
			s.mu.Lock()
			s.pumping = false
			s.mu.Unlock()
			s.settle(err)
			return
		}
	}
}

// settle closes raw if all that had to be written is, or cannot be; err is why raw takes no more,
// or nil.
func (s *socket) settle(err error) {
	if err != nil {
		s.out.drop(err)
	}
	s.mu.Lock()
	s.broken = s.broken || err != nil
	reset := s.ending&signReset != 0
	over := reset || s.ending&signClose != 0 && !s.pumping || s.broken && s.err != nil
	s.mu.Unlock()
	if over {
		s.closeRaw(reset)
	}
}

// closeRaw closes raw, with a reset in place of the end of the stream if so wanted.
func (s *socket) closeRaw(reset bool) {
	s.mu.Lock()
	gone := s.gone
	s.gone = true
	s.mu.Unlock()
	if gone {
		return
	}
	if l, ok := s.raw.(interface{ SetLinger(seconds int) error }); ok && reset {
		l.SetLinger(0) // if it fails, the other end sees an end of stream
	}
	s.raw.Close() // nobody is left to be told
	s.net.forget(s.id)
}

func (s *socket) Read(b []byte) (int, error) {
	if err := s.stopped(); err != nil {
		return 0, s.opError("read", err)
	}
	n, err := s.raw.Read(b)
	if err != nil {
		if stopped := s.stopped(); stopped != nil {
			return n, s.opError("read", stopped)
		}
	}
	return n, err
}

// Close ends both directions. What was written arrives, and then the end of the stream.
func (s *socket) Close() error {
	if !s.stop(net.ErrClosed) {
		return s.opError("close", net.ErrClosed)
	}
	s.unblock()
	s.out.signal(signClose, net.ErrClosed)
	s.settle(nil) // the line carries nothing if raw is broken
	return nil
}

func (s *socket) fail(err error) {
	s.stop(err)
	s.out.drop(err)
	s.closeRaw(true)
	s.mu.Lock()
	orphan := s.accept != nil && !s.opened
	s.mu.Unlock()
	if orphan {
		s.peer.fail(err) // nobody else will ever see it
	}
}

func (s *socket) crash() {
	s.stop(net.ErrClosed)
	s.unblock()
	s.out.cut(net.ErrClosed)
	s.settle(nil)
}

// unblock ends reads of a stopped end.
func (s *socket) unblock() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.raw.SetReadDeadline(time.Unix(1, 0)) // fails only if raw is closed, which unblocks too
}

// SetReadDeadline sets the time after which Read fails.
func (s *socket) SetReadDeadline(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.opError("set", s.err)
	}
	return s.raw.SetReadDeadline(t)
}

// SetDeadline sets the deadlines of Read and Write.
func (s *socket) SetDeadline(t time.Time) error {
	if err := s.SetReadDeadline(t); err != nil {
		return err
	}
	return s.SetWriteDeadline(t)
}
