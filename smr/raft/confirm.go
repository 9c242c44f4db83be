package raft

import (
	"go.etcd.io/raft/v3"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// rounds are how a part's owner learns that its member still leads: a read index, without a query.
// One round of heartbeats answers all who asked before it began [Raft thesis §6.4]. While maxRounds
// are under way, those who ask wait for the next one.
//
// A round begins only when the member is current. The library puts off reads that come before an
// entry of the leader's own term is committed, and keeps them when the member leads no more: such a
// read of an earlier term could be taken for the answer to a later round.
type rounds struct {
	next     []uint64 // the questions for the next round
	underway []round  // as they began, which is as the library confirms them
}

// round is one that is not over.
type round struct {
	questions []uint64
	index     uint64 // what must be applied before it is over; 0 while that is not known
}

// maxRounds bounds the rounds that are under way at once: who asks waits for a sixteenth of a round
// at most, and heartbeats stay few.
const maxRounds = 16

// idle reports whether nobody waits for a round.
func (r *rounds) idle() bool { return len(r.next)+len(r.underway) == 0 }

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

// maybeConfirm ends the rounds that are confirmed and caught up with, and begins the next one.
func (p *part) maybeConfirm(env *protocol.Env[smr.Message]) {
	rd := &p.rounds
	for p.led && p.current {
		for len(rd.underway) > 0 && rd.underway[0].index > 0 && p.core.applied >= rd.underway[0].index {
			for _, question := range rd.underway[0].questions {
				p.events = append(p.events, event{kind: wasConfirmed, question: question})
			}
			rd.underway = rd.underway[1:]
		}
		if len(rd.next) == 0 || len(rd.underway) == maxRounds {
			return
		}
		rd.underway, rd.next = append(rd.underway, round{questions: rd.next}), nil
		p.core.node.ReadIndex(nil)
		p.core.flush(env)
	}
}

// confirmed takes the library's word that this member led when rounds began, a state for each.
func (p *part) confirmed(_ *protocol.Env[smr.Message], states []raft.ReadState) {
	for i := range p.rounds.underway {
		if r := &p.rounds.underway[i]; r.index == 0 && len(states) > 0 {
			r.index, states = max(states[0].Index, 1), states[1:]
		}
	}
}
