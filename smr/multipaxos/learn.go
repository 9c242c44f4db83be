package multipaxos

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// Bounds of learners.
const (
	maxLearners   = 4
	learnerWanted = 50 // round trips after which a silent learner is forgotten
)

// learn has the leader begin to bring a replica up to date that waits to be added, or go on with
// it.
func (r *replica) learn(env *protocol.Env[smr.Message], id protocol.ID, disk kit.Incarnation) {
	if r.role != leader {
		return
	}
	l := &r.lead
	l.learners = slices.DeleteFunc(l.learners, func(p *peer) bool {
		// What is known of another disk under the ID is not true of this one.
		return p.id == id && p.disk != disk || env.Now < p.asked || env.Now-p.asked > r.Tempo.Times(learnerWanted)
	})
	r.dropTransfers()
	p := r.peer(id)
	if p == nil {
		if len(l.learners) >= maxLearners {
			return
		}
		p = &peer{id: id, disk: disk, flow: kit.NewFlow(r.commit + 1)}
		l.learners = append(l.learners, p)
		r.sendAccept(env, p, nil)
	}
	p.asked = env.Now
}

// onChange takes a change of the members. A new one is brought up to date first: until it is, it
// would only make the majority larger.
func (r *replica) onChange(env *protocol.Env[smr.Message], from protocol.ID, m kit.ChangeRequest) {
	r.Desk.Meet(env, m.Change)
	if reason := r.behind(env.Now, m.Change); reason != "" {
		env.SendAhead(from, kit.NotYet{Session: m.Session, Seq: m.Seq, Reason: reason})
		return
	}
	r.lead.queue = r.Desk.TakeChange(env, from, m, r.Admission, r.lead.queue)
}

// behind returns why a replica cannot be added yet, "" if it can.
func (r *replica) behind(now time.Duration, c smr.Change) string {
	id := c.Add.ID
	_, member := r.State.Member(id)
	disk, there := r.Admission.Joiner(id)
	if c.Remove != 0 || member || !there || r.State.Removed(id) {
		return "" // the desk, or the state, has the answer
	}
	p := r.peer(id)
	switch {
	case p == nil && len(r.lead.learners) >= maxLearners:
		return fmt.Sprintf("%d other replicas are being brought up to date", maxLearners)
	case p == nil || p.disk != disk || now-p.asked > r.Tempo.Times(leaderTimeout) || p.match == 0 ||
		p.match+smr.Slot(r.Cfg.MaxBatch) < r.commit:
		return fmt.Sprintf("replica %d is being brought up to date", id)
	}
	return ""
}

// stranger tells whether a message is of another disk of a learner than the one whose progress is
// known.
func (p *peer) stranger(disk kit.Incarnation) bool { return p.disk != 0 && p.disk != disk }

// followers returns all that the leader sends to.
func (l *leadership) followers() []*peer {
	if len(l.learners) == 0 {
		return l.peers
	}
	return slices.Concat(l.peers, l.learners)
}
