package fastpaxos

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// Replica is an acceptor, learner and possible coordinator.
type Replica struct {
	cfg       smr.ReplicaConfig
	state     *kit.State
	admission *kit.Admission
	desk      *kit.Desk
	tempo     kit.Tempo
	removed   bool

	promised Era // nothing below it is accepted any more
	base     smr.Slot
	cells    []cell // cells[i] is slot base+1+i
	top      smr.Slot
	journal  kit.Journal
	pending  []Vote // what this call has accepted

	open    smr.Slot // slots from it on are open for fast votes of the promised era; 0: none
	fastTop smr.Slot // the last slot of the replica's votes in the promised era's fast round
	openFor uint64   // the generation of members to whom they are
	silent  int      // beats since the coordinator was heard
	rest    int      // beats, until it may try to lead
	tries   int      // to lead, since something was decided
	above   Era      // the next attempt is in an era above it
	ours    map[wish]ownVote
	// oursBytes are those of the commands in ours.
	oursBytes int
	voted     []Placed // in this call, for the coordinator
	ballots   []ballotFor
	progress  kit.Progress
	transfers *kit.Transfers

	luck  luck
	cand  *candidacy
	lead  *leading // Invariant: of the promised era
	carry *leading // what this replica led before it promised itself the next era, for that
}

// cell is what a replica knows of one slot.
type cell struct {
	vote    Vote // Entry.Kind 0: none
	decided bool
	value   kit.Entry
}

// decide notes what is chosen. If that is what the replica voted for, it is in memory once, and not
// as two messages' bytes until the log is cut.
func (c *cell) decide(e kit.Entry) {
	if e.Equal(c.vote.Entry) {
		e = c.vote.Entry
	}
	c.decided, c.value = true, e
}

type ballotFor struct {
	client protocol.ID
	Ballot
}

type beatTimer struct{} // twice in a round trip: say and look who is there

// window is how far above the last applied slot there may be votes.
const window = 1 << 13

// NewReplica returns a replica.
func NewReplica(cfg smr.ReplicaConfig) (*Replica, error) {
	cfg, err := cfg.WithDefaults()
	if err != nil {
		return nil, fmt.Errorf("fastpaxos: %w", err)
	}
	group := cfg.Members
	if cfg.Join {
		group = nil
	}
	r := &Replica{
		cfg: cfg, state: kit.NewState(cfg.Machine, group), ours: map[wish]ownVote{},
		tempo: kit.NewTempo(cfg.RoundTrip),
	}
	r.admission = kit.NewAdmission(cfg, r.state)
	r.desk = kit.NewDesk(cfg, r.state)
	r.transfers = kit.NewTransfers(r.admission, &r.tempo)
	r.progress = kit.NewProgress(r.transfers)
	return r, nil
}

func (r *Replica) times(n float64) time.Duration { return time.Duration(n * float64(r.cfg.RoundTrip)) }

func (r *Replica) members() []protocol.ID {
	var ids []protocol.ID
	for _, m := range r.state.Members() {
		ids = append(ids, m.ID)
	}
	return ids
}

func (r *Replica) fastQuorum() int {
	return quorum.Fast(len(r.state.Members()))
}

func (r *Replica) head(e Era) Head {
	return Head{Era: e, Generation: r.state.Generation()}
}

// Start takes over what is on the disk.
func (r *Replica) Start(env *protocol.Env[smr.Message], log []protocol.Record[smr.Message]) {
	blank := len(log) == 0
	if err := r.load(env, log, &blank); err != nil {
		r.fail(env, fmt.Errorf("the disk does not have what was written to it: %w", err))
		return
	}
	r.admission.Start(env, blank)
	r.membersChanged(env)
	env.After(kit.UntilBeat(r.cfg, env.Now, r.times(beat)), beatTimer{})
}

func (r *Replica) load(env *protocol.Env[smr.Message], log []protocol.Record[smr.Message], blank *bool) error {
	slot, _, ok, err := r.state.Load(env, nil)
	switch {
	case err != nil:
		return err
	case ok:
		*blank = false
		r.journal.Has(slot)
	case len(log) > 0:
		return fmt.Errorf("there are %d records and no snapshot", len(log))
	case !r.cfg.Join:
		if err := r.journal.SaveWhole(env, r.state, nil); err != nil {
			return err
		}
	}
	r.base, r.top = slot, slot
	defer r.findTop()
	for _, rec := range log {
		switch m := rec.Msg.(type) {
		case PromiseRecord:
			r.promised = max(r.promised, m.Era)
			r.journal.Promised(rec.Index)
		case VoteRecord:
			last := smr.Slot(0)
			for _, v := range m.Votes {
				if v.Slot > r.top+4*window {
					return fmt.Errorf("record %d has a vote for slot %d, the snapshot is of slot %d", rec.Index, v.Slot, slot)
				}
				r.promised = max(r.promised, v.Era)
				r.put(v)
				last = max(last, v.Slot)
			}
			r.journal.Found(rec.Index, last)
		default:
			return fmt.Errorf("record %d is a %T, which is none of the protocol's", rec.Index, rec.Msg)
		}
	}
	return nil
}

// findTop finds the last vote in the promised era's fast round after a restart.
func (r *Replica) findTop() {
	for _, c := range r.cells {
		if v := c.vote; v.Entry.Kind != 0 && v.Era == r.promised && !v.Classic {
			r.fastTop = max(r.fastTop, v.Slot)
		}
	}
}

// cell returns what is known of a slot above base, which is not far above what was applied.
func (r *Replica) cell(s smr.Slot) *cell {
	for smr.Slot(len(r.cells)) < s-r.base {
		r.cells = append(r.cells, cell{})
	}
	return &r.cells[s-r.base-1]
}

// near tells whether a slot is one that the replica keeps anything of.
func (r *Replica) near(s smr.Slot) bool {
	return s > r.state.Applied() && s <= r.state.Applied()+2*window
}

// put takes a vote into memory.
func (r *Replica) put(v Vote) {
	if v.Slot > r.base {
		r.cell(v.Slot).vote = v
		r.top = max(r.top, v.Slot)
	}
}

// accept takes a vote into the log, in memory at once and on disk with all of the call.
func (r *Replica) accept(v Vote) {
	r.put(v)
	r.pending = append(r.pending, v)
}

// write puts what the call has accepted on disk.
func (r *Replica) write(env *protocol.Env[smr.Message]) {
	if len(r.pending) == 0 {
		return
	}
	r.tempo.Busy()
	last := smr.Slot(0)
	for _, v := range r.pending {
		last = max(last, v.Slot)
	}
	r.journal.Wrote(env.Append(VoteRecord{r.pending}), last)
	r.pending = nil
}

// adopt promises a higher era.
func (r *Replica) adopt(env *protocol.Env[smr.Message], e Era) {
	r.promised, r.open, r.fastTop, r.silent = e, 0, 0, 0
	r.rest = max(r.rest, courtesy) // whoever asked for it has to have the time to lead
	r.forgetOurs()
	switch {
	case r.cand != nil && r.cand.era == e:
		r.carry, r.lead = r.lead, nil // until phase 1 is done it proposes nothing
	case r.cand != nil && r.cand.era > e:
		// The own attempt goes on: whoever promises it is lost to the other one. If both ended, two
		// replicas that stand at the same beats would keep each other from leading for ever.
		r.stopLeading()
	default:
		r.abandon()
		r.stopLeading()
	}
	r.journal.Promised(env.Append(PromiseRecord{e}))
}

// active tells whether the replica takes part.
func (r *Replica) active() bool {
	if r.removed || !r.admission.Votes() || r.state.Applied() == 0 && r.cfg.Join {
		return false
	}
	_, member := r.state.Member(r.cfg.ID)
	return member
}

// membersChanged says who the members are, at the start and when they have changed.
func (r *Replica) membersChanged(env *protocol.Env[smr.Message]) {
	r.admission.MembersChanged(env)
	if r.state.Removed(r.cfg.ID) {
		r.onRemoved(env)
	}
}

func (r *Replica) onRemoved(env *protocol.Env[smr.Message]) {
	if !r.removed && !r.admission.Refused() {
		r.end(env, smr.RefusedAsRemoved(r.cfg.ID))
	}
}

// fail ends a replica whose state cannot be trusted or kept.
func (r *Replica) fail(env *protocol.Env[smr.Message], err error) {
	r.end(env, smr.Refused{Reason: err.Error()})
}

func (r *Replica) end(env *protocol.Env[smr.Message], why smr.Refused) {
	r.removed = true
	env.Send(protocol.App, why)
}

func (r *Replica) status(id smr.CallID) smr.Status {
	s := smr.Status{
		ID: id, Replica: r.cfg.ID, Role: "acceptor", Ballot: uint64(r.promised), Committed: r.state.Applied(),
		Applied:  r.state.Applied(),
		Snapshot: r.journal.Snapshot(), LogSize: r.journal.Records(), Sessions: r.state.Sessions(),
		Members: r.state.Members(),
	}
	if r.silent < patience {
		s.Leader = r.promised.coordinator()
	}
	switch {
	case r.admission.Refused():
		s.Role = "refused"
	case r.removed:
		s.Role = "removed"
	case !r.active() || !r.admission.Admitted():
		s.Role = "blank"
	case r.lead != nil:
		s.Role = "leader"
	}
	return s
}
