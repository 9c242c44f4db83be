package kit

import (
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// RestRules are what a protocol with a leader says about its replica, so that the replica's group
// can rest.
type RestRules struct {
	// Leads reports whether this replica leads.
	Leads func() bool
	// Leader returns whom this replica follows, 0 if nobody, and the ballot or term.
	Leader func() (id protocol.ID, ballot uint64)
	// End returns the last slot of the log, and whether all up to it is decided and applied.
	End func() (last smr.Slot, settled bool)
	// Idle reports whether a leader has nothing to do: no entry, query, transfer or learner waits, and
	// all followers are there and have all that the leader has.
	Idle func(now time.Duration) bool
	// Wakes reports whether one of the protocol's own messages gives a leader something to do.
	// Answers to its beats do not.
	Wakes func(msg smr.Message) bool
	// Patience is for how long a follower does without a word of its leader.
	Patience func() time.Duration
	// Await has a follower wait for the next word of its leader, as if the last one had come at that
	// time. How long the next one takes says nothing of the network.
	Await func(env *protocol.Env[smr.Message], at time.Duration)
	// Resume has a leader wait for words of its followers as when it began to lead.
	Resume func(env *protocol.Env[smr.Message])
	// Beat is the timer of a leader's beats.
	Beat protocol.Timer
}

// restLooks is how many times a leader's patience pass between two looks of a leader at rest at
// whether its followers' hosts are there. Nothing waits for that: any work wakes the leader before,
// and then it looks for its majority as ever.
const restLooks = 4

// Resting has a replica's group rest. A leader at rest sends no beats, and a follower at rest
// awaits none: each relies on the hosts of the others, which beat once for all groups that they
// share. Safety does not depend on it, as little as on beats: a leader at rest takes its decisions,
// and answers queries, after a word from a majority, as ever. What depends on it is that a lost
// leader is missed. A replica at rest wakes when
//
//   - the host that it relies on is not heard for as long as a leader's own beats would be waited
//     for, or has begun anew;
//   - its group has something to do: a leader at rest takes a call or a message of its group, or a
//     follower hears anything from the leader but RestNow;
//   - it follows another leader, or nobody.
//
// A follower that is awake while its leader rests misses its beats and stands for election. That
// wakes the leader, which refuses, and beats.
//
// A protocol's part in it is its RestRules, and four calls: Skips and NextBeat when a beat is due,
// Relies when a leader is missed, and Wake when the replica begins or ceases to lead.
type Resting struct {
	rest
	replica *Replica
	rules   RestRules
}

func newResting(r *Replica, rules RestRules) *Resting {
	s := &Resting{rest: newRest(r.Cfg), replica: r, rules: rules}
	if rules.Leads == nil {
		s.vouch = nil // it never rests
		s.rules.Leads = func() bool { return false }
	}
	return s
}

// Is reports whether the replica rests.
func (s *Resting) Is() bool { return s.resting }

// Wake ends a rest, if there is one, as a replica has begun or ceased to lead, and so sees to its
// timers itself.
func (s *Resting) Wake(now time.Duration) { s.wake(now) }

// Heard returns when a follower at rest has last heard its leader's host, or when a leader at rest
// has heard the hosts of all its followers. It returns false if that is too long ago, if a host has
// begun anew, or if the replica does not rest.
func (s *Resting) Heard(now time.Duration) (at time.Duration, ok bool) {
	if !s.resting {
		return 0, false
	}
	return s.heard(now, s.rules.Patience())
}

// Skips reports whether a leader is not to beat, since it rests and all its followers' hosts are
// there. If one is missing, it wakes.
func (s *Resting) Skips(env *protocol.Env[smr.Message]) bool {
	if !s.resting {
		return false
	}
	if _, ok := s.Heard(env.Now); ok {
		env.After(restLooks*s.rules.Patience(), s.rules.Beat)
	} else {
		s.resume(env)
	}
	return true
}

// NextBeat has a leader that has nothing to do ask its followers to rest, and sets the timer of its
// beats. The next one is later if it has asked.
func (s *Resting) NextBeat(env *protocol.Env[smr.Message], every time.Duration) {
	if s.due(env.Now) && s.idle(env.Now) {
		_, ballot := s.rules.Leader()
		last, _ := s.rules.End()
		if wait, asked := s.ask(env, RestNow{Ballot: ballot, Slot: last}, s.replica.Admission.Own(), s.others()); asked {
			env.After(wait, s.rules.Beat)
			return
		}
	}
	env.After(UntilBeat(s.replica.Cfg, env.Now, every), s.rules.Beat)
}

// Relies reports whether a follower that misses its leader rests and still hears the leader's host.
// Then it waits for the host's next beat. Otherwise it wakes.
func (s *Resting) Relies(env *protocol.Env[smr.Message]) bool {
	at, ok := s.Heard(env.Now)
	if !ok {
		s.wake(env.Now)
		return false
	}
	s.rules.Await(env, at)
	return true
}

// idle reports whether a leader's group may rest: there is somebody to rest with, all is decided,
// and the protocol knows of nothing else to do.
func (s *Resting) idle(now time.Duration) bool {
	_, settled := s.rules.End()
	return settled && len(s.others()) > 0 && s.rules.Idle(now)
}

// others returns the other members.
func (s *Resting) others() []protocol.ID {
	r := s.replica
	return slices.DeleteFunc(r.State.MemberIDs(), func(id protocol.ID) bool { return id == r.Cfg.ID })
}

// onRestNow has a follower rest if it has all that its leader has.
func (s *Resting) onRestNow(env *protocol.Env[smr.Message], from protocol.ID, m RestNow) {
	if !s.replica.Admission.Admitted() || s.rules.Leads() {
		return
	}
	if leader, ballot := s.rules.Leader(); leader != from || ballot != m.Ballot {
		return
	}
	s.rules.Await(env, env.Now) // the leader's next beat is late, whether the group comes to rest or not
	if last, settled := s.rules.End(); settled && last == m.Slot {
		s.follow(env, from, m, s.replica.Admission.Own())
	}
}

// onRested has a leader rest once all followers do. It looks again whether there is nothing to do:
// what came up since the question has woken it, but what its own timers do has not.
func (s *Resting) onRested(env *protocol.Env[smr.Message], from protocol.ID, m Rested) {
	if !s.rules.Leads() {
		return
	}
	if _, ballot := s.rules.Leader(); m.Ballot != ballot || !s.idle(env.Now) {
		return
	}
	if others := s.others(); slices.Contains(others, from) && s.agreed(from, m, others) {
		env.After(restLooks*s.rules.Patience(), s.rules.Beat)
	}
}

// onWork wakes a leader that is given something to do.
func (s *Resting) onWork(env *protocol.Env[smr.Message], msg smr.Message) {
	if msg = Inside(msg); s.rules.Leads() && (wakes(msg) || s.rules.Wakes(msg)) {
		s.resume(env)
	}
}

// resume has a leader beat again, if it rested or was about to.
func (s *Resting) resume(env *protocol.Env[smr.Message]) {
	if s.wake(env.Now) {
		s.rules.Resume(env)
		env.After(0, s.rules.Beat)
	}
}

// Work wakes a leader that is given something to do other than by a message.
func (s *Resting) Work(env *protocol.Env[smr.Message]) {
	if s.rules.Leads() {
		s.resume(env)
	}
}

// onHeard wakes a follower that hears from its leader: a leader at rest would be silent.
func (s *Resting) onHeard(now time.Duration, from protocol.ID) {
	if s.resting && !s.rules.Leads() && s.relies(from) {
		s.wake(now)
	}
}

// flush wakes a follower that now follows another leader, or nobody: the host that it relied on
// says nothing of that one. Its timer goes on, as nobody may have been heard.
func (s *Resting) flush(now time.Duration) {
	if !s.resting || s.rules.Leads() {
		return
	}
	if leader, _ := s.rules.Leader(); !s.relies(leader) {
		s.wake(now)
	}
}

// wakes reports whether a message of this package gives a leader something to do. What a host says
// when it is ready, how far disks are, and what concerns a replica alone does not.
func wakes(msg smr.Message) bool {
	switch m := msg.(type) {
	case smr.HandOver, Request, OpenRequest, ChangeRequest, ReadRequest, SnapshotWanted, Founding:
		return true
	case Hello:
		return m.Mark.Start == 0
	}
	return false
}
