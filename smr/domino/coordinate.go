package domino

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr"
)

// revocation is the coordinator's phase 1 for slots of a failed replica's track.
//
// told is where the shortest answer ends. An answer that is too long for one message is cut, and
// its silence about the slots beyond must not be taken for "nothing was accepted there".
type revocation struct {
	high    smr.Slot // that was asked for
	told    smr.Slot // up to which the answers tell
	ticks   int
	replies quorum.Votes
	items   bySlot
}

// coordinate does what a coordinator has to do as soon as it can.
func (r *replica) coordinate(env *protocol.Env[smr.Message]) {
	switch r.coord.phase {
	case preparing:
		r.maybeLead(env)
	case leading:
		r.closeShared(env, false)
		r.changeMembers(env)
	}
}

// idle reports whether no decision of the coordinator's about a track is under way. What was
// proposed again when it began to coordinate comes first: decisions that follow are about other
// slots.
//
// One decision at a time: what is under way is not in w yet, so the next one would be about the
// same slots. More votes may have come since, and choose may say something else for one of them.
// Acceptors would replace the first decision within one ballot, after others have learned it.
func (r *replica) idle(l trackID) bool {
	c := &r.coord
	upTo := r.acceptor.count - uint64(len(r.acceptor.begun))
	if upTo < c.again1 {
		return false
	}
	if n, ok := c.busy[l]; ok && n > upTo {
		return false
	}
	delete(c.busy, l)
	return true
}

// tickTracks keeps tracks going in which nothing would be decided otherwise.
func (r *replica) tickTracks(env *protocol.Env[smr.Message]) {
	l := &r.learner
	now := r.passed()
	r.extend(env, now)
	l.shared.idle++
	if r.countMembers(goneTicks) < r.rule.noOp && l.shared.w < now+r.ahead(revokeLeft) {
		// The fast path decides nothing while so many are silent: better everything goes through
		// tracks, which need no more than a majority.
		r.sendRevoke(env, shared, now+r.ahead(revokeAhead))
	}
	r.closeShared(env, l.shared.idle >= stalledTicks)
	for _, o := range l.owners {
		o.idle++
		r.tickRevocation(env, o, now)
	}
}

// extend decides that there is no change of the members for a while.
func (r *replica) extend(env *protocol.Env[smr.Message], now smr.Slot) {
	w := r.learner.control.w
	if r.learner.change == 0 && r.idle(control) && len(r.coord.changes) == 0 && w < now+r.ahead(horizonLeft) {
		r.decide(env, closeSlots{Track: control, Low: w, High: now + r.ahead(horizon)})
	}
}

// changeMembers decides a change of the members. It takes effect behind all slots for which it was
// decided that there is none.
//
// The slot of the change has to be above all of those, as the present members may have
// voted on them. A change below would hand slots that the old members are deciding to the new
// ones, and a majority of each could decide differently.
func (r *replica) changeMembers(env *protocol.Env[smr.Message]) {
	c := &r.coord
	if len(c.changes) == 0 || r.learner.change != 0 || !r.idle(control) {
		return
	}
	w := r.learner.control.w
	s := above(max(w, r.passed()), controlDigit)
	r.decide(env, closeSlots{Track: control, Low: w, High: s,
		Items: []item{{Slot: s, Answer: r.Cfg.ID, Entries: slices.Clone(c.changes[:1])}}})
	c.changes = slices.Delete(c.changes, 0, 1)
}

// closeShared decides slots of the shared track that the votes in ballot 0 do not decide any more,
// or not soon: then anyway. The votes are phase 1 of the coordinator's ballot, as it needs no more
// than to know that they are final: this is Fast Paxos' coordinated recovery. A majority is enough:
// it never waits for all.
//
// Only slots that a majority has passed are closed. To take an acceptor that is silent so far for
// one without a vote is wrong: it is counted out, the coordinator proposes the no-op, and then its
// vote arrives at the client as the last one of a supermajority.
func (r *replica) closeShared(env *protocol.Env[smr.Message], anyway bool) {
	l := &r.learner
	o := &l.shared
	if !r.idle(shared) {
		return
	}
	final := min(r.closedByAll(r.rule.classic), r.bound(o))
	if final <= o.w {
		return
	}
	i, _ := l.find(o.w + 1)
	stuck := anyway || r.countAlive() < r.rule.noOp
	for k := i; k < len(l.contests) && l.contests[k].slot <= final && !stuck; k++ {
		votes, passed := l.contests[k].tally(r.group, r.closedBy)
		stuck = !r.rule.open(votes, passed)
	}
	if !stuck {
		return
	}
	m := closeSlots{Track: shared, Low: o.w, High: final}
	for ; i < len(l.contests) && l.contests[i].slot <= final; i++ {
		c := l.contests[i]
		votes, passed := c.tally(r.group, r.closedBy)
		if k := r.rule.choose(votes, passed); k != noOp {
			m.Items = append(m.Items, c.candidates[k].item)
		}
	}
	// The rest is decided after that, by votes that are known then.
	r.decide(env, m.pieces()[0])
}

// tickRevocation takes the slots of a replica that has failed away from it, some time ahead, so
// that nobody waits for each of them [Mencius §4].
func (r *replica) tickRevocation(env *protocol.Env[smr.Message], o *track, now smr.Slot) {
	c := &r.coord
	id := protocol.ID(o.id)
	failed, high := !r.heard(id, goneTicks), now+r.ahead(revokeAhead)
	if !failed && o.idle >= patientTicks {
		failed, high = true, now // what an earlier coordinator has revoked, and not decided
	}
	v := c.revoking[id]
	switch {
	case v != nil && v.ticks < patientTicks:
		if v.ticks++; v.ticks%resendTicks == 0 {
			r.sendRevoke(env, o.id, v.high)
		}
	case v != nil:
		delete(c.revoking, id)
	case failed && o.w < now+r.ahead(revokeLeft) && r.idle(o.id):
		if high = min(high, r.bound(o)); high > o.w {
			c.revoking[id] = &revocation{high: high, told: high}
			r.sendRevoke(env, o.id, high)
		}
	}
}

func (r *replica) sendRevoke(env *protocol.Env[smr.Message], l trackID, high smr.Slot) {
	for _, id := range r.group {
		r.Admission.Send(env, id, revoke{Ballot: r.coord.ballot, Track: l, High: high})
	}
}

// onRevoke promises to accept nothing more in slots of a track, in ballot 0, and tells what was
// accepted there.
//
// The answer holds in the ballot that was promised, and in no other. And High has a bound: a
// coordinator whose time is wrong could otherwise take an owner's track away for good.
func (r *replica) onRevoke(env *protocol.Env[smr.Message], from protocol.ID, m revoke) {
	a := &r.acceptor
	if m.Ballot != a.promised || m.Ballot.Owner() != from || m.High > maxSlot || m.High > r.now(env)+r.ahead(2*horizon) {
		return
	}
	switch {
	case m.Track == shared:
		a.close(env, m.High)
		r.soon(env)
	case m.Track.owned():
		id := protocol.ID(m.Track)
		a.revoke(env, id, m.High)
		all := closeSlots{Track: m.Track, Low: r.learner.executed, High: m.High,
			Items: slices.Clone(a.track(id).items.within(r.learner.executed, m.High))}
		first := all.pieces()[0]
		r.Admission.Send(env, from, revoked{
			Ballot: m.Ballot, Track: m.Track, Asked: m.High, High: first.High, Executed: r.learner.executed, Items: first.Items,
		})
	}
}

// onRevoked decides a revoked part of a track when a majority has told what it accepted there: any
// proposal of the owner's that one of them has is proposed again, as it may have been decided.
// Nobody else proposes anything there but no-ops.
//
// A majority is needed, though one answer may have the proposal. The owner's clients count a
// majority of acceptances: if it was complete, this majority has one of them. If nobody here has
// the proposal it was not, and never will be, as these have promised to accept it no more. Answers
// to an earlier request, with a lower High, promise less and do not count.
func (r *replica) onRevoked(env *protocol.Env[smr.Message], from protocol.ID, m revoked) {
	c := &r.coord
	id := protocol.ID(m.Track)
	v := c.revoking[id]
	if c.phase != leading || m.Ballot != c.ballot || v == nil || m.Asked != v.high {
		return
	}
	if m.Executed > r.learner.executed {
		r.fetch(env, from) // it tells no votes for what it has executed; it is asked again
		return
	}
	v.replies.Add(from)
	v.told = min(v.told, m.High)
	for _, i := range m.Items {
		v.items.add(i)
	}
	o := r.learner.track(m.Track)
	if v.replies.Among(r.group) < r.rule.classic || !r.idle(m.Track) {
		return
	}
	delete(c.revoking, id)
	if high := min(v.told, r.bound(o)); high > o.w {
		items := slices.Clone(v.items.within(o.w, high))
		r.decide(env, closeSlots{Track: m.Track, Low: o.w, High: high, Items: items}.pieces()[0])
	}
}

// tellLearned tells the others what the coordinator has learned from votes that they do not count.
func (r *replica) tellLearned(env *protocol.Env[smr.Message], c closeSlots) {
	for _, piece := range c.pieces() {
		for _, id := range r.group {
			if id != r.Cfg.ID {
				r.Admission.Send(env, id, r.named(id, piece))
			}
		}
	}
}

// onLearned takes it.
func (r *replica) onLearned(_ protocol.ID, m learned) {
	if m.Low > m.High || m.High > maxSlot || m.Track != shared || m.High <= r.learner.executed {
		return
	}
	if c, ok := r.complete(m); ok {
		r.know(c)
	}
}
