package raft

import (
	"go.etcd.io/raft/v3"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// rounds are how a part's owner learns that its member still leads: a read index, without a query.
// One round of heartbeats answers all who asked before it began; those who ask meanwhile wait for
// the next one [Raft thesis §6.4].
//
// A round begins only when the member is current. The library puts off reads that come before an
// entry of the leader's own term is committed, and keeps them when the member leads no more: such a
// read of an earlier term could be taken for the answer to a later round.
type rounds struct {
	next   []uint64 // the questions for the next round
	asked  []uint64 // in the current round
	asking bool
	index  uint64 // what must be applied before the current round is over; 0 while that is not known
}

// confirm has the next round answer a question, which begins as soon as it can.
func (p *part) confirm(env *protocol.Env[smr.Message], question uint64) bool {
	if p.Over() || !p.led {
		return false
	}
	p.Resting.Work(env)
	p.rounds.next = append(p.rounds.next, question)
	p.finish(env)
	return true
}

// maybeConfirm ends a round that is confirmed and caught up with, and begins the next one.
func (p *part) maybeConfirm(env *protocol.Env[smr.Message]) {
	rd := &p.rounds
	for p.led && p.current {
		if rd.asking && rd.index > 0 && p.core.applied >= rd.index {
			for _, question := range rd.asked {
				p.events = append(p.events, event{kind: wasConfirmed, question: question})
			}
			rd.asking, rd.asked, rd.index = false, nil, 0
		}
		if rd.asking || len(rd.next) == 0 {
			return
		}
		rd.asking, rd.asked, rd.next = true, rd.next, nil
		p.core.node.ReadIndex(nil)
		p.core.flush(env)
	}
}

// confirmed takes the library's word that this member led when the round began.
func (p *part) confirmed(_ *protocol.Env[smr.Message], states []raft.ReadState) {
	if p.rounds.asking {
		p.rounds.index = max(states[len(states)-1].Index, 1)
	}
}
