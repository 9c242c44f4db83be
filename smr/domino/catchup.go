package domino

import (
	"cmp"
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// Of the three ways to catch up this file has two: what was executed and is still in memory, and a
// snapshot (DESIGN.md, "Three ways to catch up"; the third is in news.go). Both tell of decisions
// only. A decision is the same whoever tells it, so neither looks at ballots, and neither can harm:
// the worst is that it is slow.

// history is what was executed and is kept for replicas that lag: all items above base.
type history struct {
	base  smr.Slot
	items bySlot
}

// keep remembers an item that was executed.
func (r *replica) keep(item item) { r.past.items = append(r.past.items, item) }

func (r *replica) onBegin(env *protocol.Env[smr.Message]) {
	env.After(kit.UntilBeat(r.Cfg, env.Now, r.Times(tick)), beatTimer{})
	env.After(r.opt.Probe, probeTimer{})
	r.time.seen = env.Now
	r.settle(env)
}

func (r *replica) load(
	env *protocol.Env[smr.Message], log []protocol.Record[smr.Message],
) (blank bool, err error) {
	found, err := r.State.Open(env, r.Cfg, log, nil, nil)
	if err != nil {
		return false, err
	}
	r.snapshot = found.Slot
	r.learner.begin(r.snapshot, r.State.Applied())
	r.past.base = r.snapshot
	r.acceptor.disk.Load(env, found.Blank)
	return found.Blank, r.acceptor.load(env, log, r.Cfg.ID, r.snapshot)
}

// begin makes all up to a slot executed.
func (l *learner) begin(executed, last smr.Slot) {
	l.executed, l.last = executed, last
	l.decided.cut(executed)
	n, _ := l.find(executed + 1)
	l.contests = slices.Delete(l.contests, 0, n)
	l.findChange()
	l.stretch()
}

// maybeSnapshot writes a snapshot when enough was executed since the last one, and cuts the log.
func (r *replica) maybeSnapshot(env *protocol.Env[smr.Message]) {
	full := r.sinceCut > 0 && r.State.Fullness(r.Cfg.LogBytes) >= 1
	if r.State.Saving() || r.sinceCut < r.Cfg.SnapshotEvery &&
		r.acceptor.journal.Records()-r.uncut < r.Cfg.SnapshotEvery && !full {
		return
	}
	r.saving.sinceCut, r.saving.keep = r.sinceCut, r.keepBehind()
	done, err := r.State.BeginSave(env, r.Cfg, r.learner.executed, nil)
	r.onSaved(env, done, err)
}

// keepBehind returns how many commands a snapshot that is made now leaves to replicas that lag a
// little.
func (r *replica) keepBehind() int {
	keep := r.Cfg.SnapshotEvery / 8
	if full := r.State.Fullness(r.Cfg.LogBytes); full > 0 {
		keep = min(keep, int(float64(r.sinceCut)/full/8)) // an eighth of what fills a log
	}
	return max(keep, 1)
}

// onSaved cuts the log if a snapshot is on disk. After an error the log stays; it is tried again
// after the next command.
func (r *replica) onSaved(env *protocol.Env[smr.Message], done bool, err error) {
	if !done || err != nil {
		return
	}
	r.snapshot = r.State.Saved()
	r.sinceCut -= r.saving.sinceCut
	spare, _ := slices.BinarySearchFunc(r.past.items, r.snapshot+1, func(i item, s smr.Slot) int {
		return cmp.Compare(i.Slot, s)
	})
	for kept := 0; spare > 0 && kept+len(r.past.items[spare-1].Entries) <= r.saving.keep; spare-- {
		kept += len(r.past.items[spare-1].Entries)
	}
	for held := r.State.HeldCut(r.Transfers, r.snapshot, r.Cfg.LogBytes); spare > 0 && r.past.items[spare-1].Slot > held; {
		spare--
	}
	if spare > 0 {
		r.past.base = r.past.items[spare-1].Slot
		r.past.items = slices.Delete(r.past.items, 0, spare) // a part of the slice would hold the commands of all of it
	}
	r.acceptor.cut(env, r.snapshot)
	r.uncut = r.acceptor.journal.Records()
}

// takeSnapshot makes the state as it is durable in this call.
func (r *replica) takeSnapshot(env *protocol.Env[smr.Message]) {
	r.saving.sinceCut, r.saving.keep = r.sinceCut, r.keepBehind()
	_, err := r.State.SaveNow(env, r.Cfg, r.learner.executed, nil)
	r.onSaved(env, true, err)
	r.saving.sinceCut = 0 // if the snapshot goes on, nothing of it is counted again
}

// forget drops what was executed and what nobody lacks. A member that is not heard does not count:
// it would keep the stream growing for as long as it is away. When it is back it learns from news
// that a part is not sent any more (Base), and fetches that instead.
func (r *replica) forget() {
	needed := r.acceptor.own.last()
	for _, id := range r.group {
		if r.alive(id) {
			needed = min(needed, r.peers[id].out.has)
		}
	}
	r.acceptor.forget(r.learner.executed, needed, r.tailBytes())
}

// tailBytes bounds what is kept of streams, once it was executed, for replicas that lag: as much as
// of what was executed behind a snapshot.
func (r *replica) tailBytes() int { return r.Cfg.LogBytes / 8 }

// tickCatchUp asks somebody for what was executed if nothing is executed here, though others go on.
// It waits for two ticks first: mostly what is missing is on its way, and the answer to a question
// may be the whole state.
func (r *replica) tickCatchUp(env *protocol.Env[smr.Message]) {
	for _, m := range r.State.Members() {
		r.Transfers.Continue(env, m.ID)
	}
	r.Transfers.Continue(env, r.coord.joiner)
	r.stuck++
	if r.role == blank {
		if others := r.others(); len(others) > 0 && (r.Cfg.Join || r.Admission.Admitted()) {
			r.fetch(env, others[env.Rand.IntN(len(others))])
		}
		return
	}
	if r.role != member || r.learner.executed > r.progress {
		r.progress, r.stuck = r.learner.executed, 0
		return
	}
	if r.stuck < behindTicks {
		return
	}
	best := protocol.App
	for _, id := range r.group {
		if p := r.peers[id]; r.alive(id) && p.executed > r.learner.executed &&
			(best == protocol.App || p.executed > r.peers[best].executed) {
			best = id
		}
	}
	if others := r.others(); best == protocol.App && r.stuck%patientTicks == 0 && len(others) > 0 {
		// Nobody who is heard is further. Perhaps one of them knows that this replica is no member
		// any more, or nobody whom it knows is one.
		best = others[env.Rand.IntN(len(others))]
	}
	if best != protocol.App {
		r.fetch(env, best)
	}
}

// others returns whom a replica knows beside itself, and whom it met, if too few of the former are
// left to decide anything.
func (r *replica) others() []protocol.ID {
	group := r.State.Members()
	if len(group) == 0 {
		group = r.Admission.Peers()
	}
	var out []protocol.ID
	for _, m := range group {
		if m.ID != r.Cfg.ID {
			out = append(out, m.ID)
		}
	}
	if r.countAlive() < r.rule.classic {
		out = append(out, r.strangers...)
	}
	return out
}

// met notes that somebody who is no member here speaks as one: perhaps all whom this replica knows
// were replaced while it was away.
func (r *replica) met(id protocol.ID) {
	if len(r.strangers) < maxMembers && !slices.Contains(r.strangers, id) && !r.State.Removed(id) {
		r.strangers = append(r.strangers, id)
	}
}

// fetch asks a replica for what it has executed and this one has not, unless that is on its way.
func (r *replica) fetch(env *protocol.Env[smr.Message], from protocol.ID) {
	if r.Arriving(env) {
		return
	}
	if from == r.Cfg.ID || r.fetching && env.Now >= r.asked && env.Now-r.asked < r.Tempo.Times(tick) {
		return
	}
	r.fetching, r.asked = true, env.Now
	r.Admission.SendAhead(env, from, fetch{After: r.learner.executed, Blank: len(r.State.Members()) == 0})
}

// onFetch tells a replica what was executed after a slot, or sends it the state.
func (r *replica) onFetch(env *protocol.Env[smr.Message], from protocol.ID, m fetch) {
	if r.role == blank || from == r.Cfg.ID || r.learner.executed == 0 {
		return
	}
	if r.peers[from] == nil {
		r.coord.joiner, r.coord.joined = from, m.After
	}
	executed := r.learner.executed
	if m.After >= executed {
		return
	}
	if m.After < r.past.base || m.Blank {
		r.sendState(env, from)
		return
	}
	items := slices.Clone(r.past.items.within(m.After, executed))
	first := closeSlots{Low: m.After, High: executed, Items: items}.pieces()[0]
	r.Admission.Send(env, from, decided{Low: m.After, High: first.High, Executed: executed, Items: first.Items})
}

// onDecided executes what another replica has executed. Whichever of those that can be asked tells
// it, it is decided. A message that begins above what is executed here is of no use, as what is
// between is not known; slots that it does not mention are no-ops.
//
// At a change of the members it stops for a moment. What was executed until then is made durable
// first (changed), as the old members may be gone soon, and nobody else can decide it again.
func (r *replica) onDecided(env *protocol.Env[smr.Message], from protocol.ID, m decided) {
	l := &r.learner
	if m.Low > l.executed || m.High <= l.executed || m.High > maxSlot || len(r.State.Members()) == 0 ||
		!slices.Contains(r.others(), from) {
		return
	}
	r.fetching = false
	before := l.executed
	for _, i := range m.Items {
		if i.Slot <= l.executed || i.Slot > m.High {
			continue
		}
		l.executed = i.Slot
		r.apply(env, i)
		if digitOf(i.Slot) == controlDigit {
			r.writeExecuted(env, before)
			r.caughtUp(env, before)
			r.changed(env)
			before = l.executed
		}
		if r.role == removed {
			return
		}
	}
	l.executed = m.High
	r.writeExecuted(env, before)
	r.caughtUp(env, before)
	r.maybeSnapshot(env)
	if m.High < m.Executed {
		r.fetch(env, from)
	}
}

// caughtUp puts everything in order after slots were executed, from one on, that others have
// decided. The own proposals among them need an answer: their clients wait here. What the state has
// not seen was revoked, so it is proposed again; what it has seen must not be.
func (r *replica) caughtUp(env *protocol.Env[smr.Message], before smr.Slot) {
	l := &r.learner
	mine := r.acceptor.track(r.Cfg.ID).items.within(before, l.executed)
	r.acceptor.begin(l.executed)
	for _, i := range mine {
		for _, e := range i.Entries {
			if reply, ok := r.State.Seen(e); ok {
				r.Desk.Applied(env, e, reply)
			} else {
				r.queue = append(r.queue, e)
			}
		}
	}
	l.begin(l.executed, max(l.last, r.State.Applied()))
	r.soon(env)
}

// sendState begins to send a replica the state as it is.
func (r *replica) sendState(env *protocol.Env[smr.Message], to protocol.ID) {
	if out := r.Transfers.Of(to); out != nil && out.Slot() >= r.past.base {
		r.Transfers.Continue(env, to)
		return
	}
	out, err := r.State.SendState(r.learner.executed, nil)
	if err != nil {
		return // it is asked for again
	}
	if r.Transfers.Len() >= maxMembers {
		r.Transfers.Clear()
	}
	r.Transfers.Begin(env, to, out)
}

// takes reports whether the replica takes a part of a snapshot. It has no-ops executed too, behind
// what was applied last.
func (r *replica) takes(from protocol.ID, part kit.SnapshotChunk) (has smr.Slot, ok bool) {
	return r.learner.executed, (r.role != blank || r.Cfg.Join || r.Admission.Admitted()) && part.Slot <= maxSlot &&
		slices.Contains(r.others(), from)
}

// onInstalled goes on from a snapshot. What was promised and accepted stays: it is an acceptor's
// word, which others count on, and no state says anything about it.
func (r *replica) onInstalled(env *protocol.Env[smr.Message], s *kit.Arrived) error {
	before := r.learner.executed
	r.learner.executed = s.Slot
	r.past = history{base: s.Slot}
	r.saving.sinceCut, r.saving.keep = r.sinceCut, 0
	r.onSaved(env, true, nil)
	r.caughtUp(env, before)
	r.membersChanged(env)
	return nil
}
