package shape

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/foresay/foresay/wan"
)

// A Network connects the sites of a matrix. Its methods may be called concurrently. A site that the
// matrix does not have is an error of Listen and Dial, and a panic of the methods that inject
// faults.
type Network struct {
	schedule *schedule
	sites    []wan.Site
	links    map[wan.Path]*link // never changed
	real     bool               // connections are sockets

	mu        sync.Mutex
	conns     map[uint64]conn
	lastID    uint64
	lastPort  map[wan.Site]int
	listeners map[addr]*listener
	addresses map[string]addr            // of listeners, past ones included
	places    map[addr]string            // the last address at each place
	crashed   map[wan.Site]chan struct{} // closed when the site crashes
	closed    bool

	done    chan struct{}
	running sync.WaitGroup
}

// NewNetwork returns a network in memory. In a testing/synctest bubble, in which it has to be made
// then, its delays are exact. It needs no Close for the bubble to end, only its connections and
// listeners do.
func NewNetwork(m wan.Matrix, seed uint64) *Network {
	return newNetwork(m, seed, newTimerAlarm)
}

func newNetwork(m wan.Matrix, seed uint64, newAlarm func(func()) alarm) *Network {
	n := &Network{
		schedule:  newSchedule(newAlarm),
		sites:     m.Sites(),
		links:     make(map[wan.Path]*link),
		conns:     make(map[uint64]conn),
		lastPort:  make(map[wan.Site]int),
		listeners: make(map[addr]*listener),
		addresses: make(map[string]addr),
		places:    make(map[addr]string),
		crashed:   make(map[wan.Site]chan struct{}),
		done:      make(chan struct{}),
	}
	for p, l := range m.Links() {
		n.links[p] = newLink(p, l, seed)
	}
	for _, s := range n.sites {
		n.crashed[s] = make(chan struct{})
	}
	return n
}

// Listen returns a listener at a site. The first one of a site has the address "site:1" in memory;
// an address whose listener is closed is used again.
func (n *Network) Listen(site wan.Site) (net.Listener, error) {
	l, err := n.listen(site)
	if err != nil {
		return nil, fmt.Errorf("shape: listen at %q: %w", site, err)
	}
	return l, nil
}

func (n *Network) listen(site wan.Site) (*listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.crashed[site] == nil {
		return nil, n.unknown(site)
	}
	if n.closed {
		return nil, net.ErrClosed
	}
	at := n.freePlace(site)
	if n.real {
		raw, err := listenRaw(n.places[at])
		if err != nil {
			return nil, err
		}
		return n.listenOn(raw, at, wan.Path{From: site, To: site})
	}
	l := newListener(n, at)
	n.enlist(l)
	return l, nil
}

// freePlace returns the first place of a site without a listener. n.mu is held.
func (n *Network) freePlace(site wan.Site) addr {
	at := addr{site: site, port: 1}
	for n.listeners[at] != nil {
		at.port++
	}
	return at
}

// enlist makes l known. n.mu is held.
func (n *Network) enlist(l *listener) {
	n.listeners[l.at] = l
	n.addresses[l.address.String()] = l.at
	n.places[l.at] = l.address.String()
}

// start runs f in a goroutine that Close waits for, unless the network is closed.
func (n *Network) start(f func()) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return false
	}
	n.running.Go(f)
	return true
}

// Close ends everything at once: connections fail with net.ErrClosed, and so do listeners and
// dials. It waits until no goroutine of the network is left.
func (n *Network) Close() error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return net.ErrClosed
	}
	n.closed = true
	close(n.done)
	n.mu.Unlock()
	for _, l := range n.listening(func(*listener) bool { return true }) {
		l.Close() // fails only if somebody closed it first
	}
	fail(n.connected(func(wan.Path) bool { return true }), net.ErrClosed)
	n.schedule.close()
	n.running.Wait()
	return nil
}

// register adds ends of connections; it fails if the network is closed.
func (n *Network) register(cs ...conn) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return net.ErrClosed
	}
	for _, c := range cs {
		n.lastID++
		c.base().id = n.lastID
		n.conns[n.lastID] = c
	}
	return nil
}

func (n *Network) forget(id uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.conns, id)
}

func (n *Network) forgetListener(l *listener) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[l.at] == l {
		delete(n.listeners, l.at)
	}
}

func (n *Network) unknown(s wan.Site) error {
	return fmt.Errorf("unknown site %q (the sites are %q)", s, n.sites)
}

// An addr is the address of a listener or of an end of a connection in memory, such as "oregon:1".
type addr struct {
	site wan.Site
	port int
}

func (addr) Network() string  { return "wan" }
func (a addr) String() string { return string(a.site) + ":" + strconv.Itoa(a.port) }

// Pause is for what takes time at the ends, where a program stands for a busier one: a server's
// work, a user's thinking. It waits for d, and returns early with the context's cause. Nothing is
// waited for if d is not above 0.
func Pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
