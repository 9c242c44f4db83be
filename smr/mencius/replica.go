package mencius

import (
	"fmt"
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// replica is an acceptor and learner in all tracks, the owner of one, and where clients ask.
type replica struct {
	kit.Replica

	epoch *epoch
	own   int      // the replica's place in the epoch, or -1
	seen  smr.Slot // the last slot in which a command was seen
	above smr.Slot // own commands get slots above it: clients have seen what comes of it

	journal   kit.Journal
	parts     []part // what was accepted and is not in a record
	partsLast smr.Slot
	urgent    bool // parts has to be on disk before anything is said of it

	queue   []kit.Entry       // what clients want and has no slot yet
	mine    map[pos]kit.Entry // what was proposed in the own track and is not applied
	reads   kit.Rounds
	pollAge int // beats since something was asked for reads
	early   map[wish]bool
	changes []change // of the members, that are applied and come into force with the next epoch

	progress kit.Progress
}

type beatTimer struct{} // twice in a round trip: say and look who is there

// newReplica returns a replica.
func newReplica(cfg smr.ReplicaConfig) (*replica, error) {
	base, err := kit.NewReplica("mencius", cfg)
	if err != nil {
		return nil, err
	}
	r := &replica{
		Replica: base, own: -1, epoch: &epoch{}, mine: map[pos]kit.Entry{}, progress: kit.NewProgress(base.Transfers),
		early: map[wish]bool{},
	}
	r.State.KeepApplied()
	r.journal.Follow(&r.Replica, r.cut)
	r.Follow(kit.Rules{
		Load: r.load, Begin: r.onBegin, Members: r.findOwn, Gone: r.gone, Former: r.former,
		Client: r.onClient, Peer: r.onPeer, Timer: r.onTimer, Batch: r.propose, Flush: r.flush,
		Front: frontLayout.Length, Fits: r.fits, Installed: r.onInstalled, Saved: r.journal.Saved, Status: r.status,
		Doubtful: r.applyDoubtful,
		Lull:     kit.LullRules{Idle: r.idle, Beat: beatTimer{}, Patience: r.lullPatience, Heard: r.heardDrowsy},
	})
	return r, nil
}

func (r *replica) onBegin(env *protocol.Env[smr.Message]) {
	env.After(kit.UntilBeat(r.Cfg, env.Now, r.Times(beatEvery)), beatTimer{})
}

// load takes over the newest snapshot and the votes and promises behind it. What was decided is not
// on disk: it follows from what a majority has, or others tell it.
func (r *replica) load(
	env *protocol.Env[smr.Message], log []protocol.Record[smr.Message],
) (blank bool, err error) {
	found, err := r.State.Open(env, r.Cfg, log, frontLayout.Length, func() error {
		r.epoch = newEpoch(1, 1, r.State.MemberIDs())
		return r.State.SaveWhole(env, 0, r.epoch.front())
	})
	if err != nil {
		return false, err
	}
	slot := found.Slot
	if found.Snapshot {
		if r.epoch, err = readFront(slot, found.Front); err != nil {
			return false, err
		}
		r.journal.Has(slot)
	}
	for _, rec := range log {
		if err := r.loadRecord(rec); err != nil {
			return false, err
		}
	}
	r.seen = max(r.seen, r.State.Applied())
	r.above = r.seen
	for _, l := range r.epoch.tracks {
		done := r.epoch.upTo(l, slot)
		if l.base > done {
			return false, fmt.Errorf("track %d begins with position %d, the snapshot ends with %d", l.index, l.base+1, done)
		}
		// Of what is in the snapshot only that says what was decided: if it came from another
		// replica, votes in the log may be of lower ballots.
		l.cut(done)
		l.commit = done
		l.rematch()
	}
	return found.Blank, nil
}

// loadRecord takes over a record of the log. Those of an earlier epoch are left: all of its slots
// are in the snapshot, and its tracks belong to other members. A part that does not follow what was
// read is behind a cut, so it begins the track anew.
func (r *replica) loadRecord(rec protocol.Record[smr.Message]) error {
	switch m := rec.Msg.(type) {
	case promiseRecord:
		r.journal.Promised(rec.Index)
		if m.Epoch != r.epoch.number {
			return nil // of a group that is not any more
		}
		for i, b := range m.Ballots {
			if i < len(r.epoch.tracks) {
				r.epoch.tracks[i].promised = max(r.epoch.tracks[i].promised, b)
			}
		}
	case acceptRecord:
		last := smr.Slot(0)
		for _, p := range m.Parts {
			if m.Epoch != r.epoch.number {
				break // of a group that is not any more
			}
			votes, ok := unpack(p.Items, p.Ballot, 0)
			if !ok || int(p.Track) >= len(r.epoch.tracks) {
				return fmt.Errorf("record %d is of track %d of %d, or too long", rec.Index, p.Track, len(r.epoch.tracks))
			}
			l := r.epoch.tracks[p.Track]
			l.promised = max(l.promised, p.Ballot)
			if p.First > l.end()+1 || len(l.votes) == 0 {
				l.base, l.votes = p.First-1, nil // what is before it is in the snapshot
			}
			r.put(l, p.First, votes)
			last = max(last, r.epoch.slot(l, p.First+pos(len(votes))-1))
		}
		r.journal.Found(rec.Index, last)
	default:
		return fmt.Errorf("record %d is a %T, which is none of the protocol's", rec.Index, rec.Msg)
	}
	return nil
}

// put takes votes for consecutive positions into memory.
func (r *replica) put(l *track, first pos, votes []vote) {
	for i, v := range votes {
		p := first + pos(i)
		l.set(p, v)
		if v.Entry.Kind != kit.NoOp {
			r.seen = max(r.seen, r.epoch.slot(l, p))
		}
	}
}

// accept takes votes of one ballot for consecutive positions into the log, in memory at once and on
// disk with all of the call.
func (r *replica) accept(l *track, first pos, votes []vote) {
	r.put(l, first, votes)
	r.urgent = r.urgent || l.owner == r.Cfg.ID || slices.ContainsFunc(votes, func(v vote) bool { return !v.Skip })
	for len(votes) > 0 {
		items, n := pack(votes)
		r.parts = append(r.parts, part{Track: l.index, Ballot: votes[0].Ballot, First: first, Items: items})
		first += pos(n)
		r.partsLast = max(r.partsLast, r.epoch.slot(l, first-1))
		votes = votes[n:]
	}
}

// write puts what was accepted on disk. What others have skipped waits until there is something
// else: it is on their disks.
func (r *replica) write(env *protocol.Env[smr.Message]) {
	if r.urgent && len(r.parts) > 0 {
		r.urgent = false
		r.Tempo.Busy()
		r.journal.Wrote(env.Append(acceptRecord{r.epoch.number, r.parts}), r.partsLast)
		r.parts, r.partsLast = nil, 0
	}
}

// promise writes down what was promised.
func (r *replica) promise(env *protocol.Env[smr.Message]) {
	r.journal.Promised(env.Append(r.epoch.promises()))
}

// active reports whether the replica takes part in its epoch.
func (r *replica) active() bool { return r.own >= 0 && !r.Over() && r.Admission.Votes() }

func (r *replica) gone() bool { return r.former(r.Cfg.ID) }

// former reports whether there is no place for a replica any more: one that was removed is needed
// until its epoch has ended.
func (r *replica) former(id protocol.ID) bool { return r.State.Removed(id) && r.epoch.index(id) < 0 }

// findOwn finds the replica's place in the epoch.
func (r *replica) findOwn(env *protocol.Env[smr.Message]) {
	before := r.own
	r.own = r.epoch.index(r.Cfg.ID)
	if r.own < 0 || before >= 0 {
		return
	}
	l := r.epoch.tracks[r.own]
	l.skips = l.end() // what is there was read from the disk
	if l.promised == 0 && l.lead == nil {
		r.leadFrom(env, l, l.end()+1)
	}
}

func (r *replica) status(s *smr.Status) {
	s.Ballot, s.Snapshot, s.LogSize = uint64(r.epoch.number), r.journal.Snapshot(), r.journal.Records()
	switch {
	case !r.active() || !r.Admission.Admitted():
		s.Role = "blank"
	case r.epoch.tracks[r.own].lead == nil:
		s.Role = "revoked"
	default:
		s.Role, s.Serves = "owner", true
	}
}
