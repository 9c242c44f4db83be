package kit

import (
	"cmp"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

type (
	// HostBeat says that a host is there.
	HostBeat struct{ Run uint64 }

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

// Rest is whether a replica's group rests. A leader at rest sends no beats, and a follower at rest
// awaits none: each relies on the hosts of the others, which beat once for all groups that they
// share. Safety does not depend on it, as little as on beats: a leader at rest takes its decisions,
// and answers queries, after a word from a majority, as ever. What depends on it is that a lost
// leader is missed. A replica at rest wakes when
//
//   - the host that it relies on is not heard for as long as a leader's own beats would be waited
//     for, or has begun anew;
//   - its group has something to do: a leader at rest takes a call or a message of its group, or a
//     follower hears anything from the leader but RestNow.
//
// A follower that is awake while its leader rests misses its beats and stands for election. That
// wakes the leader, which refuses, and beats.
type Rest struct {
	vouch     func(protocol.ID) (smr.Vouched, bool)
	self      protocol.ID
	roundTrip time.Duration

	busy    time.Duration // when there was something to do
	number  uint64        // of the last RestNow that was sent
	asked   time.Duration // when
	agreed  map[protocol.ID]uint64
	resting bool
	relied  map[protocol.ID]uint64 // the runs of the hosts that are relied on
}

// NewRest returns the rest of a replica whose configuration is valid. One whose host vouches for
// nobody never rests.
func NewRest(cfg smr.ReplicaConfig) Rest {
	return Rest{vouch: cfg.Vouch, self: cfg.ID, roundTrip: cfg.RoundTrip}
}

// Resting tells whether the replica rests.
func (r *Rest) Resting() bool { return r.resting }

// Wake notes that there is something to do, and tells whether the replica rested, or as a leader
// had asked for it: then beats have to begin again.
func (r *Rest) Wake(now time.Duration) (rested bool) {
	rested = r.resting || r.agreed != nil
	r.resting, r.busy, r.agreed, r.relied = false, now, nil, nil
	return rested
}

// Wakes tells whether a message of this package gives a leader something to do. What a host says
// when it is ready, how far disks are, and what concerns a replica alone does not.
func Wakes(msg smr.Message) bool {
	switch m := msg.(type) {
	case smr.HandOver, Request, OpenRequest, ChangeRequest, ReadRequest, SnapshotWanted:
		return true
	case Hello:
		return m.Mark.Start == 0
	}
	return false
}

// Relies tells whether a follower rests since it relies on the host of the leader.
func (r *Rest) Relies(leader protocol.ID) bool {
	_, ok := r.relied[leader]
	return ok
}

// Due tells whether a leader should ask its followers to rest in this beat, if it has nothing to
// do. Those that agreed to an earlier question do not rest any more, as the leader beats.
func (r *Rest) Due(now time.Duration) bool {
	r.agreed = nil
	past := func(t time.Duration, trips int) bool { return now < t || now-t >= time.Duration(trips)*r.roundTrip }
	return r.vouch != nil && !r.resting && past(r.busy, restAfter) && past(r.asked, restAgain)
}

// Ask asks the followers to rest, and returns how long to wait with the next beat for their
// answers, which it would wake: a beat is before the question, so that they know what is decided.
// It returns false if hosts do not vouch for all of them.
func (r *Rest) Ask(
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
	r.asked, r.agreed = env.Now, map[protocol.ID]uint64{}
	m.Run, m.Number = own.Run, r.number
	for _, id := range followers {
		env.Send(id, Letter{disk, m})
	}
	return r.roundTrip + r.roundTrip/2, true
}

// Agreed takes a follower's answer, and tells whether the leader rests: all followers have agreed
// since there was something to do. Who calls it has seen to it that there is still nothing.
func (r *Rest) Agreed(from protocol.ID, m Rested, followers []protocol.ID) bool {
	if r.resting || r.agreed == nil || m.Number != r.number {
		return false
	}
	if v, ok := r.vouch(from); !ok || v.Run != m.Run {
		return false
	}
	r.agreed[from] = m.Run
	for _, id := range followers {
		if _, ok := r.agreed[id]; !ok {
			return false
		}
	}
	r.resting, r.relied, r.agreed = true, r.agreed, nil
	return true
}

// Follow has a follower rest, which has all that its leader has decided, unless it cannot rely on
// the leader's host.
func (r *Rest) Follow(env *protocol.Env[smr.Message], from protocol.ID, m RestNow, own Incarnation) bool {
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

// Heard returns when those that a resting replica relies on were all heard last. It returns false
// if one of them was not for so long, or has begun anew.
func (r *Rest) Heard(now, patience time.Duration) (at time.Duration, ok bool) {
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

// HostBeats are the beats of a host: it says to the hosts of all members that it is there, and
// notes whom it hears. It is the core of a node of its own, whose timer has the name HostBeatTimer.
type HostBeats struct {
	every time.Duration
	own   uint64
	heard map[protocol.ID]smr.Vouched
}

// HostBeatTimer is the timer of HostBeats.
type HostBeatTimer struct{}

// NewHostBeats returns the beats of a host of replicas that are configured with a round trip. 0 is
// 100 ms.
func NewHostBeats(roundTrip time.Duration) *HostBeats {
	return &HostBeats{every: max(cmp.Or(roundTrip, smr.DefaultRoundTrip)/2, time.Millisecond),
		heard: map[protocol.ID]smr.Vouched{}}
}

// Start begins to beat.
func (h *HostBeats) Start(env *protocol.Env[smr.Message]) {
	h.own = max(env.Rand.Uint64(), 1)
	env.After(0, HostBeatTimer{})
}

// Beat sends a beat to the other members, and sets the timer for the next one.
func (h *HostBeats) Beat(env *protocol.Env[smr.Message], self protocol.ID, members []protocol.ID) {
	h.heard[self] = smr.Vouched{Run: h.own, At: env.Now}
	for _, id := range members {
		if id != self {
			env.SendAhead(id, HostBeat{h.own})
		}
	}
	env.After(untilBeat(env.Now, h.every), HostBeatTimer{})
}

// Receive notes a beat of another host.
func (h *HostBeats) Receive(now time.Duration, from protocol.ID, m HostBeat) {
	h.heard[from] = smr.Vouched{Run: m.Run, At: now}
}

// Vouch returns what is known of a host.
func (h *HostBeats) Vouch(id protocol.ID) (smr.Vouched, bool) {
	v, ok := h.heard[id]
	return v, ok
}
