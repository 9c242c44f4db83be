package mencius

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// execute applies what is decided, in the order of the slots of all tracks. It stops at the first
// slot that is undecided, whatever is decided above: the slowest track sets the pace, which is why
// idle owners skip, and silent ones are revoked.
func (r *replica) execute(env *protocol.Env[smr.Message]) {
	for len(r.epoch.members) > 0 && !r.Over() {
		s := r.State.Applied() + 1
		if r.epoch.last != 0 && s > r.epoch.last {
			r.beginEpoch(env)
			continue
		}
		l, p := r.epoch.at(s)
		if !l.decided(p) {
			break
		}
		r.apply(env, s, l, p)
	}
	r.seen = max(r.seen, r.State.Applied())
	r.journal.MaybeSave(env, r.epoch.front)
	r.answerReads(env)
}

// apply executes a decided slot. The members change at the end of the epoch, not here: slots up to
// that end may have been proposed by replicas that have not executed the change yet.
func (r *replica) apply(env *protocol.Env[smr.Message], s smr.Slot, l *track, p pos) {
	e := l.at(p).Entry
	l.commit = max(l.commit, p) // one that was skipped too
	l.matched = max(l.matched, p)
	if l.owner == r.Cfg.ID {
		r.again(env, p, e)
	}
	if e.Kind == kit.NoOp {
		r.State.Skip(s)
		return
	}
	before := r.State.Members()
	reply := r.State.Apply(s, e)
	r.journal.Executed()
	delete(r.early, wishFor(e))
	if e.Kind == kit.ChangeMembers && changed(before, r.State.Members()) {
		if r.epoch.last == 0 {
			r.epoch.last = s + window
		}
		r.MembersChanged(env)
	}
	switch {
	case !r.Desk.Waits(e):
	case e.Kind == kit.ChangeMembers && r.epoch.last != 0:
		r.changes = append(r.changes, change{e, reply})
	default:
		r.Desk.Applied(env, e, reply)
	}
}

// change is an applied change of the members that is answered when it comes into force. Until the
// epoch has ended its members are needed: who is told before that one is removed may stop it.
type change struct {
	entry kit.Entry
	reply kit.Reply
}

func changed(a, b []smr.Member) bool {
	if len(a) != len(b) {
		return true
	}
	for i := range a {
		if a[i] != b[i] {
			return true
		}
	}
	return false
}

// again has a command proposed once more if its slot has another entry: the track was revoked
// meanwhile. If the slot gets the command after all, it is executed once.
func (r *replica) again(env *protocol.Env[smr.Message], p pos, there kit.Entry) {
	e, ok := r.mine[p]
	if !ok {
		return
	}
	if e.Equal(there) && p > r.epoch.tracks[r.own].commit {
		return
	}
	delete(r.mine, p)
	if !e.Equal(there) && r.Desk.Waits(e) {
		r.queue = append(r.queue, e)
		r.soon(env)
	}
}

// beginEpoch goes on with the members as they are now. The snapshot takes the place of the log, as
// its tracks are not those of the new members.
func (r *replica) beginEpoch(env *protocol.Env[smr.Message]) {
	old := r.epoch
	r.epoch = newEpoch(old.number+1, old.last+1, r.State.MemberIDs())
	r.enter(env)
	if err := r.journal.SaveNow(env, r.epoch.front()); err != nil {
		r.Fail(env, err)
		return
	}
	r.forget(env)
	r.FindPart(env)
}

// enter is what has to be done when the epoch has become another one: what was known of the old
// tracks is void.
func (r *replica) enter(env *protocol.Env[smr.Message]) {
	for _, c := range r.changes {
		r.Desk.Applied(env, c.entry, c.reply)
	}
	r.changes = nil
	r.own, r.above = -1, 0
	for _, p := range sortedPos(r.mine) {
		if e := r.mine[p]; r.Desk.Waits(e) {
			r.queue = append(r.queue, e)
		}
	}
	clear(r.mine)
	r.reads.Again(0)
	r.soon(env)
}

// applyDoubtful executes what was accepted in all tracks, in the order of their slots. A slot of
// which the disk has nothing was not executed with a command in it.
func (r *replica) applyDoubtful(*protocol.Env[smr.Message]) (n int, err error) {
	last := smr.Slot(0)
	for _, l := range r.epoch.tracks {
		if l.end() > 0 {
			last = max(last, r.epoch.slot(l, l.end()))
		}
	}
	if r.epoch.last != 0 {
		last = min(last, r.epoch.last)
	}
	for s := r.State.Applied() + 1; s <= last; s++ {
		l, p := r.epoch.at(s)
		if p > l.end() || l.at(p).Entry.Kind == kit.NoOp {
			r.State.Skip(s)
			continue
		}
		r.State.Apply(s, l.at(p).Entry)
		if !l.decided(p) {
			n++
		}
	}
	return n, nil
}
