package multipaxos

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// onRead takes queries, which wait for two things. First, a majority must say that it followed this
// leader when it was asked, and it is asked after the queries came: so no later leader had decided
// anything when they came. Second, all slots up to start must be applied: until then this leader
// does not know all that earlier ones have decided and acknowledged.
func (r *replica) onRead(env *protocol.Env[smr.Message], from protocol.ID, m kit.ReadRequest) {
	if r.lead.reads.Take(env, r.Cfg, from, m.Queries, max(r.commit, r.lead.start)) {
		r.Soon(env)
	}
}

// startPoll asks the followers whether they still follow, if there are queries that wait for it.
func (r *replica) startPoll(env *protocol.Env[smr.Message]) {
	if q := &r.lead.reads; r.role == leader && q.Next() {
		q.Heard(r.Cfg.ID, q.Round(), 0)
		r.beat(env)
		r.answerReads(env) // a leader alone needs nobody
	}
}

func (r *replica) onPolled(env *protocol.Env[smr.Message], from protocol.ID, disk kit.Incarnation, m polled) {
	p := r.peer(from)
	if r.role != leader || m.Ballot != r.promised || p == nil || m.Round > r.lead.reads.Round() || p.stranger(disk) {
		return
	}
	p.heard = true
	// A learner says so too, but is none of the majority. What counts is whether it is a
	// member now, not when it was asked: a member that was just added counts.
	if _, member := r.State.Member(from); member {
		r.lead.reads.Heard(from, m.Round, 0)
	}
	r.answerReads(env)
	r.startPoll(env)
}

func (r *replica) answerReads(env *protocol.Env[smr.Message]) {
	if r.lead.reads.Waiting() {
		voters := r.State.MemberIDs()
		r.lead.reads.Answer(env, r.State, voters)
	}
}
