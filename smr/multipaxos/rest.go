package multipaxos

import (
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// A leader at rest checks every restLook round trips that its followers' hosts are alive. Nothing
// waits for that: any work wakes the leader before, and then it looks for its majority as ever.
const restLook = 4 * leaderTimeout

// maybeRest has a leader that has nothing to do ask its followers to rest. Its next beat is later
// then.
func (r *replica) maybeRest(env *protocol.Env[smr.Message]) (wait time.Duration, asked bool) {
	if !r.rest.Due(env.Now) || !r.idle() {
		return 0, false
	}
	return r.rest.Ask(env, kit.RestNow{Ballot: uint64(r.promised), Slot: r.lead.end}, r.Admission.Own(), r.others())
}

// idle tells whether a leader has nothing to do, and all others have all that it has.
func (r *replica) idle() bool {
	l := &r.lead
	if len(l.peers) == 0 || len(l.learners) > 0 || len(l.queue) > 0 || l.waiting || l.changing != 0 || l.reads.Waiting() ||
		r.commit != l.end || r.log.last() != l.end {
		return false
	}
	return !slices.ContainsFunc(l.peers, func(p *peer) bool { return p.match != l.end || r.Transfers.Of(p.id) != nil })
}

// others returns the other members.
func (r *replica) others() []protocol.ID {
	var ids []protocol.ID
	for _, p := range r.lead.peers {
		ids = append(ids, p.id)
	}
	return ids
}

// onRestNow has a follower rest if it has all that its leader has.
func (r *replica) onRestNow(env *protocol.Env[smr.Message], from protocol.ID, m kit.RestNow) {
	if r.role != follower || r.leader != from || r.quiet || uint64(r.promised) != m.Ballot {
		return
	}
	r.heard.from = 0 // its next beat is late, whatever the pace
	if r.commit == m.Slot && r.log.last() == m.Slot && r.rest.Follow(env, from, m, r.Admission.Own()) {
		env.After(r.Tempo.Times(leaderTimeout), leaderTimer{})
	}
}

// onRested has a leader rest once all followers do.
func (r *replica) onRested(env *protocol.Env[smr.Message], from protocol.ID, disk kit.Incarnation, m kit.Rested) {
	p := r.peer(from)
	if r.role != leader || p == nil || p.stranger(disk) || m.Ballot != uint64(r.promised) || !r.idle() {
		return
	}
	p.heard = true
	if r.rest.Agreed(from, m, r.others()) {
		env.Stop(quorumTimer{})
		env.After(r.Tempo.Times(restLook), heartbeatTimer{})
	}
}

// maybeWake wakes a leader that is given something to do.
func (r *replica) maybeWake(env *protocol.Env[smr.Message], msg smr.Message) {
	if r.role != leader {
		return
	}
	switch msg.(type) {
	case preVote, prepare, missing, refusal, accept, promise:
	default:
		if !kit.Wakes(msg) {
			return
		}
	}
	r.wake(env)
}

// wake has a leader beat again, if it rested. From now on it waits for words of its followers as
// when it began to lead.
func (r *replica) wake(env *protocol.Env[smr.Message]) {
	if !r.rest.Wake(env.Now) {
		return
	}
	for _, p := range r.lead.peers {
		p.heard = true
	}
	env.After(0, heartbeatTimer{})
	env.After(r.Tempo.Times(leaderTimeout), quorumTimer{})
}

// staysAtRest tells whether a leader needs no beat: all followers' hosts are there. Else it wakes.
func (r *replica) staysAtRest(env *protocol.Env[smr.Message]) bool {
	if !r.rest.Resting() {
		return false
	}
	if _, ok := r.rest.Heard(env.Now, r.Tempo.Times(leaderTimeout)); ok {
		env.After(r.Tempo.Times(restLook), heartbeatTimer{})
	} else {
		r.wake(env)
	}
	return true
}

// stir wakes a follower that hears from its leader: one at rest would be silent.
func (r *replica) stir(env *protocol.Env[smr.Message], from protocol.ID, msg smr.Message) {
	if _, again := msg.(kit.RestNow); again || r.role != follower || !r.rest.Resting() || !r.rest.Relies(from) {
		return
	}
	r.rest.Wake(env.Now)
}

// maybeStir wakes a follower whose leader has changed or is unknown.
func (r *replica) maybeStir(env *protocol.Env[smr.Message]) {
	if r.role != leader && r.rest.Resting() && !r.rest.Relies(r.leader) {
		r.rest.Wake(env.Now)
	}
}

// followsHost tells whether a follower at rest still hears its leader's host, and waits for its
// next word. Else it wakes.
func (r *replica) followsHost(env *protocol.Env[smr.Message]) bool {
	if !r.rest.Resting() {
		return false
	}
	patience := r.Tempo.Times(leaderTimeout)
	at, ok := r.rest.Heard(env.Now, patience)
	if !ok {
		r.rest.Wake(env.Now)
		return false
	}
	env.After(at-env.Now+patience, leaderTimer{})
	return true
}
