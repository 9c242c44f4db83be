package shape

import (
	"cmp"
	"maps"
	"slices"
	"syscall"

	"github.com/foresay/foresay/wan"
)

// SetDown makes the direction from one site to another a black hole, or ends that. What has left
// already arrives. What is written meanwhile waits, as TCP keeps it for retransmission, and leaves
// at the moment when the link is up again; dials wait likewise. Nobody is told: deadlines and
// keepalives have to notice.
func (n *Network) SetDown(from, to wan.Site, down bool) {
	n.change(wan.Path{From: from, To: to}, func(l *wan.Link) { l.Down = down })
}

// SetLink replaces the link from one site to another for what leaves from now on. It never lets
// bytes of a connection overtake each other. It panics if a value of l is out of range.
func (n *Network) SetLink(from, to wan.Site, l wan.Link) {
	if err := l.Validate(); err != nil {
		panic("shape: " + err.Error())
	}
	n.change(wan.Path{From: from, To: to}, func(old *wan.Link) { *old = l })
}

// Link returns the present link from one site to another.
func (n *Network) Link(from, to wan.Site) wan.Link {
	l, _ := n.link(wan.Path{From: from, To: to}).state()
	return l
}

// Bytes returns how many bytes have left from one site to another, lost ones included. These are
// the bytes that connections carry, without the headers of TCP and IP.
func (n *Network) Bytes(from, to wan.Site) int64 {
	_, b := n.link(wan.Path{From: from, To: to}).state()
	return b
}

// TotalBytes returns the sum of Bytes over all directions.
func (n *Network) TotalBytes() int64 {
	var sum int64
	for _, l := range n.links {
		_, b := l.state()
		sum += b
	}
	return sum
}

// Reset resets all connections between two sites, whichever of them dialed: at both ends, reads and
// writes fail at once with syscall.ECONNRESET, and bytes that are under way or not yet read are
// lost.
func (n *Network) Reset(a, b wan.Site) {
	p := wan.Path{From: a, To: b}
	n.link(p)
	fail(n.connected(func(q wan.Path) bool { return q == p || q == p.Reverse() }), syscall.ECONNRESET)
}

// fail ends connections with an error.
func fail(cs []conn, err error) {
	for _, c := range cs {
		c.base().stop(err) // all of them first: none shall see what the end of another does to it
	}
	for _, c := range cs {
		c.fail(err)
	}
}

// Crash does to a site's connections and listeners what the death of its processes does: all of
// them are closed, dials from it fail, bytes that have left still arrive and behind them a reset,
// so that the other ends notice one delay later. A machine that vanishes silently is a Crash after
// SetDown of its links. The site can listen again at once, and gets its addresses back.
func (n *Network) Crash(site wan.Site) {
	n.link(wan.Path{From: site, To: site})
	n.mu.Lock()
	close(n.crashed[site])
	n.crashed[site] = make(chan struct{})
	n.mu.Unlock()
	for _, l := range n.listening(func(l *listener) bool { return l.at.site == site }) {
		l.Close() // fails only if somebody closed it first
	}
	for _, c := range n.connected(func(p wan.Path) bool { return p.From == site }) {
		c.crash()
	}
}

func (n *Network) change(p wan.Path, f func(*wan.Link)) {
	if !n.link(p).set(f) {
		return
	}
	for _, c := range n.connected(func(q wan.Path) bool { return q == p }) {
		c.base().out.heal()
	}
}

// link returns a direction's state; it panics if the network lacks it.
func (n *Network) link(p wan.Path) *link {
	l := n.links[p]
	if l == nil {
		for _, s := range [...]wan.Site{p.From, p.To} {
			if !slices.Contains(n.sites, s) {
				panic("shape: " + n.unknown(s).Error())
			}
		}
	}
	return l
}

// connected returns the ends of connections that send along certain paths, in the order in which
// they were made.
func (n *Network) connected(match func(wan.Path) bool) []conn {
	n.mu.Lock()
	defer n.mu.Unlock()
	var cs []conn
	for _, id := range slices.Sorted(maps.Keys(n.conns)) {
		if c := n.conns[id]; match(c.base().path) {
			cs = append(cs, c)
		}
	}
	return cs
}

// listening returns certain listeners, in the order of their addresses.
func (n *Network) listening(match func(*listener) bool) []*listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	var ls []*listener
	for _, l := range n.listeners {
		if match(l) {
			ls = append(ls, l)
		}
	}
	slices.SortFunc(ls, func(a, b *listener) int {
		return cmp.Or(cmp.Compare(a.at.site, b.at.site), cmp.Compare(a.at.port, b.at.port))
	})
	return ls
}
