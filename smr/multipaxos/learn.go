package multipaxos

import (
	"fmt"
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// learn has the leader begin to bring a replica up to date that waits to be added, or go on with
// it.
func (r *replica) learn(env *protocol.Env[smr.Message], id protocol.ID, disk kit.Incarnation) {
	if r.role != leader {
		return
	}
	l := &r.lead
	l.learners = slices.DeleteFunc(l.learners, func(p *peer) bool {
		// What is known of another disk under the ID is not true of this one. Who has asked at a
		// time that is not there yet did so before the clock was set back, and asks again if it is
		// still there.
		return p.id == id && p.disk != disk || env.Now < p.asked || env.Now-p.asked > r.Tempo.Times(kit.LearnerWanted)
	})
	r.dropTransfers()
	p := r.peer(id)
	if p == nil {
		if len(l.learners) >= kit.MaxLearners {
			return
		}
		p = &peer{id: id, disk: disk, flow: kit.NewFlow(r.commit + 1)}
		l.learners = append(l.learners, p)
		r.sendAccept(env, p, nil)
	}
	p.asked = env.Now
}

// onChange takes a change of the members.
func (r *replica) onChange(env *protocol.Env[smr.Message], from protocol.ID, m kit.ChangeRequest) {
	r.lead.queue = r.Desk.Change(env, from, m, r.upToDate, r.lead.queue)
}

// upToDate reports whether a replica that waits to be added lacks no more than a batch, and is
// still there.
func (r *replica) upToDate(
	env *protocol.Env[smr.Message], id protocol.ID, disk kit.Incarnation,
) (ok bool, why string) {
	p := r.peer(id)
	if p == nil && len(r.lead.learners) >= kit.MaxLearners {
		return false, fmt.Sprintf("%d other replicas are being brought up to date", kit.MaxLearners)
	}
	return p != nil && p.disk == disk && env.Now-p.asked <= r.Tempo.Times(leaderTimeout) && p.match > 0 &&
		p.match+smr.Slot(r.Cfg.MaxBatch) >= r.commit, ""
}
