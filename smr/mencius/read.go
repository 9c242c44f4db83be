package mencius

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// reads are queries that wait until all is executed that may have been acknowledged before they
// came. A command that was, was accepted by a majority; so a majority, asked later, includes one
// that has seen it. Many queries wait for one question.
type reads struct {
	round   uint64 // the newest question
	heard   []seen // the newest answers, in the order of the members
	beats   int    // since something was asked
	waiting []read // in the order in which they came
	held    kit.HeldQueries
}

// seen is a member's answer to a question: the last slot in which it has seen a command.
type seen struct {
	round uint64
	slot  smr.Slot
}

type read struct {
	round   uint64 // the question that it waits for
	from    protocol.ID
	queries []kit.Query
}

// maxRounds bounds the questions that are not answered. Queries that come then wait for the next
// one.
const maxRounds = 8

// asking tells whether a question has to be asked.
func (q *reads) asking() bool {
	n := len(q.waiting)
	return n > 0 && q.waiting[n-1].round > q.round
}

// again has all that waits ask anew, in another epoch.
func (q *reads) again() {
	for i := range q.waiting {
		q.waiting[i].round = q.round + 1
	}
	q.heard = nil
}

// answer returns the last slot that a majority, asked in a round or later, has seen a command in;
// ok is false if not enough have answered.
func (q *reads) answer(round uint64, majority int) (slot smr.Slot, ok bool) {
	n := 0
	for _, s := range q.heard {
		if s.round >= round {
			n++
			slot = max(slot, s.slot)
		}
	}
	return slot, n >= majority
}

func (r *Replica) onRead(env *protocol.Env[smr.Message], from protocol.ID, m kit.ReadRequest) {
	q := &r.reads
	if !q.held.Take(env, r.cfg, from, m.Queries) {
		return
	}
	q.waiting = append(q.waiting, read{round: q.round + 1, from: from, queries: m.Queries})
}

// askRound asks the members how far they have seen commands, if there are queries that wait for it.
// Those of an epoch that ends wait for the next.
func (r *Replica) askRound(env *protocol.Env[smr.Message]) {
	q := &r.reads
	if !q.asking() || r.epoch.last != 0 || q.round-q.waiting[0].round+1 >= maxRounds && q.waiting[0].round <= q.round {
		return
	}
	q.round++
	r.look(env)
}

func (r *Replica) look(env *protocol.Env[smr.Message]) {
	r.reads.beats = 0
	for _, id := range r.epoch.members {
		if m := (Look{r.epoch.number, r.reads.round}); id != r.cfg.ID {
			r.admission.SendAhead(env, id, m)
		} else {
			r.onSeen(env, r.own, Seen{m.Epoch, m.Round, r.seen})
		}
	}
}

// lookAgain repeats a question that is not answered.
func (r *Replica) lookAgain(env *protocol.Env[smr.Message]) {
	q := &r.reads
	if q.beats++; len(q.waiting) > 0 && q.waiting[0].round <= q.round && q.beats >= 2 {
		r.look(env)
	}
}

func (r *Replica) onLook(env *protocol.Env[smr.Message], from protocol.ID, m Look) {
	if m.Epoch == r.epoch.number {
		r.admission.SendAhead(env, from, Seen{m.Epoch, m.Round, r.seen})
	}
}

func (r *Replica) onSeen(env *protocol.Env[smr.Message], member int, m Seen) {
	q := &r.reads
	if m.Epoch != r.epoch.number || m.Round > q.round {
		return
	}
	if q.heard == nil {
		q.heard = make([]seen, len(r.epoch.members))
	}
	if h := &q.heard[member]; m.Round >= h.round {
		*h = seen{m.Round, max(m.Slot, h.slot)}
	}
	r.answerReads(env)
}

// answerReads answers what is executed far enough.
func (r *Replica) answerReads(env *protocol.Env[smr.Message]) {
	q := &r.reads
	n := 0
	for _, w := range q.waiting {
		slot, ok := q.answer(w.round, quorum.Majority(len(r.epoch.members)))
		// A change of the members may hide what comes behind it from those who answered.
		if !ok || slot > r.state.Applied() || r.epoch.last != 0 {
			break
		}
		n++
		q.held.Answered(w.queries)
		items := make([]kit.ReadReply, len(w.queries))
		for k, query := range w.queries {
			items[k] = kit.ReadReply{ID: query.ID, Result: r.state.Read(query.Body)}
		}
		kit.SendReads(env, w.from, items)
	}
	clear(q.waiting[:n])
	if q.waiting = q.waiting[n:]; len(q.waiting) == 0 {
		q.waiting = nil
	}
	if n > 0 {
		r.soon(env)
	}
}
