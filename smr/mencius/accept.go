package mencius

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// onAccept takes what a track's leader proposes, if nothing before it is missing: votes without
// gaps let one number, matched, answer for all of them.
func (r *replica) onAccept(env *protocol.Env[smr.Message], l *track, from protocol.ID, m accept) {
	switch {
	case l.leaderOf(m.Ballot) != from || from == r.Cfg.ID || m.First == 0:
		return
	case m.Ballot < l.promised:
		r.Admission.SendAhead(env, from, refusal{r.place(l, l.promised)})
		return
	case m.Ballot > l.promised:
		l.raise(m.Ballot)
		r.promise(env)
	}
	l.silent = 0
	if m.First > l.matched+1 {
		if l.missing != l.matched+1 {
			l.missing = l.matched + 1
			r.Admission.SendAhead(env, from, missing{r.place(l, l.promised), l.missing})
		}
		return
	}
	first := max(m.First, l.matched+1)
	votes, ok := unpack(m.Items, m.Ballot, first-m.First)
	if !ok {
		return
	}
	if len(m.Items) == 0 || len(votes) == 0 {
		l.tell = max(l.tell, tellLeader)
	}
	if len(votes) > 0 {
		r.accept(l, first, votes)
		l.matched += pos(len(votes))
		l.rematch()
		if slices.ContainsFunc(votes, func(v vote) bool { return !v.Skip }) {
			l.tell = tellAll // what was skipped needs no votes
		}
		r.giveWay(l, first)
	}
	if i := r.epoch.index(from); i >= 0 {
		l.acked(i, ack{m.Ballot, l.matched}) // it was on the leader's disk before it was sent
	}
	l.decide(m.Commit)
	r.learn(env, l)
}

// giveWay has the replica skip its free slots below the commands of a track from a position on.
// Otherwise those commands would wait until the replica had commands of its own for the slots
// below. Skips of others ask for nothing: replicas would answer skips with skips.
func (r *replica) giveWay(l *track, first pos) {
	for p := l.end(); p >= first && p > l.base; p-- {
		if l.at(p).Entry.Kind != kit.NoOp {
			r.above = max(r.above, r.epoch.slot(l, p))
			return
		}
	}
}

// learn decides what a majority of the members has in a track, and goes on with the execution. The
// owner tells its clients that their commands are durable before anything is executed: slots of
// other tracks below may be undecided for long.
func (r *replica) learn(env *protocol.Env[smr.Message], l *track) {
	before := l.commit
	l.advance(quorum.Majority(len(r.epoch.members)))
	if l.lead != nil && l.owner == r.Cfg.ID && l.commit > before {
		r.tellDurable(env, l, before+1)
	}
	r.execute(env)
}

// onMissing sends a member again what it lacks, unless that can still be on its way.
func (r *replica) onMissing(env *protocol.Env[smr.Message], l *track, member int, m missing) {
	if l.lead == nil || m.Ballot != l.promised {
		return
	}
	if m.Want <= l.base {
		return // it finds out by the beats how far behind it is
	}
	l.lead.flows[member].Lost(env.Now, m.Want, r.Tempo.Times(1))
	r.pump(env, l, member)
}

// onAccepted takes a vote. There is room for more on the way to who gives it.
func (r *replica) onAccepted(env *protocol.Env[smr.Message], l *track, member int, m accepted) {
	l.acked(member, ack{m.Ballot, m.Match})
	if member == r.own && l.owner == r.Cfg.ID {
		l.skips = max(l.skips, m.Match)
	}
	if l.lead != nil && m.Ballot == l.promised {
		l.lead.flows[member].Done(m.Match)
		r.pump(env, l, member)
	}
	r.learn(env, l)
}

// pump sends a member what it was not sent of a track, as much at a time as may be under way. It
// waits for the replica's own disk, where leaders of other protocols do not: see extend.
func (r *replica) pump(env *protocol.Env[smr.Message], l *track, member int) {
	to := r.epoch.members[member]
	if to == r.Cfg.ID {
		return
	}
	flow := &l.lead.flows[member]
	flow.Done(l.base)
	flow.Skip(l.base)
	for flow.Next() <= l.end() && !flow.Full(r.Cfg.MaxUnderwayBytes) {
		first := flow.Next()
		items, after := l.items(first, l.end())
		flow.Sent(env.Now, after-1, len(items), sizeOf(items))
		r.Admission.Send(env, to, accept{place: r.place(l, l.promised), First: first, Commit: l.commit, Items: items})
	}
}

// ackedBy returns how far a member is known to have a track. What it has acknowledged in another
// ballot says nothing of this one, but what is decided it has, or gets by asking for it (fetch).
func (r *replica) ackedBy(l *track, member int) pos {
	if a := l.acks[member]; a.ballot == l.promised {
		return a.match
	}
	return l.commit
}

// onRefusal ends an attempt, or a leadership, below a ballot that another replica has promised.
func (r *replica) onRefusal(env *protocol.Env[smr.Message], l *track, promised kit.Ballot) {
	if promised <= l.promised || l.cand != nil && promised == l.cand.ballot {
		return
	}
	// It is no promise, as nobody asked for one; but who leads in a lower ballot has nothing more
	// to say.
	l.above = max(l.above, promised)
	l.lead, l.cand = nil, nil
	l.rest = r.pause(env, l)
}
