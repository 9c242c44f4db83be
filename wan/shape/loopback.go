package shape

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/foresay/foresay/wan"
)

// acceptPause is how long a listener whose Accept failed, for want of descriptors say, waits until
// it tries again.
const acceptPause = 5 * time.Millisecond

// NewLoopback returns a network of real TCP connections over the loopback interface, on the wall
// clock, with the methods and the behaviour of one in memory. Addresses of listeners are real ones;
// a program that dials such an address without this network is taken to be at the listener's site.
//
// Bytes arrive late by what the machine needs to wake up, see the package documentation.
func NewLoopback(m wan.Matrix, seed uint64) *Network {
	n := newNetwork(m, seed, newClockAlarm)
	n.real = true
	return n
}

// Wrap makes c, one end of a connection that was made elsewhere, delay what it sends as the link of
// p does. If the other end is wrapped likewise, in another process perhaps, both directions are
// delayed. It fails only if the network is closed, and c is then the caller's as before.
func (n *Network) Wrap(c net.Conn, p wan.Path) (net.Conn, error) {
	n.link(p)
	s := n.newSocket(p, c)
	if err := n.register(s); err != nil {
		return nil, err
	}
	return s, nil
}

// WrapDialer returns a function that dials TCP addresses outside of the network, takes a round trip
// of p for it, and wraps the connection.
func (n *Network) WrapDialer(p wan.Path) func(ctx context.Context, address string) (net.Conn, error) {
	n.link(p)
	return func(ctx context.Context, address string) (net.Conn, error) {
		if err := n.cross(ctx, nil, p); err != nil {
			return nil, err
		}
		raw, dialErr := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err := n.cross(ctx, nil, p.Reverse()); err != nil {
			closeIf(raw)
			return nil, err
		}
		if dialErr != nil {
			return nil, dialErr
		}
		c, err := n.Wrap(raw, p)
		if err != nil {
			closeIf(raw)
		}
		return c, err
	}
}

// WrapListener makes l accept connections a round trip later and wrapped; what it sends takes the
// link of p. The network owns l from now on.
func (n *Network) WrapListener(l net.Listener, p wan.Path) (net.Listener, error) {
	n.link(p)
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.listenOn(l, n.freePlace(p.From), p)
}

// A doorstep is where the raw connections to a listener wait until it is known who they are from.
type doorstep struct {
	raw  net.Listener
	path wan.Path // in which ends of connections from elsewhere send

	mu        sync.Mutex
	dials     int                      // of this network that may still appear here
	unclaimed map[string]net.Conn      // by remote address
	claims    map[string]chan net.Conn // of dials that came here first
}

func newDoorstep(raw net.Listener, p wan.Path) *doorstep {
	return &doorstep{raw: raw, path: p, unclaimed: make(map[string]net.Conn), claims: make(map[string]chan net.Conn)}
}

// enter sorts a new connection. It returns those that are known to come from elsewhere.
func (d *doorstep) enter(c net.Conn) (strangers []net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	from := c.RemoteAddr().String()
	if claim := d.claims[from]; claim != nil {
		delete(d.claims, from)
		claim <- c
		return nil
	}
	d.unclaimed[from] = c
	return d.strangers()
}

// expect announces a dial.
func (d *doorstep) expect() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dials++
}

// claim returns the channel on which the other end of a dialed connection comes. Each expect is
// followed by one claim and one settle.
func (d *doorstep) claim(local net.Addr) <-chan net.Conn {
	d.mu.Lock()
	defer d.mu.Unlock()
	claim := make(chan net.Conn, 1)
	if c := d.unclaimed[local.String()]; c != nil {
		delete(d.unclaimed, local.String())
		claim <- c
	} else {
		d.claims[local.String()] = claim
	}
	return claim
}

// settle ends a dial; local is nil if it failed. It returns the connections that are now known to
// come from elsewhere.
func (d *doorstep) settle(local net.Addr) (strangers []net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dials--
	if local != nil {
		delete(d.claims, local.String())
	}
	return d.strangers()
}

// strangers returns what nobody will claim. d.mu is held.
func (d *doorstep) strangers() (cs []net.Conn) {
	if d.dials > 0 {
		return nil
	}
	for from, c := range d.unclaimed {
		delete(d.unclaimed, from)
		cs = append(cs, c)
	}
	return cs
}

// leave returns what is unclaimed when the listener ends.
func (d *doorstep) leave() (cs []net.Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.unclaimed {
		cs = append(cs, c)
	}
	clear(d.unclaimed)
	return cs
}

// listenRaw listens on the loopback interface, at the wanted address if that is free.
func listenRaw(wanted string) (net.Listener, error) {
	if wanted != "" {
		if l, err := net.Listen("tcp", wanted); err == nil {
			return l, nil
		}
	}
	return net.Listen("tcp", "127.0.0.1:0")
}

// listenOn makes a listener of a real one and starts to accept. n.mu is held.
func (n *Network) listenOn(raw net.Listener, at addr, p wan.Path) (*listener, error) {
	if n.closed {
		return nil, net.ErrClosed
	}
	l := newListener(n, at)
	l.address = raw.Addr()
	l.doorstep = newDoorstep(raw, p)
	n.enlist(l)
	n.running.Go(l.acceptRaw)
	return l, nil
}

func (l *listener) acceptRaw() {
	for {
		c, err := l.doorstep.raw.Accept()
		if err == nil {
			l.welcome(l.doorstep.enter(c))
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			break
		}
		select {
		case <-l.done:
		case <-time.After(acceptPause):
		}
	}
	for _, c := range l.doorstep.leave() {
		closeIf(c)
	}
}

// welcome lets connections from elsewhere in, once their handshake would have ended.
func (l *listener) welcome(strangers []net.Conn) {
	for _, raw := range strangers {
		if !l.net.start(func() { l.admit(raw) }) {
			closeIf(raw)
		}
	}
}

func (l *listener) admit(raw net.Conn) {
	p := l.doorstep.path
	ctx := context.Background() // ends with the network
	for _, p := range [...]wan.Path{p, p.Reverse()} {
		if l.net.cross(ctx, l.done, p) != nil {
			closeIf(raw)
			return
		}
	}
	s := l.net.newSocket(p, raw)
	if l.net.register(s) != nil {
		closeIf(raw)
		return
	}
	l.offer(s)
}

// A rawPair is both ends of a real connection; the zero rawPair is none.
type rawPair struct{ client, server net.Conn }

func (p rawPair) close() {
	closeIf(p.client)
	closeIf(p.server)
}

// dialRaw makes a real connection to l.
func (l *listener) dialRaw(ctx context.Context) (p rawPair, err error) {
	l.doorstep.expect()
	p.client, err = new(net.Dialer).DialContext(ctx, "tcp", l.address.String())
	if err != nil {
		l.welcome(l.doorstep.settle(nil))
		return rawPair{}, err
	}
	local := p.client.LocalAddr()
	claim := l.doorstep.claim(local)
	select {
	case p.server = <-claim:
	case <-ctx.Done():
		err = ctx.Err()
	case <-l.done:
		err = syscall.ECONNRESET
	}
	l.welcome(l.doorstep.settle(local))
	if err == nil {
		return p, nil
	}
	select {
	case p.server = <-claim: // it came after all
	default:
	}
	p.close()
	return rawPair{}, err
}

// closeIf closes a connection that was given up, if there is one.
func closeIf(c net.Conn) {
	if c != nil {
		c.Close() // nobody is left to be told
	}
}

// Undelayed is TCP on the loopback interface as fast as it is, with the methods of a Network: all
// sites are one, and nothing is delayed or lost.
type Undelayed struct{}

// Listen listens at a port of its own.
func (Undelayed) Listen(wan.Site) (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }

// Dial connects to an address that a listener has.
func (Undelayed) Dial(ctx context.Context, _ wan.Site, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", address)
}

// Close does nothing: listeners and connections are closed one by one.
func (Undelayed) Close() error { return nil }
