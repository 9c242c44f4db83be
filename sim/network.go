package sim

import (
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/wan"
)

// A network is the links between sites and between the nodes at them.
type network struct {
	seed  uint64
	names []wan.Site
	sites [][]route // from, to
	links [][]link  // from, to: indices of nodes
}

// A route is one direction between two sites.
type route struct {
	path wan.Path
	base wan.Link // as configured
	set  wan.Link // as it was set since
	link wan.Link // as it is, with the schedules' faults
	free time.Duration
}

// A link is one direction between two nodes.
type link struct {
	cuts   int           // how many faults keep it from carrying anything; lifted one by one
	serial uint32        // of the connection: what was sent in an earlier one does not arrive
	last   time.Duration // the latest arrival of what is under way
	gap    bool          // something was lost, and the receiver does not know
	sent   uint64
}

// renew makes the link a new connection, for a receiver that knows of no earlier one. Datagrams
// need none: they arrive whoever is there by then.
func (l *link) renew(stream bool) {
	if stream {
		l.serial++
		l.last = 0
	}
	l.gap = false
}

func newNetwork(seed uint64, m wan.Matrix) network {
	n := network{seed: mix(seed ^ 0x6e6574), names: m.Sites()}
	if len(n.names) == 0 {
		n.names = []wan.Site{""}
		n.sites = [][]route{{{}}} // links that take no time
		return n
	}
	for _, from := range n.names {
		var row []route
		for _, to := range n.names {
			p := wan.Path{From: from, To: to}
			l, _ := m.Link(p)
			row = append(row, route{path: p, base: l, set: l, link: l})
		}
		n.sites = append(n.sites, row)
	}
	return n
}

func (n *network) site(s wan.Site) (int, bool) {
	i := slices.Index(n.names, s)
	return i, i >= 0
}

// grow makes links for so many nodes.
func (n *network) grow(nodes int) {
	for i := range n.links {
		n.links[i] = append(n.links[i], link{})
	}
	n.links = append(n.links, make([]link, nodes))
}

func (s *Sim[M]) route(from, to *node[M]) *route { return &s.net.sites[from.site][to.site] }

func (s *Sim[M]) link(from, to *node[M]) *link { return &s.net.links[from.index][to.index] }

// down reports whether nothing that is sent now arrives.
func (s *Sim[M]) down(from, to *node[M]) bool {
	return s.link(from, to).cuts > 0 || s.route(from, to).link.Down
}

// send lets a message leave a node.
func (s *Sim[M]) send(n *node[M], to protocol.ID, msg M) {
	s.hash.add(uint64(n.id)<<32 | uint64(to))
	s.trace.sent(s, n, to, msg)
	switch to {
	case protocol.App:
		s.add(0, event[M]{kind: evApp, node: n.index, msg: msg})
		return
	case n.id:
		s.add(0, event[M]{kind: evReceive, node: n.index, incarnation: n.incarnation, from: n.id, msg: msg})
		return
	}
	s.stats.Sent++
	peer := s.lookup(to)
	if peer == nil {
		s.stats.Lost++
		s.trace.lost(s, n, to, "nobody has this ID")
		return
	}
	p := s.pack(n, msg)
	if s.down(n, peer) {
		s.stats.Lost++
		s.link(n, peer).gap = true
		s.trace.lost(s, n, to, "the link is cut")
		return
	}
	if s.datagrams != nil {
		s.sendDatagram(n, peer, p)
		return
	}
	s.sendStream(n, peer, p)
}

// sendStream sends a message behind those that left before.
func (s *Sim[M]) sendStream(n, peer *node[M], p packet[M]) {
	r, l := s.route(n, peer), s.link(n, peer)
	if q := s.config.QueueBytes; q > 0 && r.waiting(s.now) > 0 && r.waiting(s.now)+p.sizeBytes > q {
		s.stats.Lost++
		l.gap = true
		s.trace.lost(s, n, peer.id, "the queue is full")
		return
	}
	s.tellGap(n, peer)
	l.sent++
	at := r.leave(s.now, p.sizeBytes)
	at += r.link.Transit(s.net.salt(n.index, peer.index, l.sent),
		wan.Departure{Path: r.path, At: at, SizeBytes: p.sizeBytes})
	l.last = max(l.last, at)
	s.queue.add(l.last, event[M]{kind: evReceive, node: peer.index, from: n.id, serial: l.serial, msg: p.msg,
		chain: s.chain.sent(n.site != peer.site)})
}

// leave returns when the last byte of what is sent now is on the wire.
func (r *route) leave(now time.Duration, sizeBytes int) time.Duration {
	if r.link.BytesPerSecond <= 0 {
		return now
	}
	r.free = max(r.free, now) + r.link.Serialize(sizeBytes)
	return r.free
}

// waiting returns how many bytes have not left yet.
func (r *route) waiting(now time.Duration) int {
	return int(max(r.free-now, 0).Seconds() * float64(r.link.BytesPerSecond))
}

// tellGap tells a peer, behind all that is under way to it, that something was lost. There is
// nothing to tell if the link is down, or the peer.
func (s *Sim[M]) tellGap(n, peer *node[M]) {
	l, r := s.link(n, peer), s.route(n, peer)
	if !l.gap || s.down(n, peer) {
		return
	}
	l.gap = false
	if peer.linked == nil || s.datagrams != nil {
		return
	}
	l.last = max(l.last, s.now+r.link.Delay)
	s.queue.add(l.last, event[M]{kind: evBroken, node: peer.index, incarnation: peer.incarnation, from: n.id})
}

// sendDatagram sends a message on its own.
func (s *Sim[M]) sendDatagram(n, peer *node[M], p packet[M]) {
	r, l := s.route(n, peer), s.link(n, peer)
	l.sent++
	d, salt := s.datagrams, s.net.salt(n.index, peer.index, l.sent)
	sent := r.link
	sent.Loss = 0 // which is what a stream does about it
	left := r.leave(s.now, p.sizeBytes)
	if unit(mix(salt^1)) < 1-(1-r.link.Loss)*(1-d.Loss) {
		s.stats.Lost++
		s.trace.lost(s, n, peer.id, "lost")
		return
	}
	copies := 1
	if unit(mix(salt^2)) < d.Duplicate {
		copies = 2
		s.stats.Duplicated++
	}
	for i := range uint64(copies) {
		if i > 0 {
			p = s.another(n, p)
		}
		at := left + sent.Transit(mix(salt+i), wan.Departure{Path: r.path, At: left, SizeBytes: p.sizeBytes})
		if unit(mix(salt^(4+i))) < d.Reorder {
			at += time.Duration(unit(mix(salt^(8+i))) * float64(d.ReorderBy))
		}
		s.queue.add(at, event[M]{kind: evReceive, node: peer.index, from: n.id, serial: l.serial, msg: p.msg,
			chain: s.chain.sent(n.site != peer.site)})
	}
}

// salt is a seed for one message.
func (n *network) salt(from, to int32, sent uint64) uint64 {
	return mix(n.seed ^ uint64(from)<<48 ^ uint64(to)<<32 ^ sent)
}

// random returns a time below a bound that depends on the seed and two numbers.
func (s *Sim[M]) random(below time.Duration, a, b uint64) time.Duration {
	return time.Duration(unit(mix(s.config.Seed^mix(a)+b)) * float64(below))
}
