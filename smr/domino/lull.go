package domino

import (
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// lullRules have the group rest when nothing is used of the time that passes: no claims are made
// then, no slots are decided, and nobody measures. A claim may always be late, so that is safe. The
// first command after it waits until the members have claimed the time of the lull, and it is
// decided again some time ahead who they are.
func (r *replica) lullRules() kit.LullRules {
	return kit.LullRules{
		Idle: r.nothingToDo, Ready: r.silent, Beat: beatTimer{},
		Patience: func() time.Duration { return r.Tempo.Times(suspectTicks * tick) },
		Heard: func(from protocol.ID) {
			if p := r.peers[from]; p != nil {
				p.silent = 0
			}
		},
		Look:   r.followClock, // what passes in a lull is no jump
		Resume: func(env *protocol.Env[smr.Message]) { env.After(0, probeTimer{}) },
	}
}

// nothingToDo reports whether all commands that the replica knows of are executed, and all members
// have its stream. A question that is not answered, as nobody has executed more, is nothing.
func (r *replica) nothingToDo() (mark uint64, ok bool) {
	l, q := &r.learner, &r.reads
	if r.role != member || r.wake != 0 || q.asking || r.time.held > 0 || r.time.fresh || r.time.told != clockRight ||
		len(r.queue)+len(r.ordered)+len(r.strangers)+len(q.next)+len(q.now)+len(q.marked) > 0 ||
		l.change != 0 || len(l.decided)+len(l.contests) > 0 || !r.coord.nothingToDo() || r.leader() == 0 {
		return 0, false
	}
	marks := []uint64{uint64(r.acceptor.promised), uint64(l.last)}
	own := r.acceptor.own.last()
	for _, id := range r.group {
		p := r.peers[id]
		if o := l.track(trackOf(id)); len(o.queue)+len(o.known) > 0 {
			return 0, false
		}
		if id == r.Cfg.ID {
			marks = append(marks, own)
			continue
		}
		if !r.alive(id) || p.out.has < own || p.pending.Count > p.have {
			return 0, false
		}
		marks = append(marks, p.have)
	}
	return kit.MarkOf(marks...), true
}

// nothingToDo reports whether a coordinator decides nothing but that the members do not change, or
// somebody else coordinates.
func (c *coordinator) nothingToDo() bool {
	return c.phase != preparing && !c.waiting && c.hold == 0 && len(c.changes)+len(c.revoking) == 0
}

// silent reports whether what the coordinator has decided as time passed has arrived everywhere,
// and no claims are about to be told.
func (r *replica) silent() bool {
	c := &r.coord
	if r.Batch.Waits() {
		return false
	}
	for _, f := range c.flows { //pure:ok whether one lacks something, in any order
		if f.has < c.sent.last() {
			return false
		}
	}
	return true
}
