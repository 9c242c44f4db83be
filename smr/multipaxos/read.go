package multipaxos

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// onRead takes queries. They wait until a majority says that it followed this leader when it was
// asked, which was later than they came, so that no other leader has had something decided before;
// and for what earlier leaders may have had decided.
func (r *Replica) onRead(env *protocol.Env[smr.Message], from protocol.ID, m kit.ReadRequest) {
	if r.lead.reads.Take(env, r.Cfg, from, m.Queries, max(r.commit, r.lead.start)) {
		r.soon(env)
	}
}

// askRound asks the followers whether they still follow, if there are queries that wait for it.
func (r *Replica) askRound(env *protocol.Env[smr.Message]) {
	if q := &r.lead.reads; r.role == leader && q.Next() {
		q.Heard(r.Cfg.ID, q.Round(), 0)
		r.heartbeat(env)
		r.answerReads(env) // a leader alone needs nobody
	}
}

func (r *Replica) onFollows(env *protocol.Env[smr.Message], from protocol.ID, disk kit.Incarnation, m Follows) {
	p := r.peer(from)
	if r.role != leader || m.Ballot != r.promised || p == nil || m.Round > r.lead.reads.Round() || p.stranger(disk) {
		return
	}
	p.heard = true
	if _, member := r.State.Member(from); member {
		r.lead.reads.Heard(from, m.Round, 0)
	}
	r.answerReads(env)
	r.askRound(env)
}

func (r *Replica) answerReads(env *protocol.Env[smr.Message]) {
	if r.lead.reads.Waiting() {
		voters := append(r.others(), r.Cfg.ID)
		r.lead.reads.Answer(env, r.State, voters)
	}
}
