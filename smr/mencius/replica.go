package mencius

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// Replica is an acceptor and learner in all tracks, the owner of one, and where clients ask.
type Replica struct {
	cfg       smr.ReplicaConfig
	state     *kit.State
	admission *kit.Admission
	desk      *kit.Desk
	tempo     kit.Tempo

	epoch   *epoch
	own     int // the replica's place in the epoch, or -1
	removed bool
	seen    smr.Slot // the last slot in which a command was seen
	above   smr.Slot // own commands get slots above it: clients have seen what comes of it

	journal   kit.Journal
	parts     []Part // what was accepted and is not in a record
	partsLast smr.Slot
	urgent    bool // parts has to be on disk before anything is said of it

	queue    []kit.Entry       // what clients want and has no slot yet
	mine     map[Pos]kit.Entry // what was proposed in the own track and is not applied
	waiting  bool              // for proposeTimer
	proposed time.Duration     // when it ran out last
	reads    kit.Rounds
	looked   int // beats since something was asked for reads
	early    map[wish]bool
	changes  []change // of the members, that are applied and come into force with the next epoch

	progress  kit.Progress
	transfers *kit.Transfers
}

// The timers of a replica.
type (
	beatTimer    struct{} // twice in a round trip: say and look who is there
	proposeTimer struct{} // what came up together is proposed
)

// NewReplica returns a replica.
func NewReplica(cfg smr.ReplicaConfig) (*Replica, error) {
	cfg, err := cfg.WithDefaults()
	if err != nil {
		return nil, fmt.Errorf("mencius: %w", err)
	}
	group := cfg.Members
	if cfg.Join {
		group = nil
	}
	r := &Replica{
		cfg: cfg, state: kit.NewState(cfg.Machine, group), own: -1, epoch: &epoch{},
		mine:  map[Pos]kit.Entry{},
		early: map[wish]bool{}, tempo: kit.NewTempo(cfg.RoundTrip),
	}
	r.admission = kit.NewAdmission(cfg, r.state)
	r.desk = kit.NewDesk(cfg, r.state)
	r.transfers = kit.NewTransfers(r.admission, &r.tempo)
	r.progress = kit.NewProgress(r.transfers)
	return r, nil
}

func (r *Replica) times(n float64) time.Duration { return time.Duration(n * float64(r.cfg.RoundTrip)) }

// Start takes over what is on the disk.
func (r *Replica) Start(env *protocol.Env[smr.Message], log []protocol.Record[smr.Message]) {
	blank := len(log) == 0
	if err := r.load(env, log, &blank); err != nil {
		r.removed = true
		env.Send(protocol.App, smr.Refused{Reason: fmt.Sprintf("the disk does not have what was written to it: %v", err)})
		return
	}
	r.admission.Start(env, blank)
	r.membersChanged(env)
	env.After(kit.UntilBeat(r.cfg, env.Now, r.times(beat)), beatTimer{})
}

func (r *Replica) load(env *protocol.Env[smr.Message], log []protocol.Record[smr.Message], blank *bool) error {
	slot, front, ok, err := r.state.Load(env, frontBytes)
	switch {
	case err != nil:
		return err
	case ok:
		*blank = false
		if r.epoch, err = readFront(slot, front); err != nil {
			return err
		}
		r.journal.Has(slot)
	case len(log) > 0:
		return fmt.Errorf("there are %d records and no snapshot", len(log))
	case !r.cfg.Join:
		r.epoch = newEpoch(1, 1, memberIDs(r.state))
		if err := r.journal.SaveWhole(env, r.state, r.epoch.front()); err != nil {
			return err
		}
	}
	for _, rec := range log {
		if err := r.loadRecord(rec); err != nil {
			return err
		}
	}
	r.seen = max(r.seen, r.state.Applied())
	r.above = r.seen
	for _, l := range r.epoch.tracks {
		done := r.epoch.upTo(l, slot)
		if l.base > done {
			return fmt.Errorf("track %d begins with position %d, the snapshot ends with %d", l.index, l.base+1, done)
		}
		// Of what is in the snapshot only that says what was decided: if it came from another
		// replica, votes in the log may be of lower ballots.
		l.cut(done)
		l.commit = done
		l.rematch()
	}
	return nil
}

func (r *Replica) loadRecord(rec protocol.Record[smr.Message]) error {
	switch m := rec.Msg.(type) {
	case PromiseRecord:
		r.journal.Promised(rec.Index)
		if m.Epoch != r.epoch.number {
			return nil // of a group that is not any more
		}
		for i, b := range m.Ballots {
			if i < len(r.epoch.tracks) {
				r.epoch.tracks[i].promised = max(r.epoch.tracks[i].promised, b)
			}
		}
	case AcceptRecord:
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
			last = max(last, r.epoch.slot(l, p.First+Pos(len(votes))-1))
		}
		r.journal.Found(rec.Index, last)
	default:
		return fmt.Errorf("record %d is a %T, which is none of the protocol's", rec.Index, rec.Msg)
	}
	return nil
}

// put takes votes for consecutive positions into memory.
func (r *Replica) put(l *track, first Pos, votes []Vote) {
	for i, v := range votes {
		p := first + Pos(i)
		l.set(p, v)
		if v.Entry.Kind != kit.NoOp {
			r.seen = max(r.seen, r.epoch.slot(l, p))
		}
	}
}

// accept takes votes of one ballot for consecutive positions into the log, in memory at once and on
// disk with all of the call.
func (r *Replica) accept(l *track, first Pos, votes []Vote) {
	r.put(l, first, votes)
	r.urgent = r.urgent || l.owner == r.cfg.ID || slices.ContainsFunc(votes, func(v Vote) bool { return !v.Skip })
	for len(votes) > 0 {
		items, n := pack(votes)
		r.parts = append(r.parts, Part{Track: l.index, Ballot: votes[0].Ballot, First: first, Items: items})
		first += Pos(n)
		r.partsLast = max(r.partsLast, r.epoch.slot(l, first-1))
		votes = votes[n:]
	}
}

// write puts what was accepted on disk. What others have skipped waits until there is something
// else: it is on their disks.
func (r *Replica) write(env *protocol.Env[smr.Message]) {
	if r.urgent && len(r.parts) > 0 {
		r.urgent = false
		r.tempo.Busy()
		r.journal.Wrote(env.Append(AcceptRecord{r.epoch.number, r.parts}), r.partsLast)
		r.parts, r.partsLast = nil, 0
	}
}

// promise writes down what was promised.
func (r *Replica) promise(env *protocol.Env[smr.Message]) {
	r.journal.Promised(env.Append(r.epoch.promises()))
}

// active tells whether the replica takes part in its epoch.
func (r *Replica) active() bool { return r.own >= 0 && !r.removed && r.admission.Votes() }

// membersChanged says who the members are, at the start and when they have changed.
func (r *Replica) membersChanged(env *protocol.Env[smr.Message]) {
	r.admission.MembersChanged(env)
	r.findOwn(env)
}

// findOwn finds the replica's place in the epoch, and ends its part if there is none for it any
// more.
func (r *Replica) findOwn(env *protocol.Env[smr.Message]) {
	before := r.own
	r.own = r.epoch.index(r.cfg.ID)
	if r.own < 0 {
		if r.state.Removed(r.cfg.ID) {
			r.onRemoved(env)
		}
		return
	}
	if before >= 0 {
		return
	}
	l := r.epoch.tracks[r.own]
	l.skips = l.end() // what is there was read from the disk
	if l.promised == 0 && l.lead == nil {
		r.leadFrom(env, l, l.end()+1)
	}
}

func (r *Replica) onRemoved(env *protocol.Env[smr.Message]) {
	if r.removed || r.admission.Refused() {
		return
	}
	r.removed = true
	env.Send(protocol.App, smr.RefusedAsRemoved(r.cfg.ID))
}

func (r *Replica) status(id smr.CallID) smr.Status {
	s := smr.Status{
		ID: id, Replica: r.cfg.ID, Role: "owner", Ballot: uint64(r.epoch.number),
		Committed: r.state.Applied(), Applied: r.state.Applied(), Snapshot: r.journal.Snapshot(),
		LogSize: r.journal.Records(), Sessions: r.state.Sessions(), Members: r.state.Members(),
	}
	switch {
	case r.admission.Refused():
		s.Role = "refused"
	case r.removed:
		s.Role = "removed"
	case !r.active() || !r.admission.Admitted():
		s.Role = "blank"
	case r.epoch.tracks[r.own].lead == nil:
		s.Role = "revoked"
	default:
		s.Serves = true
	}
	return s
}
