package domino

import (
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr"
)

// timekeeper is how a replica fills slots where clocks are not right. What it claims binds for
// good, so a clock that shows a time far ahead, for a moment only, would be felt for as long as it
// was ahead.
type timekeeper struct {
	seen    time.Duration // what the clock showed at the last tick, or at the start
	held    time.Duration // by how much it has jumped ahead and is not followed
	fresh   bool          // started again, and does not know yet whether the group was at work meanwhile
	heard   int           // ticks since a majority is heard, at most suspectTicks
	driven  smr.Slot      // the time by ticks, where the clocks were set back
	stood   int           // ticks since more was passed
	stoodAt smr.Slot      // what was passed then
	reached smr.Slot      // what was passed at the last tick
	apart   int           // ticks in which more was passed, since it was not alone with its claims
	ahead   time.Duration // how far at the last tick what was claimed was ahead of the clock
	told    clockState    // what the application knows
	toldOf  time.Duration // and by how much the clock was held then
}

// clockState is how a clock is off.
type clockState uint8

const (
	clockRight  clockState = iota
	clockBehind            // it is behind what was promised
	clockHeld              // it is ahead, and not followed
	clockAlone             // what the replica has promised is ahead, alone
)

// startTime begins to keep time when the replica takes part. A clock that is far ahead of all that
// the disk knows, be it the ceiling of its claims or what was executed, counts as one that has
// jumped: the replica may have been away, or the clock is wrong. The members know (tickStart). In a
// new group nobody knows anything but what clocks show.
func (r *replica) startTime(env *protocol.Env[smr.Message]) {
	k := &r.time
	known := r.acceptor.skipped // at least the ceiling and what was executed
	if known == 0 {
		return
	}
	k.seen, k.held, k.fresh, k.heard = env.Now, 0, r.acceptor.ceiling > 0, 0
	if jumped := env.Now - at(known); jumped > r.farAhead() {
		k.held = jumped
	}
}

// tickStart has a replica that was started again find out what time it is for the group. Members
// get some ticks to be heard first. One that was at work meanwhile tells the time by its claims.
func (r *replica) tickStart(env *protocol.Env[smr.Message]) {
	k := &r.time
	if r.countAlive() < r.rule.classic {
		k.heard = 0
		return
	}
	if k.heard < suspectTicks {
		k.heard++
		// The ceiling may be as far ahead of time as slots were closed.
		if others := r.claimedByOthers(); k.heard == suspectTicks && k.held > 0 && others > 0 {
			k.held = max(0, env.Now-at(others))
		}
	}
	if k.fresh && k.heard == suspectTicks {
		r.maybeAllStarted(env)
	}
}

// maybeAllStarted has time go on from what a majority of clocks show, if the whole group was off:
// whoever is heard was started again too, and a majority of clocks agree. A replica whose clock
// disagrees with them waits until they are at work, so as not to be taken for one that is.
func (r *replica) maybeAllStarted(env *protocol.Env[smr.Message]) {
	own := slotAt(env.Now)
	clocks := []smr.Slot{own}
	for _, id := range r.group {
		if p := r.peers[id]; id != r.Cfg.ID && p.fresh && r.alive(id) {
			clocks = append(clocks, slotAt(p.shown))
		}
	}
	reached := quorum.KthLargest(clocks, r.rule.classic) // by a majority, 0 if too few are known
	near := func(s smr.Slot) bool { return max(s, reached)-min(s, reached) <= smr.Slot(r.farAhead()) }
	agree := 0
	for _, s := range clocks {
		if near(s) {
			agree++
		}
	}
	if agree >= r.rule.classic && near(own) || agree < r.rule.classic && len(clocks) == len(r.group) {
		r.time.fresh = false
		r.release(env, reached)
	}
}

// release has a clock that is held followed as far as others confirm, if that is much further than
// where time is: all of it if that is about as far. Little is not followed, as what one replica
// claims ahead of time would be added to by the next one.
func (r *replica) release(env *protocol.Env[smr.Message], confirmed smr.Slot) {
	k := &r.time
	if ahead := env.Now - at(confirmed); ahead <= r.farAhead() {
		k.held = 0
	} else if k.held-ahead > r.farAhead() {
		k.held = ahead
	}
}

// now returns the time by which the replica fills slots: its clock, or what a majority has passed,
// so that a clock that is slow holds nothing up.
func (r *replica) now(env *protocol.Env[smr.Message]) smr.Slot {
	return max(r.clock(env), r.passed(), r.time.driven)
}

// clock returns the time that the replica's clock shows, less what it has jumped ahead by. One that
// has jumped since the last tick is not followed before the next one.
func (r *replica) clock(env *protocol.Env[smr.Message]) smr.Slot {
	k := &r.time
	shown := env.Now
	if shown-k.seen > r.farAhead() {
		shown = k.seen + r.Times(tick)
	}
	return slotAt(shown - k.held)
}

// farAhead is how far a clock may jump ahead and is followed. Below it are replicas that stood
// still.
func (r *replica) farAhead() time.Duration { return max(time.Second, r.Times(horizon)) }

// catchUp is by which part of the time that passes a clock is faster that catches up.
const catchUp = 10

// tickTime looks at the clock, once in a tick.
func (r *replica) tickTime(env *protocol.Env[smr.Message]) {
	k := &r.time
	r.followClock(env)
	if r.role != member {
		return
	}
	r.drive(env)
	rose := r.passed() > k.reached // else disks may stall, not clocks
	k.reached = r.passed()
	switch {
	case !r.alone():
		k.apart = 0
	case rose:
		k.apart = min(k.apart+1, suspectTicks)
	}
	k.ahead = max(0, at(max(r.passed(), r.acceptor.skipped))-env.Now)
	r.tellTime(env)
}

// followClock takes what the clock shows. One that has jumped ahead is followed only as far as
// another member's claims are, as when this replica stood still, or its clock was behind and is set
// right. Otherwise time goes on from where it was, and catches up a tenth faster than the clock:
// nothing depends on what slots are in the time of day. So a majority of clocks that jump ahead,
// and back again, moves no claims. It catches up in step with a majority: a replica whose clock is
// ahead of theirs would be ahead alone otherwise, without any part in new slots.
func (r *replica) followClock(env *protocol.Env[smr.Message]) {
	k := &r.time
	every := r.Times(tick)
	switch elapsed := env.Now - k.seen; {
	case elapsed > r.farAhead():
		k.held += elapsed - every
	case elapsed < 0:
		k.held = max(0, k.held+elapsed)
	case k.held > 0 && r.inStep():
		k.held = max(0, k.held-elapsed/catchUp)
	}
	k.seen = env.Now
	if k.held > 0 {
		r.release(env, r.claimedByOthers())
	}
}

// claimedByOthers returns the time up to which another member has claimed slots.
func (r *replica) claimedByOthers() (furthest smr.Slot) {
	for _, id := range r.group {
		if id != r.Cfg.ID && r.alive(id) {
			furthest = max(furthest, r.peers[id].claims.Skipped)
		}
	}
	return furthest
}

// inStep reports whether what the replica has claimed is ahead of what a majority has by no more
// than the time until their claims are heard. Both count once they are on disk.
func (r *replica) inStep() bool {
	const heard = 1.5 // round trips: half of one on the way, after a tick of another half, and something to spare
	late := min(max(r.Times(heard), r.Tempo.Times(heard)), r.farAhead()/4)
	return r.claimedOnDisk() <= r.passed()+smr.Slot(late)
}

// claimedOnDisk returns what the replica itself has claimed and told, 0 before it takes part.
func (r *replica) claimedOnDisk() smr.Slot {
	if own := r.peers[r.Cfg.ID]; own != nil {
		return own.claims.Skipped
	}
	return 0
}

// tellTime tells the application when the clock is off, in another way or by much more than it
// knows, and when it is right again.
func (r *replica) tellTime(env *protocol.Env[smr.Message]) {
	k := &r.time
	if k.heard < suspectTicks && k.held > 0 {
		return // the members will tell
	}
	now := clockRight
	switch {
	case k.apart >= suspectTicks:
		now = clockAlone
	case k.held > 0:
		now = clockHeld
	case k.ahead > r.farAhead() || k.told != clockRight && k.ahead > r.farAhead()/2:
		now = clockBehind
	}
	if now == k.told && k.held <= k.toldOf+r.farAhead() {
		return
	}
	k.told, k.toldOf = now, k.held
	say := smr.ClockOff{} // zeros: right again
	if now != clockRight {
		say = smr.ClockOff{Behind: k.ahead, Held: k.held}
	}
	if now == clockAlone {
		say.Alone = at(r.acceptor.skipped - r.passed())
	}
	env.Send(protocol.App, say)
}

// drive has time go on after a majority of clocks were ahead and set right. What they claimed
// stands, nothing is decided above it before the claims rise, and their clocks would raise them
// only when they show that time again. So when nothing was passed for two ticks and the own clock
// is behind, the ticks count as time. This time is never faster than a right clock, and somewhat
// slower, as the replicas wait for each other's claims: so the clocks catch up.
func (r *replica) drive(env *protocol.Env[smr.Message]) {
	k := &r.time
	passed := r.passed()
	if k.stood++; passed != k.stoodAt || r.clock(env) >= passed {
		k.stood, k.stoodAt, k.driven = 0, passed, min(k.driven, passed)
	}
	if k.stood >= behindTicks {
		k.driven = passed + smr.Slot(r.Times(tick*float64(k.stood)))
	}
}

// alone reports whether what the replica itself has promised is far ahead of what a majority has
// that is heard, as after its clock alone was ahead: it takes no part in new slots until the others
// are there.
func (r *replica) alone() bool {
	passed := r.passed()
	return passed > 0 && r.countAlive() >= r.rule.classic && r.claimedOnDisk() > passed+smr.Slot(r.farAhead())
}

// passed returns the slot that a majority's clocks have passed, whatever the replica's own clock
// shows.
func (r *replica) passed() smr.Slot {
	passed := make([]smr.Slot, 0, maxMembers)
	for _, id := range r.group {
		passed = append(passed, r.peers[id].claims.Skipped)
	}
	return quorum.KthLargest(passed, r.rule.classic)
}
