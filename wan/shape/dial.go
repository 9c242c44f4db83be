package shape

import (
	"context"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/foresay/foresay/wan"
)

// firstPort is the first port of dialing ends.
const firstPort = 32768

// DialContext returns a function that dials from a site, for grpc.WithContextDialer.
func (n *Network) DialContext(from wan.Site) func(ctx context.Context, address string) (net.Conn, error) {
	return func(ctx context.Context, address string) (net.Conn, error) { return n.Dial(ctx, from, address) }
}

// Dial connects a site to the address of a listener of this network. As with TCP it returns after
// one round trip, with an error that is syscall.ECONNREFUSED if nobody listens there, and the
// listener accepts half a round trip later.
func (n *Network) Dial(ctx context.Context, from wan.Site, address string) (net.Conn, error) {
	c, err := n.dial(ctx, from, address)
	if err != nil {
		return nil, fmt.Errorf("shape: dial %s from %s: %w", address, from, err)
	}
	return c, nil
}

func (n *Network) dial(ctx context.Context, from wan.Site, address string) (net.Conn, error) {
	crashed, at, err := n.route(from, address)
	if err != nil {
		return nil, err
	}
	p := wan.Path{From: from, To: at.site}
	if err := n.cross(ctx, crashed, p); err != nil {
		return nil, err
	}
	l := n.listenerAt(at)
	var raw rawPair
	if l != nil && n.real {
		if raw, err = l.dialRaw(ctx); err != nil {
			return nil, err
		}
	}
	if err := n.cross(ctx, crashed, p.Reverse()); err != nil {
		raw.close()
		return nil, err
	}
	switch {
	case l == nil:
		return nil, syscall.ECONNREFUSED
	case n.real:
		return n.joinSockets(p, raw, l)
	default:
		return n.joinPipes(p, l)
	}
}

func (n *Network) joinPipes(p wan.Path, l *listener) (net.Conn, error) {
	client, server := n.newPipe(p, n.port(p.From), l)
	if err := n.register(client, server); err != nil {
		return nil, err
	}
	client.out.signal(signOpen, nil)
	return client, nil
}

func (n *Network) joinSockets(p wan.Path, raw rawPair, l *listener) (net.Conn, error) {
	client, server := n.newSocket(p, raw.client), n.newSocket(p.Reverse(), raw.server)
	client.accept, client.peer = l, server
	if err := n.register(client, server); err != nil {
		raw.close()
		return nil, err
	}
	client.out.signal(signOpen, nil)
	return client, nil
}

// route returns where address is, and what closes when the dialing site crashes.
func (n *Network) route(from wan.Site, address string) (crashed <-chan struct{}, at addr, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	crashed, ok := n.crashed[from]
	if !ok {
		return nil, addr{}, n.unknown(from)
	}
	at, ok = n.addresses[address]
	if !ok {
		return nil, addr{}, fmt.Errorf("no listener ever had this address: %w", syscall.ECONNREFUSED)
	}
	return crashed, at, nil
}

func (n *Network) listenerAt(at addr) *listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.listeners[at]
}

// port returns a fresh address of a dialing end.
func (n *Network) port(site wan.Site) addr {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lastPort[site]++
	return addr{site: site, port: firstPort - 1 + n.lastPort[site]}
}

// cross waits as long as a packet without payload takes along p, which is for ever while p is down.
func (n *Network) cross(ctx context.Context, crashed <-chan struct{}, p wan.Path) error {
	for {
		now := n.schedule.now()
		_, due, healed := n.links[p].send(now, 0)
		if healed == nil {
			if due <= now {
				return ctx.Err()
			}
			arrived := make(chan struct{})
			e := newEvent(func(time.Duration) { close(arrived) })
			n.schedule.at(e, due)
			defer n.schedule.cancel(e)
			return n.await(ctx, crashed, arrived)
		}
		if err := n.await(ctx, crashed, healed); err != nil {
			return err
		}
	}
}

func (n *Network) await(ctx context.Context, crashed, c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-crashed:
		return net.ErrClosed
	case <-n.done:
		return net.ErrClosed
	}
}
