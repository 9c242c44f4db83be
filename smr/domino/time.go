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
	driven  smr.Slot      // the time by ticks, where the clocks were set back
	stood   int           // ticks since more was passed
	stoodAt smr.Slot      // what was passed then
	ahead   time.Duration // how far at the last tick what was claimed was ahead of the clock
	told    bool          // the application knows that the clock is off
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
	k.ahead = max(0, at(max(r.passed(), r.acceptor.skipped))-env.Now)
	r.tellTime(env)
}

// followClock takes what the clock shows. One that has jumped ahead is followed only if
// another member's claims are as far, as when this replica stood still, or its clock was behind and
// is set right. Otherwise time goes on from where it was, and catches up a tenth faster than the
// clock: nothing depends on what slots are in the time of day. So a majority of clocks that jump
// ahead, and back again, moves no claims.
func (r *replica) followClock(env *protocol.Env[smr.Message]) {
	k := &r.time
	every := r.Times(tick)
	switch elapsed := env.Now - k.seen; {
	case elapsed > r.farAhead():
		k.held += elapsed - every
	case elapsed < 0:
		k.held = max(0, k.held+elapsed)
	default:
		k.held = max(0, k.held-elapsed/catchUp)
	}
	k.seen = env.Now
	if k.held > 0 && r.confirmed(slotAt(env.Now)) {
		k.held = 0
	}
}

// confirmed tells whether the claims of another member are about as far as a time.
func (r *replica) confirmed(now smr.Slot) bool {
	for _, id := range r.group {
		if id != r.Cfg.ID && r.alive(id) && r.peers[id].claims.Skipped+smr.Slot(r.farAhead()) >= now {
			return true
		}
	}
	return false
}

// tellTime tells the application when the clock is off, and when it is right again.
func (r *replica) tellTime(env *protocol.Env[smr.Message]) {
	k := &r.time
	off := k.held > 0 || k.ahead > r.farAhead() || k.told && k.ahead > r.farAhead()/2
	if off == k.told {
		return
	}
	k.told = off
	var say smr.ClockOff // zeros: right again
	if off {
		say = smr.ClockOff{Behind: k.ahead, Held: k.held}
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

// passed returns the slot that a majority's clocks have passed, whatever the replica's own clock
// shows.
func (r *replica) passed() smr.Slot {
	passed := make([]smr.Slot, 0, maxMembers)
	for _, id := range r.group {
		passed = append(passed, r.peers[id].claims.Skipped)
	}
	return quorum.KthLargest(passed, r.rule.classic)
}
