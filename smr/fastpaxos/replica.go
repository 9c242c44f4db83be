package fastpaxos

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// replica is an acceptor, learner and possible coordinator.
type replica struct {
	kit.Replica

	promised kit.Ballot // nothing below it is accepted any more
	base     smr.Slot
	cells    []cell // cells[i] is slot base+1+i
	top      smr.Slot
	journal  kit.Journal
	pending  []vote // what this call has accepted
	against  []item // what it has learned to be decided, where the vote is another or none
	disk     kit.Decisions

	open    smr.Slot   // slots from it on are open for fast votes of the promised era; 0: none
	fastTop smr.Slot   // the last slot of the replica's votes in the promised era's fast round
	openFor uint64     // the generation of members to whom they are
	silent  int        // beats since the coordinator was heard
	told    smr.Slot   // from where on votes were told last to who has the promise
	rest    int        // beats, until it may try to lead
	tries   int        // to lead, since something was decided
	above   kit.Ballot // the next attempt is in an era above it
	ours    map[wish]ownVote
	// oursBytes are those of the commands in ours.
	oursBytes int
	voted     []item // in this call, for the coordinator
	casts     []castFor
	progress  kit.Progress

	luck  luck
	cand  *candidacy
	lead  *leading // Invariant: of the promised era
	carry *leading // what this replica led before it promised itself the next era, for that
}

// cell is what a replica knows of one slot.
type cell struct {
	vote    vote // Entry.Kind 0: none
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

// learn notes what is decided in a slot. Where it is not what the replica has voted for it goes on
// disk, so that the disk tells what was executed: see applyDoubtful.
func (r *replica) learn(s smr.Slot, e kit.Entry) {
	c := r.cell(s)
	if !c.decided && !e.Equal(c.vote.Entry) {
		r.against = append(r.against, item{s, e})
	}
	c.decide(e)
}

type castFor struct {
	client protocol.ID
	cast
}

type beatTimer struct{} // twice in a round trip: say and look who is there

// window is how far above the last applied slot there may be votes.
const window = 1 << 13

// newReplica returns a replica.
func newReplica(cfg smr.ReplicaConfig) (*replica, error) {
	base, err := kit.NewReplica("fastpaxos", cfg)
	if err != nil {
		return nil, err
	}
	r := &replica{Replica: base, ours: map[wish]ownVote{}, progress: kit.NewProgress(base.Transfers)}
	r.State.KeepApplied()
	r.journal.Follow(&r.Replica, r.cut)
	r.Follow(kit.Rules{
		Load: r.load, Begin: r.onBegin,
		Client: r.onClient, Other: r.onOther, Former: r.State.Removed, Peer: r.onPeer, Timer: r.onTimer, Flush: r.flush,
		Installed: r.onInstalled, Saved: r.journal.Saved, Status: r.status,
		Doubtful: r.applyDoubtful,
		Lull:     kit.LullRules{Idle: r.idle, Beat: beatTimer{}, Patience: r.lullPatience, Heard: r.heardDrowsy},
	})
	return r, nil
}

func (r *replica) fastQuorum() int {
	return quorum.Fast(len(r.State.Members()))
}

func (r *replica) head(e kit.Ballot) head {
	return head{Era: e, Generation: r.State.Generation()}
}

func (r *replica) onBegin(env *protocol.Env[smr.Message]) {
	env.After(kit.UntilBeat(r.Cfg, env.Now, r.Times(beatEvery)), beatTimer{})
}

func (r *replica) load(
	env *protocol.Env[smr.Message], log []protocol.Record[smr.Message],
) (blank bool, err error) {
	found, err := r.State.Open(env, r.Cfg, log, nil, nil)
	if err != nil {
		return false, err
	}
	slot := found.Slot
	r.journal.Has(slot)
	r.base, r.top = slot, slot
	defer r.findTop()
	for _, rec := range log {
		switch m := rec.Msg.(type) {
		case promiseRecord:
			r.promised = max(r.promised, m.Era)
			r.journal.Promised(rec.Index)
		case voteRecord:
			last := smr.Slot(0)
			for _, v := range m.Votes {
				if v.Slot > r.top+4*window {
					return false, fmt.Errorf("record %d has a vote for slot %d, the snapshot is of slot %d", rec.Index, v.Slot,
						slot)
				}
				r.promised = max(r.promised, v.Era)
				r.put(v)
				last = max(last, v.Slot)
			}
			r.journal.Found(rec.Index, last)
		case decidedRecord:
			last := smr.Slot(0)
			for _, p := range m.Items {
				if p.Slot > r.top+4*window {
					return false, fmt.Errorf("record %d has a decision on slot %d, the snapshot is of slot %d", rec.Index, p.Slot,
						slot)
				}
				if p.Slot > r.base {
					r.cell(p.Slot).decide(p.Entry)
					r.top = max(r.top, p.Slot)
				}
				last = max(last, p.Slot)
			}
			r.journal.Found(rec.Index, last)
		default:
			return false, fmt.Errorf("record %d is a %T, which is none of the protocol's", rec.Index, rec.Msg)
		}
	}
	r.disk.Load(env, found.Blank)
	return found.Blank, nil
}

// findTop finds the last vote in the promised era's fast round after a restart.
func (r *replica) findTop() {
	for _, c := range r.cells {
		if v := c.vote; v.Entry.Kind != 0 && v.Era == r.promised && !v.Classic {
			r.fastTop = max(r.fastTop, v.Slot)
		}
	}
}

// cell returns what is known of a slot above base, which is not far above what was applied.
func (r *replica) cell(s smr.Slot) *cell {
	for smr.Slot(len(r.cells)) < s-r.base {
		r.cells = append(r.cells, cell{})
	}
	return &r.cells[s-r.base-1]
}

// near reports whether a slot is one that the replica keeps anything of.
func (r *replica) near(s smr.Slot) bool {
	return s > r.State.Applied() && s <= r.State.Applied()+2*window
}

// put takes a vote into memory.
func (r *replica) put(v vote) {
	if v.Slot > r.base {
		r.cell(v.Slot).vote = v
		r.top = max(r.top, v.Slot)
	}
}

// accept takes a vote into the log, in memory at once and on disk with all of the call.
func (r *replica) accept(v vote) {
	r.put(v)
	r.pending = append(r.pending, v)
}

// write puts what the call has accepted on disk, and what it has learned that differs.
func (r *replica) write(env *protocol.Env[smr.Message]) {
	if len(r.pending) > 0 {
		r.Tempo.Busy()
		last := smr.Slot(0)
		for _, v := range r.pending {
			last = max(last, v.Slot)
		}
		r.journal.Wrote(env.Append(voteRecord{r.pending}), last)
		r.pending = nil
	}
	if len(r.against) > 0 {
		last := smr.Slot(0)
		for _, p := range r.against {
			last = max(last, p.Slot)
		}
		r.journal.Wrote(env.Append(decidedRecord{r.against}), last)
		r.against = nil
	}
}

// raise promises a higher era. No slot is open in it yet: a fast vote before its coordinator has
// done phase 1 could be for a slot in which something else was chosen.
func (r *replica) raise(env *protocol.Env[smr.Message], e kit.Ballot) {
	r.promised, r.open, r.fastTop, r.silent, r.told = e, 0, 0, 0, 0
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
	r.journal.Promised(env.Append(promiseRecord{e}))
}

// active reports whether the replica takes part.
func (r *replica) active() bool {
	if r.Over() || !r.Admission.Votes() || r.State.Applied() == 0 && r.Cfg.Join {
		return false
	}
	_, member := r.State.Member(r.Cfg.ID)
	return member
}

func (r *replica) status(s *smr.Status) {
	s.Role, s.Ballot, s.Snapshot, s.LogSize = "acceptor", uint64(r.promised), r.journal.Snapshot(), r.journal.Records()
	if r.silent < patience {
		s.Leader = r.promised.Owner()
	}
	switch {
	case !r.active() || !r.Admission.Admitted():
		s.Role = "blank"
	case r.lead != nil:
		s.Role = "leader"
	}
}

// Check returns what is wrong with the replica, or nil.
func (r *replica) Check() error {
	if r.Over() {
		return nil
	}
	applied := r.State.Applied()
	switch {
	case r.base > r.journal.Snapshot() || r.journal.Snapshot() > applied:
		return fmt.Errorf("fastpaxos: base %d <= snapshot %d <= applied %d does not hold", r.base, r.journal.Snapshot(),
			applied)
	case r.lead != nil && (r.promised != r.lead.era || r.promised.Owner() != r.Cfg.ID):
		return fmt.Errorf("fastpaxos: leads in the era %v, and has promised %v", r.lead.era, r.promised)
	case r.lead != nil && r.lead.classic && r.open != 0:
		return fmt.Errorf("fastpaxos: slots from %d on are open in a classic era", r.open)
	}
	for i, c := range r.cells {
		if c.vote.Era > r.promised {
			return fmt.Errorf("fastpaxos: the vote in slot %d is of era %v, above the promised %v", uint64(r.base)+1+uint64(i),
				c.vote.Era, r.promised)
		}
	}
	return r.State.Check()
}

// idle reports whether the replica has nothing to do: there is a coordinator, slots are open, and
// nothing was voted for that is not executed.
func (r *replica) idle() (mark uint64, ok bool) {
	applied := r.State.Applied()
	if !r.active() || r.cand != nil || r.carry != nil || r.open == 0 || r.top > applied || len(r.ours) > 0 {
		return 0, false
	}
	if l := r.lead; l == nil && r.coordinator().ID == 0 || l != nil && (l.classic || l.changing != 0 || l.end > applied ||
		len(l.wants)+len(l.suggest)+len(l.proposed) > 0 || l.reads.Waiting()) {
		return 0, false
	}
	return kit.MarkOf(uint64(r.promised), uint64(r.open), uint64(applied)), true
}

// heardDrowsy takes the coordinator's word that it is there.
func (r *replica) heardDrowsy(from protocol.ID) {
	if from == r.promised.Owner() {
		r.silent = 0
	}
}

func (r *replica) lullPatience() time.Duration { return r.Tempo.Times(patience * beatEvery) }
