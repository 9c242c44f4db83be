package mencius

import (
	"maps"
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

func sortedPos(m map[pos]kit.Entry) []pos { return slices.Sorted(maps.Keys(m)) }

// cut forgets the slots up to one, on disk as far as whole records allow.
func (r *replica) cut(env *protocol.Env[smr.Message], to smr.Slot) {
	for _, l := range r.epoch.tracks {
		l.cut(r.epoch.upTo(l, to))
	}
	r.journal.Cut(env, to, r.epoch.promises())
}

// forget cuts all of the log: it is another epoch's.
func (r *replica) forget(env *protocol.Env[smr.Message]) {
	r.journal.Forget(env)
	r.parts, r.partsLast, r.urgent = nil, 0, false
}

// onFetch answers a replica that lags: with what was decided, or with the state as it is if that is
// not there any more.
func (r *replica) onFetch(env *protocol.Env[smr.Message], from protocol.ID, m fetch) {
	r.progress.Heard(from, uint64(m.Epoch), m.Applied)
	if len(r.epoch.members) == 0 || r.State.Applied() <= m.Applied {
		return
	}
	if m.Epoch == r.epoch.number && m.Applied+1 >= r.epoch.first {
		if entries := r.decidedFrom(m.Applied + 1); entries != nil {
			r.Admission.Send(env, from, decided{Epoch: m.Epoch, First: m.Applied + 1, Entries: entries})
			return
		}
	}
	r.progress.SendState(env, from, m.Applied, r.State, r.epoch.front)
}

// decidedFrom returns what was applied from a slot on, as much as fits in a message, or nil if that
// is forgotten. Most of it may be skips, of which a message has room for more than a kit.Page says.
func (r *replica) decidedFrom(first smr.Slot) []kit.Entry {
	var entries []kit.Entry
	const skipBytes = 4
	size := 0
	for s := first; s <= r.State.Applied(); s++ {
		l, p := r.epoch.at(s)
		if p <= l.base {
			return nil
		}
		e := l.at(p).Entry
		if size += skipBytes + len(e.Command); size > kit.MessageBytes && len(entries) > 0 {
			break
		}
		entries = append(entries, e)
	}
	return entries
}

// onDecided takes over what others know to be decided. It is accepted as well, in the promised
// ballot: no other can be chosen, and a track has no gaps.
func (r *replica) onDecided(env *protocol.Env[smr.Message], from protocol.ID, m decided) {
	have := r.State.Applied()
	if m.Epoch != r.epoch.number || m.First > have+1 || m.First < r.epoch.first {
		return
	}
	if uint64(len(m.Entries)) <= uint64(have+1-m.First) {
		return
	}
	first := make([]pos, len(r.epoch.tracks))
	votes := make([][]vote, len(r.epoch.tracks))
	for i, e := range m.Entries[have+1-m.First:] {
		s := have + 1 + smr.Slot(i)
		if r.epoch.last != 0 && s > r.epoch.last {
			break
		}
		l, p := r.epoch.at(s)
		if first[l.index] == 0 {
			first[l.index] = p
		}
		if l.lead != nil && (p > l.end() || !l.at(p).Entry.Equal(e)) {
			l.lead = nil // somebody else has led it since
		}
		votes[l.index] = append(votes[l.index], vote{l.promised, false, e})
	}
	for i, l := range r.epoch.tracks {
		if len(votes[i]) > 0 {
			r.accept(l, first[i], votes[i])
			l.commit = max(l.commit, first[i]+pos(len(votes[i]))-1)
			l.rematch()
		}
	}
	r.execute(env)
	if p, _ := r.progress.Of(from); p.Applied > r.State.Applied() {
		r.Admission.Send(env, from, r.fetch())
	}
}

// fits reports whether a snapshot is of this epoch or a later one.
func (r *replica) fits(s *kit.Arrived) bool {
	e, err := readFront(s.Slot, s.Front)
	return err == nil && e.number >= r.epoch.number
}

// onInstalled goes on from a snapshot. Votes for later slots of the same epoch stay: they are
// promises.
func (r *replica) onInstalled(env *protocol.Env[smr.Message], s *kit.Arrived) error {
	e, err := readFront(s.Slot, s.Front)
	if err != nil {
		return err
	}
	other := e.number != r.epoch.number
	if other {
		r.epoch = e
		r.enter(env)
		for _, l := range e.tracks {
			l.cut(e.upTo(l, s.Slot))
		}
	} else {
		r.epoch.last = e.last
	}
	r.seen = max(r.seen, s.Slot)
	r.journal.Has(s.Slot)
	if other {
		r.forget(env)
	} else {
		r.cut(env, s.Slot)
		if r.own >= 0 { // what became of them the clients ask again
			maps.DeleteFunc(r.mine, func(p pos, _ kit.Entry) bool { return p <= r.epoch.tracks[r.own].base })
		}
	}
	r.Desk.Reset()
	r.MembersChanged(env)
	r.execute(env)
	return nil
}
