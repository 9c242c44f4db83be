package sim

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
)

// Keep is how many of the calls that are not durable yet survive a crash, in their order; more than
// there are means all.
type Keep int

const (
	// KeepNone is the disk that wrote nothing it was not made to.
	KeepNone Keep = 0
	// KeepAll is the disk that was done just in time, though nobody was told.
	KeepAll Keep = math.MaxInt
)

// Crash ends a node's incarnation: memory, timers and what waits for the disk are gone. What has
// left arrives; behind it the peers learn that the connection broke. It does nothing to a node that
// is down.
func (s *Sim[M]) Crash(id protocol.ID, keep Keep) {
	n := s.lookup(id)
	if n == nil || n.node == nil {
		return
	}
	kept := min(max(int(keep), 0), len(n.pending))
	s.trace.note(s, n, fmt.Sprintf("crashes; of %d writes that are not durable %d are kept", len(n.pending), kept))
	s.hash.add(uint64(kept)<<32 | uint64(id))
	s.stats.Crashes++
	s.stats.LostWrites += len(n.pending) - kept
	n.lose(kept)
	n.incarnation++
	n.node, n.checked, n.linked, n.env, n.timers = nil, nil, nil, nil, nil
	n.crashing = crashPlan{}
	s.parcels -= len(n.waiting) - n.first
	n.waiting, n.first, n.paused = nil, 0, false
	for _, i := range n.backlog {
		s.queue.release(i)
	}
	n.backlog = nil
	s.dropLine(n)
	for _, peer := range s.nodes {
		if peer != n && s.datagrams == nil {
			s.link(peer, n).renew(true)
			s.link(n, peer).gap = true
			s.tellGap(n, peer)
		}
	}
}

// A crashPlan is a crash within a call that writes.
type crashPlan struct {
	in   uint64 // which of the node's writes; 0: none
	keep Keep
}

// CrashInNextWrite makes a node crash within its next call that writes: the calls that are not
// durable by then, that one being the last, survive as far as keep says. What was given to
// SendAhead in it has left; if it survives, so has some of what was given to Send in it and before:
// the first messages, as many as chance has it.
func (s *Sim[M]) CrashInNextWrite(id protocol.ID, keep Keep) {
	if n := s.lookup(id); n != nil {
		s.CrashInWrite(id, n.writes+1, keep)
	}
}

// CrashInWrite is CrashInNextWrite for a later one: the one by which Writes becomes n. With it a
// test can run once without a crash, and then crash in each write. A node has one plan at a time; a
// crash ends it.
func (s *Sim[M]) CrashInWrite(id protocol.ID, n uint64, keep Keep) {
	if node := s.lookup(id); node != nil && node.node != nil && n > node.writes {
		node.crashing = crashPlan{n, keep}
	}
}

// Writes returns how many calls of a node wrote something, those of earlier incarnations included.
func (s *Sim[M]) Writes(id protocol.ID) uint64 {
	if n := s.lookup(id); n != nil {
		return n.writes
	}
	return 0
}

// crashWithin is the end of a call in which its node crashes.
func (s *Sim[M]) crashWithin(n *node[M], out []protocol.Effect[M]) {
	keep := n.crashing.keep
	survives := int(keep) >= len(n.pending)
	var durable []parcel[M] // what can leave, as all that it waits for is durable
	if survives {
		durable = slices.Clone(n.waiting[n.first:])
	}
	for i := range out {
		switch e := &out[i]; {
		case e.Kind == protocol.KindSendAhead:
			s.send(n, e.To, e.Msg)
		case e.Kind == protocol.KindSend && survives:
			durable = append(durable, parcel[M]{to: e.To, msg: e.Msg})
		}
	}
	leave := s.random(time.Duration(len(durable)+1), uint64(n.id)<<32|uint64(n.incarnation), s.steps)
	for _, p := range durable[:leave] {
		s.send(n, p.to, p.msg)
	}
	s.Crash(n.id, keep)
}

// SetDisk makes a node's disk faster or slower for syncs from now on, until Heal. Times below 0 are
// 0.
func (s *Sim[M]) SetDisk(id protocol.ID, d Disk) {
	if n := s.lookup(id); n != nil {
		d.Latency, d.Jitter = max(d.Latency, 0), max(d.Jitter, 0)
		s.trace.note(s, n, fmt.Sprintf("its disk takes %v now, and up to %v more", d.Latency, d.Jitter))
		n.disk = d
	}
}

// Restart brings a node back that is down, with what is on its disk. It does nothing to one that is
// up.
func (s *Sim[M]) Restart(id protocol.ID) {
	n := s.lookup(id)
	if n == nil || n.node != nil {
		return
	}
	s.stats.Restarts++
	s.boot(n)
}

// LoseDisk empties the disk of a node, which crashes if it is up. The same identity must not take
// part any more; a test can restart it to see that it is refused.
func (s *Sim[M]) LoseDisk(id protocol.ID) {
	n := s.lookup(id)
	if n == nil {
		return
	}
	s.Crash(id, KeepNone)
	s.trace.note(s, n, "loses its disk")
	n.keys, n.log, n.diskLost = store{}, log[M]{next: 1}, true
}

// Backup returns a function that puts a node's disk back to what is durable on it now, as restoring
// it from a backup does. The node crashes if it is up then.
func (s *Sim[M]) Backup(id protocol.ID) (restore func()) {
	n := s.lookup(id)
	if n == nil {
		return func() {}
	}
	copied := func(keys store, l log[M]) (store, log[M]) {
		l.records = slices.Clone(l.records)
		return keys.clone(), l
	}
	then := node[M]{pending: n.pending}
	then.keys, then.log = copied(n.keys, n.log)
	then.lose(0)
	return func() {
		s.Crash(id, KeepNone)
		s.trace.note(s, n, "has an older copy of its disk")
		n.keys, n.log = copied(then.keys, then.log)
	}
}

// Up reports whether a node runs. One that stands still does.
func (s *Sim[M]) Up(id protocol.ID) bool {
	n := s.lookup(id)
	return n != nil && n.node != nil
}
