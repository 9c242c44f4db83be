package mencius

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

func (r *replica) fetch() fetch {
	return fetch{Epoch: r.epoch.number, Applied: r.State.Applied()}
}

// onTick says that the replica is there, and looks who else is.
func (r *replica) onTick(env *protocol.Env[smr.Message]) {
	env.After(kit.UntilBeat(r.Cfg, env.Now, r.Times(beatEvery)), beatTimer{})
	m := beat{Epoch: r.epoch.number, Applied: r.State.Applied(), Seen: r.seen}
	for _, l := range r.epoch.tracks {
		if l.lead != nil && r.active() {
			m.Leads = append(m.Leads, led{l.index, l.promised, l.commit})
		}
	}
	r.Beat(env, r.others(), m) // ahead of the disk: what is decided is on other disks too
	if !r.Tempo.Beat(env.Now, beatEvery) {
		return
	}
	r.progress.Beat(env)
	if r.active() {
		for _, l := range r.epoch.tracks {
			r.askAgain(env, l)
		}
		r.watch(env)
		r.pollAgain(env)
		r.soon(env)
	}
	ask := r.progress.Lags(env, r.State.Applied(), r.own >= 0, len(r.epoch.members) > 0, r.others())
	if ask != 0 && !r.Arriving(env) {
		r.Admission.Send(env, ask, r.fetch())
	}
	r.urgent = r.urgent || len(r.parts) > 0
}

// askAgain asks those who have not answered for all of a track: something may be lost. An Accept
// without items is answered with how far the member is, or with what it is missing.
func (r *replica) askAgain(env *protocol.Env[smr.Message], l *track) {
	if l.lead == nil {
		return
	}
	for i, id := range r.epoch.members {
		if id != r.Cfg.ID && r.ackedBy(l, i) < l.end() {
			r.pump(env, l, i)
			r.Admission.Send(env, id, accept{place: r.place(l, l.promised), First: l.lead.flows[i].Next(), Commit: l.commit})
		}
	}
}

// others returns all who are told how far the replica is: members of now and of soon, and who has
// asked.
func (r *replica) others() []protocol.ID {
	return r.progress.Peers(r.Cfg, slices.Concat(r.epoch.members, r.State.MemberIDs())...)
}

// onBeat takes how far another replica is, and what it leads. The own free slots below the last
// command that the other has seen are skipped: that command waits for them, and the message that
// would have told of it may be lost.
func (r *replica) onBeat(env *protocol.Env[smr.Message], from protocol.ID, m beat) {
	r.progress.Heard(from, uint64(m.Epoch), m.Applied)
	if m.Epoch != r.epoch.number || !r.active() {
		return
	}
	r.above = max(r.above, m.Seen)
	for _, led := range m.Leads {
		if int(led.Track) < len(r.epoch.tracks) {
			r.onLed(env, r.epoch.tracks[led.Track], from, led)
		}
	}
	r.execute(env)
}

// onLed takes a leader's word about its track. Replicas whose ballots differ must not ignore each
// other: a leader with nothing left to propose sends no Accept by which it would find out, and the
// tracks of an epoch that ends are full.
func (r *replica) onLed(env *protocol.Env[smr.Message], l *track, from protocol.ID, led led) {
	switch {
	case l.leaderOf(led.Ballot) != from:
		return
	case led.Ballot < l.promised:
		r.Admission.SendAhead(env, from, refusal{r.place(l, l.promised)})
		return
	case led.Ballot > l.promised:
		l.raise(led.Ballot)
		r.promise(env)
	}
	l.silent = 0
	l.decide(led.Commit)
	if l.matched < led.Commit && l.missing != l.matched+1 {
		l.missing = l.matched + 1
		r.Admission.SendAhead(env, from, missing{r.place(l, l.promised), l.missing})
	}
}
