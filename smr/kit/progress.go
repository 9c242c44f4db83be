package kit

import (
	"maps"
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// Progress is how far other replicas have come, as each tells in its beats, and what follows for
// those who lag: whom to fetch from what is decided, and the state on its way to who has asked for
// too much. Protocols in which a leader knows what each follower has do not need it.
type Progress struct {
	transfers *Transfers
	heard     map[protocol.ID]Come
	applied   smr.Slot // at the last beat
	fetched   int      // beats since somebody was asked
	asked     protocol.ID
	times     int // that it was asked in succession
}

// Come is what another replica has told of itself.
type Come struct {
	Generation uint64 // of the members, or the epoch, where that matters
	Applied    smr.Slot
	Age        int // beats
}

// Bounds on what is remembered of other replicas, in replicas, in beats, and in transfers; and how
// often the same one is asked before another one is: each reads all of its state before it sends
// any of it.
const (
	maxProgress  = 64
	forgetAfter  = 100
	maxTransfers = 16
	askSame      = 32
	askSilent    = 2 // if nothing is heard of it
)

// NewProgress returns the progress of nobody. Who lags is sent the state by these transfers.
func NewProgress(transfers *Transfers) Progress {
	return Progress{transfers: transfers, heard: map[protocol.ID]Come{}}
}

// Heard notes how far another replica has come.
func (p *Progress) Heard(from protocol.ID, generation uint64, applied smr.Slot) {
	if _, known := p.heard[from]; known || len(p.heard) < maxProgress {
		p.heard[from] = Come{Generation: generation, Applied: applied}
	}
}

// Of returns how far a replica has come, as far as is known.
func (p *Progress) Of(id protocol.ID) (c Come, ok bool) {
	c, ok = p.heard[id]
	return c, ok
}

// Peers returns these replicas and those that were heard of, in order, without the replica itself.
// One that knows no others yet has those of its configuration.
func (p *Progress) Peers(cfg smr.ReplicaConfig, ids ...protocol.ID) []protocol.ID {
	if len(ids) == 0 {
		for _, m := range cfg.Members {
			ids = append(ids, m.ID)
		}
	}
	ids = slices.Concat(ids, slices.Sorted(maps.Keys(p.heard)))
	slices.Sort(ids)
	return slices.DeleteFunc(slices.Compact(ids), func(id protocol.ID) bool { return id == cfg.ID })
}

// Beat forgets who was not heard for long, and goes on with what is on its way to others.
func (p *Progress) Beat(env *protocol.Env[smr.Message]) {
	for _, id := range slices.Sorted(maps.Keys(p.heard)) {
		c := p.heard[id]
		if c.Age++; c.Age > forgetAfter {
			delete(p.heard, id)
			p.transfers.Drop(id)
			continue
		}
		p.heard[id] = c
		p.transfers.Continue(env, id)
	}
}

// Lags returns whom a replica should ask for what is decided, 0 if nobody: the one that is
// furthest, if the replica does not get on by itself, or anyone if it knows no group yet. It is
// called in each beat.
func (p *Progress) Lags(
	env *protocol.Env[smr.Message], applied smr.Slot, member, knowsGroup bool, peers []protocol.ID,
) (ask protocol.ID) {
	p.fetched++
	moves := applied != p.applied && member
	if p.applied = applied; moves || p.fetched < 2 {
		return 0
	}
	switch {
	case p.mayTell(applied, knowsGroup, peers):
		ask = p.asked
	case knowsGroup:
		furthest := applied
		for _, id := range slices.Sorted(maps.Keys(p.heard)) {
			if c := p.heard[id]; c.Age <= 2 && c.Applied > furthest {
				ask, furthest = id, c.Applied
			}
		}
	case len(peers) > 0:
		ask = peers[env.Rand.IntN(len(peers))]
	}
	if ask != p.asked {
		p.asked, p.times = ask, 0
	}
	p.times++
	if ask != 0 {
		p.fetched = 0
	}
	return ask
}

// mayTell reports whether the replica that was asked last, if any was, is to be asked again.
func (p *Progress) mayTell(applied smr.Slot, knowsGroup bool, peers []protocol.ID) bool {
	c, ok := p.heard[p.asked]
	there := ok && c.Age <= 2
	switch {
	case p.times >= askSame:
		return false
	case knowsGroup:
		return there && c.Applied > applied
	default:
		return slices.Contains(peers, p.asked) && (there || p.times < askSilent)
	}
}

// Stands reports whether the replica has come no further since the last beat.
func (p *Progress) Stands(applied smr.Slot) bool { return applied == p.applied }

// Fetching says that somebody was asked.
func (p *Progress) Fetching() { p.fetched = 0 }

// sending goes on with the state that is on its way to a replica that has asked, and reports
// whether it brings more than the replica has.
func (p *Progress) sending(env *protocol.Env[smr.Message], to protocol.ID, has smr.Slot) bool {
	out := p.transfers.Of(to)
	if out == nil {
		return false
	}
	if out.Slot() <= has {
		p.transfers.Drop(to)
		return false
	}
	p.transfers.Continue(env, to)
	return true
}

// SendState sends a replica that has asked, and has all up to a slot, the state as it is, or goes
// on with one that brings more. One that gets nothing asks again.
func (p *Progress) SendState(
	env *protocol.Env[smr.Message], to protocol.ID, has smr.Slot, s *State, front func() []byte,
) {
	if p.sending(env, to, has) || p.transfers.Len() >= maxTransfers {
		return
	}
	var before []byte
	if front != nil {
		before = front()
	}
	if out, err := s.SendState(s.Applied(), before); err == nil {
		p.transfers.Begin(env, to, out)
	}
}
