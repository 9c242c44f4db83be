package raft

import (
	"fmt"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// Snapshots are those of package smr with the library's part in front: the term of the slot's entry
// and the voters.

type front struct {
	term       uint64
	voters     []uint64
	stateBytes uint64 // 0 if the size is not known yet, as of a state that is written a part at a time
}

var frontLayout = wirefmt.NewLayout("raft: snapshot", func(c *wirefmt.Coder, f *front) {
	wirefmt.Uint(c, &f.term)
	wirefmt.List(c, &f.voters, 1, wirefmt.Uint)
	wirefmt.Uint(c, &f.stateBytes)
})

func wrapSnapshot(meta *raftpb.SnapshotMetadata, state []byte) []byte {
	f := front{meta.GetTerm(), meta.GetConfState().GetVoters(), uint64(len(state))}
	return append(frontLayout.Encode(f), state...)
}

func readFront(at smr.Slot, b []byte) (*raftpb.SnapshotMetadata, error) {
	f, err := frontLayout.Decode(b)
	if err != nil {
		return nil, fmt.Errorf("at slot %d: %w", at, err)
	}
	return &raftpb.SnapshotMetadata{
		Index: new(uint64(at)), Term: new(f.term), ConfState: &raftpb.ConfState{Voters: f.voters},
	}, nil
}

// recover restores what the disk holds, and returns the index up to which the state has everything,
// and whether that is nothing.
func (r *replica) recover(
	env *protocol.Env[smr.Message], log []protocol.Record[smr.Message],
) (applied uint64, blank bool, err error) {
	found, err := r.State.Open(env, r.Cfg, log, frontLayout.Length, func() error { return r.begin(env) })
	if err != nil {
		return 0, false, err
	}
	st := r.core.log
	if found.Snapshot {
		meta, err := readFront(found.Slot, found.Front)
		if err != nil {
			return 0, false, err
		}
		st.install(&raftpb.Snapshot{Metadata: meta})
		r.lastSnapshot = found.Slot
	}
	if err := r.core.replay(log, st.prior.index); err != nil {
		return 0, false, err
	}
	return st.prior.index, found.Blank, nil
}

// begin makes the beginning of a new group, after an entry that all members have: the group itself.
// It is kept as a snapshot, so that the replica knows with whom it began, whatever its
// configuration says later.
func (r *replica) begin(env *protocol.Env[smr.Message]) error {
	r.State.Skip(1)
	state, err := r.State.Snapshot()
	if err != nil {
		return err
	}
	meta := &raftpb.SnapshotMetadata{Index: new(uint64(1)), Term: new(uint64(1)),
		ConfState: &raftpb.ConfState{Voters: r.voters()}}
	r.State.Save(env, kit.Snapshot{Slot: 1, Data: wrapSnapshot(meta, state)})
	r.core.log.install(&raftpb.Snapshot{Metadata: meta})
	r.core.log.hard = hardState{term: 1}
	r.lastSnapshot = 1
	return nil
}

// maybeSnapshot makes a snapshot when enough was executed, or the library needs one for a replica
// that has nothing.
func (r *replica) maybeSnapshot(env *protocol.Env[smr.Message]) {
	at := r.State.Applied()
	last := r.lastSnapshot
	due := at >= last+smr.Slot(r.Cfg.SnapshotEvery) || r.State.Fullness(r.Cfg.LogBytes) >= 1
	if r.State.Saving() {
		return
	}
	wanted := r.core.log.wanted
	r.core.log.wanted = false
	if !due && !wanted || at <= r.lastSnapshot || uint64(at) <= r.core.log.prior.index && !wanted {
		return
	}
	term, err := r.core.log.Term(uint64(at))
	if err != nil {
		return // not yet in the storage; the next call tries again
	}
	meta := &raftpb.SnapshotMetadata{Index: new(uint64(at)), Term: &term, ConfState: &raftpb.ConfState{Voters: r.voters()}}
	r.saving = meta
	done, err := r.State.BeginSave(env, r.Cfg, at, wrapSnapshot(meta, nil))
	r.onSaved(env, done, err)
}

// onSaved cuts the log if a snapshot is on disk.
func (r *replica) onSaved(env *protocol.Env[smr.Message], done bool, err error) {
	switch {
	case err != nil:
		r.Fail(env, err)
	case done:
		last := r.lastSnapshot
		r.core.log.keep(&raftpb.Snapshot{Metadata: r.saving})
		// The members may have changed while it was written.
		r.core.log.changed = !slices.Equal(r.saving.GetConfState().GetVoters(), r.voters())
		r.lastSnapshot = r.State.Saved()
		r.truncate(env, uint64(r.lastSnapshot-last)/4)
	}
}

// truncate forgets what the snapshot covers, but for a part that a replica that lags a little still
// gets from the log.
func (r *replica) truncate(env *protocol.Env[smr.Message], slack uint64) {
	upTo := uint64(r.State.HeldCut(r.Transfers, r.lastSnapshot-smr.Slot(slack), r.Cfg.LogBytes))
	first := env.Append(record{hard: r.core.hard}) // the newest state stays on record
	if rec, ok := r.core.log.compact(max(upTo, r.core.log.prior.index)); ok {
		first = min(first, rec)
	}
	env.Truncate(first)
}

func (r *replica) voters() []uint64 {
	var ids []uint64
	for _, m := range r.State.Members() {
		ids = append(ids, uint64(m.ID))
	}
	return ids
}

// sendSnapshot begins to send the state as it is, in chunks, in place of the library's one message
// with the newest snapshot.
func (r *replica) sendSnapshot(env *protocol.Env[smr.Message], m *raftpb.Message) bool {
	if m.GetType() != raftpb.MsgSnap {
		return false
	}
	to, at := protocol.ID(m.GetTo()), r.State.Applied()
	term, err := r.core.log.Term(uint64(at))
	if err != nil {
		r.giveUpTransfer(to) // not yet in the storage
		return true
	}
	meta := &raftpb.SnapshotMetadata{Index: new(uint64(at)), Term: &term, ConfState: &raftpb.ConfState{Voters: r.voters()}}
	transfer, err := r.State.SendState(at, wrapSnapshot(meta, nil))
	if err != nil {
		r.giveUpTransfer(to)
		return true
	}
	r.Transfers.Begin(env, to, transfer)
	return true
}

// onTransferFailed has the library begin another transfer.
func (r *replica) onTransferFailed(env *protocol.Env[smr.Message], to protocol.ID) {
	r.giveUpTransfer(to)
	r.core.flush(env)
}

// giveUpTransfer has the library begin another one.
func (r *replica) giveUpTransfer(to protocol.ID) {
	r.Transfers.Drop(to)
	r.core.node.ReportSnapshot(uint64(to), raft.SnapshotFailure)
}

// continueTransfers sends what got lost again. A transfer that does not come to an end begins anew.
func (r *replica) continueTransfers(env *protocol.Env[smr.Message]) {
	for _, id := range r.followers() {
		o := r.Transfers.Of(id)
		if o == nil {
			continue
		}
		if o.Stalled(env.Now) > r.Tempo.Times(20) {
			r.giveUpTransfer(id)
			continue
		}
		r.Transfers.Continue(env, id)
	}
	r.core.flush(env)
}

// onTransfer takes what replicas say of snapshots.
func (r *replica) onTransfer(env *protocol.Env[smr.Message], from protocol.ID, letter kit.Letter) {
	switch msg := letter.Msg.(type) {
	case kit.SnapshotChunk:
		r.onChunk(env, from, msg)
	case kit.SnapshotWanted:
		r.onWanted(env, from, letter.Disk, msg)
	}
}

func (r *replica) onWanted(
	env *protocol.Env[smr.Message], from protocol.ID, disk kit.Incarnation, msg kit.SnapshotWanted,
) {
	if r.Transfers.Of(from) == nil || !r.core.leads() || r.stranger(from, disk) {
		return
	}
	r.heard[from] = env.Now
	if r.Transfers.OnWanted(env, from, msg) != nil {
		r.core.node.ReportSnapshot(uint64(from), raft.SnapshotFinish)
		r.core.flush(env)
	}
}

// onChunk collects a snapshot, and gives it to the library when it is whole.
func (r *replica) onChunk(env *protocol.Env[smr.Message], from protocol.ID, c kit.SnapshotChunk) {
	if !r.Admission.Admitted() && !r.Cfg.Join || r.core.leader() != from {
		return
	}
	r.hears(env)
	answer, whole, err := r.State.Take(env, c, r.State.Applied(), frontLayout.Length)
	if err != nil {
		r.Fail(env, err)
		return
	}
	if whole != nil {
		meta, err := readFront(whole.Slot, whole.Front)
		if err != nil || meta.GetTerm() > r.core.term() {
			return // no correct leader sends it
		}
		r.learns(meta)
		r.arrived = whole
		r.core.step(env, &raftpb.Message{
			Type: raftpb.MsgSnap.Enum(), From: new(uint64(from)), To: new(uint64(r.Cfg.ID)), Term: new(r.core.term()),
			Snapshot: &raftpb.Snapshot{Metadata: meta},
		})
		r.arrived = nil
		if r.Over() {
			return
		}
	}
	r.Admission.Send(env, from, answer) // after what was installed is durable
}

// install replaces the state by the snapshot that has arrived.
func (r *replica) install(env *protocol.Env[smr.Message], s *raftpb.Snapshot) bool {
	if r.arrived == nil || uint64(r.arrived.Slot) != s.GetMetadata().GetIndex() {
		panic("raft: the library installs a snapshot that it was not given")
	}
	if err := r.State.Install(env, r.arrived); err != nil {
		r.Fail(env, err)
		return false
	}
	r.lastSnapshot = r.arrived.Slot
	r.MembersChanged(env)
	return true
}
