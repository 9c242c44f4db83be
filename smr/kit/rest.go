package kit

import (
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

type (
	// RestNow goes from a leader to its followers: there is nothing to do, and as long as there is
	// not, its host's beats stand for its own.
	RestNow struct {
		Run    uint64   // of the leader's host
		Ballot uint64   // or term
		Slot   smr.Slot // all slots up to it are decided, and no other has a command
		Number uint64
	}

	// Rested answers a RestNow: the follower has all that is decided, and relies on the leader's
	// host.
	Rested struct {
		Run    uint64 // of the follower's host
		Ballot uint64
		Number uint64
	}
)

// Times of resting, in round trips.
const (
	restAfter = 20 // without anything to do
	restAgain = 4  // between two times that the leader asks for it
)

// rest is whether a replica's group rests, and on which hosts the replica relies meanwhile: see
// Resting.
type rest struct {
	vouch     func(protocol.ID) (smr.Vouched, bool)
	self      protocol.ID
	roundTrip time.Duration

	busy    time.Duration          // when there was something to do
	number  uint64                 // of the last RestNow that was sent
	asked   time.Duration          // when
	answers map[protocol.ID]uint64 // the runs of the hosts of those who agreed; nil: nobody was asked
	resting bool
	relied  map[protocol.ID]uint64 // the runs of the hosts that are relied on
}

// newRest returns the rest of a replica whose configuration is valid. One whose host vouches for
// nobody never rests.
func newRest(cfg smr.ReplicaConfig) rest {
	return rest{vouch: cfg.Vouch, self: cfg.ID, roundTrip: cfg.RoundTrip}
}

// wake notes that there is something to do, and reports whether the replica rested, or as a leader
// had asked for it: then beats have to begin again.
func (r *rest) wake(now time.Duration) (rested bool) {
	rested = r.resting || r.answers != nil
	r.resting, r.busy, r.answers, r.relied = false, now, nil, nil
	return rested
}

// relies reports whether a follower rests since it relies on the host of the leader.
func (r *rest) relies(leader protocol.ID) bool {
	_, ok := r.relied[leader]
	return ok
}

// due reports whether a leader should ask its followers to rest in this beat, if it has nothing to
// do. Those that agreed to an earlier question do not rest any more, as the leader beats.
func (r *rest) due(now time.Duration) bool {
	r.answers = nil
	past := func(t time.Duration, trips int) bool { return now < t || now-t >= time.Duration(trips)*r.roundTrip }
	return r.vouch != nil && !r.resting && past(r.busy, restAfter) && past(r.asked, restAgain)
}

// ask asks the followers to rest, and returns how long to wait with the next beat for their
// answers, which it would wake: a beat is before the question, so that they know what is decided.
// It returns false if hosts do not vouch for all of them.
func (r *rest) ask(
	env *protocol.Env[smr.Message], m RestNow, disk Incarnation, followers []protocol.ID,
) (wait time.Duration, asked bool) {
	own, ok := r.vouch(r.self)
	if !ok {
		return 0, false
	}
	for _, id := range followers {
		if v, ok := r.vouch(id); !ok || !v.Within(env.Now, 2*r.roundTrip) {
			return 0, false
		}
	}
	r.number++
	r.asked, r.answers = env.Now, map[protocol.ID]uint64{}
	m.Run, m.Number = own.Run, r.number
	for _, id := range followers {
		env.Send(id, Letter{disk, m})
	}
	return r.roundTrip + r.roundTrip/2, true
}

// agreed takes a follower's answer, and reports whether the leader rests: all followers have agreed
// since there was something to do. Who calls it has seen to it that there is still nothing.
func (r *rest) agreed(from protocol.ID, m Rested, followers []protocol.ID) bool {
	if r.resting || r.answers == nil || m.Number != r.number {
		return false
	}
	if v, ok := r.vouch(from); !ok || v.Run != m.Run {
		return false
	}
	r.answers[from] = m.Run
	for _, id := range followers {
		if _, ok := r.answers[id]; !ok {
			return false
		}
	}
	r.resting, r.relied, r.answers = true, r.answers, nil
	return true
}

// follow has a follower rest, which has all that its leader has decided, unless it cannot rely on
// the leader's host.
func (r *rest) follow(env *protocol.Env[smr.Message], from protocol.ID, m RestNow, own Incarnation) bool {
	if r.vouch == nil {
		return false
	}
	leader, there := r.vouch(from)
	self, ok := r.vouch(r.self)
	if !ok || !there || leader.Run != m.Run {
		return false
	}
	r.resting, r.relied = true, map[protocol.ID]uint64{from: m.Run}
	env.Send(from, Letter{own, Rested{Run: self.Run, Ballot: m.Ballot, Number: m.Number}})
	return true
}

// heard returns when those that a resting replica relies on were all heard last. It returns false
// if one of them was not for so long, or has begun anew.
func (r *rest) heard(now, patience time.Duration) (at time.Duration, ok bool) {
	at = now
	for id, run := range r.relied { //pure:ok the minimum of all, in any order
		v, there := r.vouch(id)
		if !there || v.Run != run || !v.Within(now, patience) {
			return 0, false
		}
		at = min(at, v.At)
	}
	return at, r.resting
}
