package multipaxos

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// reads are queries that wait until it is known that no other leader has had something decided
// before they came: a majority says that it followed this one when it was asked, which was later
// than the query came. Many wait for one question.
type reads struct {
	round   uint64 // the newest question
	waiting []read // in the order in which they came
	held    kit.HeldQueries
}

type read struct {
	round   uint64
	index   smr.Slot // has to be applied
	from    protocol.ID
	queries []kit.Query
}

// maxRounds bounds the questions that are not answered. Queries that come then wait for the next
// one.
const maxRounds = 8

func (r *Replica) onRead(env *protocol.Env[smr.Message], from protocol.ID, m kit.ReadRequest) {
	l := &r.lead.reads
	if !l.held.Take(env, r.cfg, from, m.Queries) {
		return
	}
	l.waiting = append(l.waiting, read{round: l.round + 1, index: max(r.commit, r.lead.start), from: from, queries: m.Queries})
	r.soon(env)
}

// askRound asks the followers whether they still follow, if there are queries that wait for it.
func (r *Replica) askRound(env *protocol.Env[smr.Message]) {
	l := &r.lead.reads
	if n := len(l.waiting); r.role != leader || n == 0 || l.waiting[n-1].round <= l.round || l.round-r.confirmed() >= maxRounds {
		return
	}
	l.round++
	r.heartbeat(env)
	r.answerReads(env) // a leader alone needs nobody
}

// confirmed returns the newest question that a majority has answered.
func (r *Replica) confirmed() uint64 {
	rounds := []uint64{r.lead.reads.round}
	for _, p := range r.lead.peers {
		rounds = append(rounds, p.round)
	}
	return quorum.KthLargest(rounds, quorum.Majority(len(rounds)))
}

func (r *Replica) onFollows(env *protocol.Env[smr.Message], from protocol.ID, disk kit.Incarnation, m Follows) {
	p := r.peer(from)
	if r.role != leader || m.Ballot != r.promised || p == nil || m.Round > r.lead.reads.round || p.stranger(disk) {
		return
	}
	p.heard = true
	p.round = max(p.round, m.Round)
	r.answerReads(env)
	r.askRound(env)
}

func (r *Replica) answerReads(env *protocol.Env[smr.Message]) {
	l := &r.lead.reads
	if len(l.waiting) == 0 {
		return
	}
	confirmed, n := r.confirmed(), 0
	for _, q := range l.waiting {
		if q.round > confirmed || q.index > r.commit {
			break
		}
		n++
		l.held.Answered(q.queries)
		items := make([]kit.ReadReply, len(q.queries))
		for i, query := range q.queries {
			items[i] = kit.ReadReply{ID: query.ID, Result: r.state.Read(query.Body)}
		}
		kit.SendReads(env, q.from, items)
	}
	clear(l.waiting[:n])
	if l.waiting = l.waiting[n:]; len(l.waiting) == 0 {
		l.waiting = nil
	}
}
