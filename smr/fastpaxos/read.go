package fastpaxos

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// onRead takes queries. They wait until a majority has said that it followed the coordinator when
// it was asked, which was later than they came: so no other one has had anything executed before.
// And they wait for the slots in which that majority has voted: a client may know already that its
// command is chosen there.
func (r *replica) onRead(env *protocol.Env[smr.Message], from protocol.ID, m kit.ReadRequest) {
	q := &r.lead.reads
	if q.Take(env, r.Cfg, from, m.Queries, max(r.State.Applied(), r.lead.start)) && q.Next() {
		r.sendPoll(env)
	}
}

func (r *replica) sendPoll(env *protocol.Env[smr.Message]) {
	q := &r.lead.reads
	r.lead.pollAge = 0
	for _, id := range r.State.MemberIDs() {
		if id != r.Cfg.ID {
			r.Admission.SendAhead(env, id, poll{r.head(r.promised), q.Round()})
		}
	}
	q.Heard(r.Cfg.ID, q.Round(), r.fastTop)
	r.answerReads(env)
}

// pollAgain repeats a question that is not answered, or asks the next one.
func (r *replica) pollAgain(env *protocol.Env[smr.Message]) {
	q := &r.lead.reads
	if r.lead.pollAge++; r.lead.pollAge >= 2 && (q.Next() || q.Unanswered()) {
		r.sendPoll(env)
	}
}

func (r *replica) onPolled(env *protocol.Env[smr.Message], from protocol.ID, m polled) {
	if r.lead == nil || m.Era != r.promised || m.Round > r.lead.reads.Round() {
		return
	}
	r.lead.reads.Heard(from, m.Round, m.Slot)
	if r.open != 0 && r.near(m.Slot) {
		r.lead.end = max(r.lead.end, m.Slot) // its votes may be lost
	}
	r.answerReads(env)
}

func (r *replica) answerReads(env *protocol.Env[smr.Message]) {
	if !r.Over() && r.lead.reads.Waiting() {
		voters := r.State.MemberIDs()
		r.lead.reads.Answer(env, r.State, voters)
	}
}

// upToDate reports whether a replica that waits to be added has a state, and lacks little of it.
func (r *replica) upToDate(_ *protocol.Env[smr.Message], id protocol.ID, _ kit.Incarnation) (ok bool, why string) {
	p, heard := r.progress.Of(id)
	return heard && p.Applied > 0 && p.Applied+window/4 >= r.State.Applied(), ""
}
