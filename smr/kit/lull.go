package kit

import (
	"encoding/binary"
	"hash/fnv"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// Drowsy goes from a replica to all other members: it has nothing to do, and is silent for a
// moment. If all others say the same of the same state, none of them says anything more.
type Drowsy struct {
	Run    uint64 // of the sender's host
	Mark   uint64 // what the sender knows, as a checksum
	Answer bool   // it was asked; the sender knows already that the receiver is drowsy
}

// LullRules are what a protocol whose replicas beat to each other says about its replica, so that
// its group can rest.
type LullRules struct {
	// Idle reports whether the replica has nothing to do: it takes part, all that it knows of is
	// decided and executed, nothing waits for it, and all have acknowledged what they were sent. The
	// mark sums up what members must agree on.
	Idle func() (mark uint64, ok bool)
	// Ready reports whether the replica can be silent at this moment: nothing that it says as time
	// passes is on its way. nil: always.
	Ready func() bool
	// Beat is the timer of the beats, by which all else is counted that takes time. It is the only
	// one of an idle replica.
	Beat protocol.Timer
	// Patience is for how long a member does without a word of another one.
	Patience func() time.Duration
	// Heard takes a member's word that it is drowsy as one that it is there. It may be nil.
	Heard func(from protocol.ID)
	// Look comes now and then while the group rests, Resume when it ends. They may be nil.
	Look, Resume func(env *protocol.Env[smr.Message])
}

// A Lull has a group rest whose members all beat to all others, as none of them leads it. In a lull
// nobody beats: each relies on the hosts of the others, which beat once for all groups that they
// share. Time stands still for the protocol meanwhile, as it counts in beats: nobody was silent for
// longer when it ends than when it began. So it changes nothing that the protocol knows, and safety
// does not depend on it, as little as on beats.
//
// Nobody begins a lull alone, as the others would take it for lost. A replica that was idle for
// long says that it is drowsy and leaves its next beats out, fewer than make others impatient;
// those who are idle too join it. Who has heard all others say so, of the state that it is in
// itself, and nothing else of them since, rests. If one of them has not heard all, it goes on to
// beat, and that ends the lull of the others: whatever a member at rest hears but Drowsy does, and
// whatever a client asks of it. It looks at the hosts of the others now and then, and if one of
// them is gone, or has begun anew, beats and waits for words as ever.
type Lull struct {
	replica *Replica
	rules   LullRules
	vouch   func(protocol.ID) (smr.Vouched, bool) // nil: it never rests

	mark    uint64                 // at the last beat
	busy    time.Duration          // when there was something to do
	asked   time.Duration          // when it has said last that it is drowsy
	tries   int                    // since there was something to do
	said    bool                   // and is silent, to hear whether the others are
	drowsy  map[protocol.ID]Drowsy // of those who have said nothing else since
	resting bool
}

// lullPatience is how many times longer than for a member's own word a member at rest waits for its
// host's. Nothing waits for that, and a busy machine should not get more to do since it is busy.
const lullPatience = 2

// lullTries bounds how rare attempts in vain become: each waits for twice as long.
const lullTries = 4

func newLull(r *Replica, rules LullRules) *Lull {
	l := &Lull{replica: r, rules: rules, drowsy: map[protocol.ID]Drowsy{}}
	if rules.Idle != nil {
		l.vouch = r.Cfg.Vouch
	}
	return l
}

// MarkOf sums up what replicas agree on.
func MarkOf(values ...uint64) uint64 {
	h := fnv.New64a()
	var b [8]byte
	for _, v := range values {
		binary.LittleEndian.PutUint64(b[:], v)
		h.Write(b[:])
	}
	return h.Sum64()
}

// Is reports whether the replica rests.
func (l *Lull) Is() bool { return l.resting }

// Silent reports whether the replica rests, or is about to. What it says only because time passes
// can wait.
func (l *Lull) Silent() bool { return l.resting || l.said }

// skips reports whether a beat that is due is left out.
func (l *Lull) skips(env *protocol.Env[smr.Message]) bool {
	switch {
	case l.vouch == nil:
		return false
	case l.resting:
		return l.look(env)
	case l.said:
		l.said = false // not all have agreed in time
		return false
	}
	mark, idle := l.idle()
	if !idle || mark != l.mark {
		l.mark, l.busy, l.tries = mark, env.Now, 0
		return false
	}
	switch {
	case l.joins(env.Now):
	case l.past(env.Now, l.busy, restAfter) && l.past(env.Now, l.asked, restAgain<<l.tries):
		l.tries = min(l.tries+1, lullTries)
	default:
		return false
	}
	return l.say(env)
}

// joins reports whether another member is drowsy and the replica has been idle long enough to join
// it. Else members that became idle one after the other would wait for each other in turn.
func (l *Lull) joins(now time.Duration) bool {
	drowsy := slices.ContainsFunc(l.others(), func(id protocol.ID) bool {
		m, ok := l.drowsy[id]
		return ok && m.Mark == l.mark
	})
	return drowsy && l.past(now, l.busy, restAfter/2)
}

// past reports whether some round trips have passed since a time. If the clock was set back, they
// have.
func (l *Lull) past(now, since time.Duration, trips int) bool {
	return now < since || now-since >= l.replica.Times(float64(trips))
}

// idle adds to what the protocol says what it need not know.
func (l *Lull) idle() (mark uint64, ok bool) {
	r := l.replica
	if mark, ok = l.rules.Idle(); !ok || !r.Admission.Admitted() || r.Transfers.Len() > 0 || len(l.others()) == 0 {
		return 0, false
	}
	return MarkOf(mark, r.State.Generation()), true
}

// others returns the other members.
func (l *Lull) others() []protocol.ID {
	r := l.replica
	return slices.DeleteFunc(r.State.MemberIDs(), func(id protocol.ID) bool { return id == r.Cfg.ID })
}

// say tells the others that the replica is drowsy, unless it has something else to say, or a host
// is not there.
func (l *Lull) say(env *protocol.Env[smr.Message]) bool {
	r := l.replica
	own, ok := l.vouch(r.Cfg.ID)
	if !ok || l.rules.Ready != nil && !l.rules.Ready() {
		return false
	}
	others := l.others()
	for _, id := range others {
		if v, ok := l.vouch(id); !ok || !v.Within(env.Now, l.rules.Patience()) {
			return false
		}
	}
	l.said, l.asked = true, env.Now
	for _, id := range others { // behind all that waits for the disk
		r.Admission.Send(env, id, Drowsy{Run: own.Run, Mark: l.mark})
	}
	// The others' words come when answers do: later than configured where machines are busy.
	env.After(r.Tempo.Times(1.5), l.rules.Beat)
	l.maybeRest(env)
	return true
}

// onDrowsy takes another member's word that it is. A replica that was idle for a while joins it.
func (l *Lull) onDrowsy(env *protocol.Env[smr.Message], from protocol.ID, m Drowsy) {
	if l.vouch == nil {
		return
	}
	if l.rules.Heard != nil {
		l.rules.Heard(from)
	}
	mark, idle := l.idle()
	switch same := idle && mark == m.Mark && mark == l.mark; {
	case l.resting && !same:
		l.rouse(env)
	case l.resting:
		l.drowsy[from] = m
		if own, ok := l.vouch(l.replica.Cfg.ID); ok && !m.Answer { // it has not heard all
			l.replica.Admission.Send(env, from, Drowsy{Run: own.Run, Mark: mark, Answer: true})
		}
	case l.said:
		l.drowsy[from] = m
		l.maybeRest(env)
	default:
		l.drowsy[from] = m
		if same && l.joins(env.Now) {
			l.say(env)
		}
	}
}

// maybeRest has the replica rest if all others do, or are about to.
func (l *Lull) maybeRest(env *protocol.Env[smr.Message]) {
	mark, idle := l.idle()
	agrees := func(id protocol.ID, _ smr.Vouched) bool { return l.drowsy[id].Mark == mark }
	if !idle || mark != l.mark || !l.relies(agrees) {
		return
	}
	l.resting, l.said = true, false
	env.After(restLooks*l.rules.Patience(), l.rules.Beat)
}

// relies reports whether the hosts of all others are those that have spoken for them last, and
// something more holds of each.
func (l *Lull) relies(also func(protocol.ID, smr.Vouched) bool) bool {
	return !slices.ContainsFunc(l.others(), func(id protocol.ID) bool {
		v, there := l.vouch(id)
		m, ok := l.drowsy[id]
		return !there || !ok || v.Run != m.Run || !also(id, v)
	})
}

// look has a replica at rest look whether the others' hosts are there.
func (l *Lull) look(env *protocol.Env[smr.Message]) bool {
	patience := l.rules.Patience()
	if !l.relies(func(_ protocol.ID, v smr.Vouched) bool { return v.Within(env.Now, lullPatience*patience) }) {
		l.rouse(env)
		return false
	}
	if l.rules.Look != nil {
		l.rules.Look(env)
	}
	env.After(restLooks*patience, l.rules.Beat)
	return true
}

// onHeard takes anything else that another replica says: it is not drowsy any more.
func (l *Lull) onHeard(env *protocol.Env[smr.Message], from protocol.ID) {
	if from == l.replica.Cfg.ID {
		return // it has come of something else
	}
	delete(l.drowsy, from)
	if l.resting {
		l.rouse(env)
	}
}

// stir notes that there is something to do.
func (l *Lull) stir(env *protocol.Env[smr.Message]) {
	l.busy = env.Now
	if l.resting {
		l.rouse(env)
	}
}

// rouse ends a lull.
func (l *Lull) rouse(env *protocol.Env[smr.Message]) {
	l.resting, l.said, l.busy, l.tries = false, false, env.Now, 0
	clear(l.drowsy)
	if l.rules.Resume != nil {
		l.rules.Resume(env)
	}
	env.After(0, l.rules.Beat)
}
