package fastpaxos

import (
	"fmt"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// reads are queries that wait until a majority has said that it followed the coordinator when it
// was asked, which was later than the query came: so no other one has had anything executed before.
// And they wait for the slots in which that majority has voted: a client may know already that its
// command is chosen there. Many wait for one question.
type reads struct {
	round   uint64 // the newest question
	heard   map[protocol.ID]follows
	beats   int
	waiting []read // in the order in which they came
	held    kit.HeldQueries
}

// follows is a member's newest answer.
type follows struct {
	round uint64
	top   smr.Slot
}

type read struct {
	round   uint64
	known   bool     // the question is answered
	slot    smr.Slot // has to be applied
	from    protocol.ID
	queries []kit.Query
}

// maxRounds bounds the questions that are not answered. Queries that come then wait for the next
// one.
const maxRounds = 8

func (r *Replica) onRead(env *protocol.Env[smr.Message], from protocol.ID, m kit.ReadRequest) {
	q := &r.lead.reads
	if !q.held.Take(env, r.cfg, from, m.Queries) {
		return
	}
	q.waiting = append(q.waiting, read{round: q.round + 1, slot: max(r.state.Applied(), r.lead.start), from: from, queries: m.Queries})
	if q.round-q.waiting[0].round+1 < maxRounds || q.waiting[0].round > q.round {
		q.round++
		r.look(env)
	}
}

func (r *Replica) look(env *protocol.Env[smr.Message]) {
	r.lead.reads.beats = 0
	for _, id := range r.members() {
		if id != r.cfg.ID {
			r.admission.SendAhead(env, id, Look{r.head(r.promised), r.lead.reads.round})
		}
	}
	r.answerReads(env)
}

// lookAgain repeats a question that is not answered, or asks the next one.
func (r *Replica) lookAgain(env *protocol.Env[smr.Message]) {
	q := &r.lead.reads
	if q.beats++; len(q.waiting) > 0 && q.beats >= 2 {
		q.round = max(q.round, q.waiting[len(q.waiting)-1].round)
		r.look(env)
	}
}

func (r *Replica) onFollows(env *protocol.Env[smr.Message], from protocol.ID, m Follows) {
	if r.lead == nil || m.Era != r.promised || m.Round > r.lead.reads.round {
		return
	}
	q := &r.lead.reads
	if q.heard == nil {
		q.heard = map[protocol.ID]follows{}
	}
	if h := q.heard[from]; m.Round >= h.round {
		q.heard[from] = follows{m.Round, m.Top}
	}
	if r.open != 0 && r.near(m.Top) {
		r.lead.end = max(r.lead.end, m.Top) // its votes may be lost
	}
	r.answerReads(env)
}

// answer returns the last slot that a majority, asked in a round or later, has voted in; ok is
// false if not enough have answered.
func (r *Replica) answer(round uint64) (top smr.Slot, ok bool) {
	members, n := r.members(), 0
	for _, id := range members {
		h := r.lead.reads.heard[id]
		if id == r.cfg.ID {
			h = follows{r.lead.reads.round, r.fastTop}
		}
		if h.round >= round {
			n++
			top = max(top, h.top)
		}
	}
	return top, n >= quorum.Majority(len(members))
}

func (r *Replica) answerReads(env *protocol.Env[smr.Message]) {
	q := &r.lead.reads
	n := 0
	for i := range q.waiting {
		w := &q.waiting[i]
		if top, ok := r.answer(w.round); ok && !w.known {
			w.slot, w.known = max(w.slot, top), true // what is voted on later does not matter to it
		}
		if i != n || !w.known || w.slot > r.state.Applied() || r.removed {
			continue
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
}

// takeChange takes a change of the members. A new one is brought up to date first: until it is, it
// would only make the majority larger.
func (r *Replica) takeChange(env *protocol.Env[smr.Message], from protocol.ID, m kit.ChangeRequest) []kit.Entry {
	r.desk.Meet(env, m.Change)
	id := m.Change.Add.ID
	_, member := r.state.Member(id)
	if _, there := r.admission.Joiner(id); m.Change.Remove == 0 && there && !member && !r.state.Removed(id) {
		if p, ok := r.progress.Of(id); !ok || p.Applied == 0 || p.Applied+window/4 < r.state.Applied() {
			env.SendAhead(from, kit.NotYet{Session: m.Session, Seq: m.Seq, Reason: fmt.Sprintf("replica %d is being brought up to date", id)})
			return nil
		}
	}
	return r.desk.TakeChange(env, from, m, r.admission, nil)
}
