package multipaxos

import (
	"fmt"
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// Bounds of learners.
const (
	maxLearners   = 4
	learnerWanted = 50 // round trips, for which one is kept that nobody asks for
)

// onChange takes a change of the members. A new one is brought up to date first: until it is, it would only make the majority larger.
func (r *Replica) onChange(env *protocol.Env[smr.Message], from protocol.ID, m smr.ChangeRequest) {
	r.desk.Meet(env, m.Change)
	id := m.Change.Add.ID
	_, member := r.state.Member(id)
	if _, there := r.admission.Joiner(id); m.Change.Remove == 0 && there && !member && !r.state.Removed(id) {
		if p := r.learner(env, id); p == nil || p.match == 0 || p.match+smr.Slot(r.cfg.MaxBatch) < r.commit {
			env.SendAhead(from, smr.NotYet{Session: m.Session, Seq: m.Seq, Reason: fmt.Sprintf("replica %d is being brought up to date", id)})
			return
		}
	}
	r.lead.queue = r.desk.TakeChange(env, from, m, r.admission, r.lead.queue)
}

// learner returns a replica that is to be a member, or nil if too many are.
func (r *Replica) learner(env *protocol.Env[smr.Message], id protocol.ID) *peer {
	l := &r.lead
	p := r.peer(id)
	if p == nil {
		l.learners = slices.DeleteFunc(l.learners, func(p *peer) bool {
			return env.Now < p.asked || env.Now-p.asked > r.times(learnerWanted)
		})
		if len(l.learners) >= maxLearners {
			return nil
		}
		p = &peer{id: id, next: r.commit + 1, flow: r.commit}
		l.learners = append(l.learners, p)
		r.accept(env, p, nil)
	}
	p.asked = env.Now
	return p
}

// followers returns all that the leader sends to.
func (l *leadership) followers() []*peer {
	if len(l.learners) == 0 {
		return l.peers
	}
	return slices.Concat(l.peers, l.learners)
}
