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

func wrapSnapshot(meta *raftpb.SnapshotMetadata, state []byte) []byte {
	var w wirefmt.Writer
	w.Uint(meta.GetTerm())
	w.List(len(meta.GetConfState().GetVoters()))
	for _, v := range meta.GetConfState().GetVoters() {
		w.Uint(v)
	}
	w.Bytes(state) // none if the state follows: its size is not known when it is written a part at a time
	return w.Buf
}

// frontBytes tells how long what is in front of the state is, its size included.
func frontBytes(begin []byte) (sizeBytes int, ok bool) {
	r := wirefmt.NewReader(begin)
	r.Uint()
	for range r.List(1) {
		r.Uint()
	}
	r.Uint()
	ok = r.Err() == nil
	return len(begin) - len(r.Rest()), ok
}

func readFront(at smr.Slot, front []byte) (*raftpb.SnapshotMetadata, error) {
	r := wirefmt.NewReader(front)
	meta := &raftpb.SnapshotMetadata{Index: new(uint64(at)), Term: new(r.Uint()), ConfState: &raftpb.ConfState{}}
	for range r.List(1) {
		meta.ConfState.Voters = append(meta.ConfState.Voters, r.Uint())
	}
	r.Uint()
	if err := r.Close(); err != nil {
		return nil, fmt.Errorf("raft: snapshot at slot %d: %w", at, err)
	}
	return meta, nil
}

// recover restores what the disk holds, and returns the index up to which the state has everything.
func (r *replica) recover(
	env *protocol.Env[smr.Message], log []protocol.Record[smr.Message],
) (applied uint64, err error) {
	slot, front, ok, err := r.state.Load(env, frontBytes)
	if err != nil {
		return 0, err
	}
	st := r.core.log
	switch {
	case ok:
		meta, err := readFront(slot, front)
		if err != nil {
			return 0, err
		}
		st.install(&raftpb.Snapshot{Metadata: meta})
		r.lastSnapshot = slot
	case !r.cfg.Join && len(log) > 0:
		return 0, fmt.Errorf("raft: the disk has a log of %d records and no snapshot of what was before it: a part of it "+
			"is lost", len(log))
	case !r.cfg.Join:
		if err := r.begin(env); err != nil {
			return 0, err
		}
	}
	for _, rec := range log {
		m, ok := rec.Msg.(record)
		if !ok {
			return 0, fmt.Errorf("raft: record %d of the log is a %T", rec.Index, rec.Msg)
		}
		if err := st.replay(rec.Index, m); err != nil {
			return 0, err
		}
	}
	if st.hard.term < st.prior.term {
		st.hard = hardState{term: st.prior.term}
	}
	st.hard.commit = min(max(st.hard.commit, st.prior.index), st.last())
	r.core.hard, r.core.last = st.hard, st.last()
	r.admission.Start(env, len(log) == 0 && !ok)
	return st.prior.index, nil
}

// begin makes the beginning of a new group, after an entry that all members have: the group itself.
// It is kept as a snapshot, so that the replica knows with whom it began, whatever its
// configuration says later.
func (r *replica) begin(env *protocol.Env[smr.Message]) error {
	r.state.Skip(1)
	state, err := r.state.Snapshot()
	if err != nil {
		return err
	}
	meta := &raftpb.SnapshotMetadata{Index: new(uint64(1)), Term: new(uint64(1)),
		ConfState: &raftpb.ConfState{Voters: r.voters()}}
	r.state.Save(env, kit.Snapshot{Slot: 1, Data: wrapSnapshot(meta, state)})
	r.core.log.install(&raftpb.Snapshot{Metadata: meta})
	r.core.log.hard = hardState{term: 1}
	r.lastSnapshot = 1
	return nil
}

// maybeSnapshot makes a snapshot when enough was executed, or the library needs one for a replica
// that has nothing.
func (r *replica) maybeSnapshot(env *protocol.Env[smr.Message]) {
	at := r.state.Applied()
	last := r.lastSnapshot
	due := at >= last+smr.Slot(r.cfg.SnapshotEvery) || r.state.Fullness(r.cfg.LogBytes) >= 1
	if r.state.Saving() {
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
	done, err := r.state.BeginSave(env, r.cfg, at, wrapSnapshot(meta, nil))
	r.saved(env, done, err)
}

// saved cuts the log if a snapshot is on disk.
func (r *replica) saved(env *protocol.Env[smr.Message], done bool, err error) {
	switch {
	case err != nil:
		r.halt(env, err.Error())
	case done:
		last := r.lastSnapshot
		r.core.log.keep(&raftpb.Snapshot{Metadata: r.saving})
		// The members may have changed while it was written.
		r.core.log.changed = !slices.Equal(r.saving.GetConfState().GetVoters(), r.voters())
		r.lastSnapshot = r.state.Saved()
		r.truncate(env, uint64(r.lastSnapshot-last)/4)
	}
}

// truncate forgets what the snapshot covers, but for a part that a replica that lags a little still
// gets from the log.
func (r *replica) truncate(env *protocol.Env[smr.Message], slack uint64) {
	upTo := uint64(r.state.HeldCut(r.transfers, r.lastSnapshot-smr.Slot(slack), r.cfg.LogBytes))
	first := env.Append(record{hard: r.core.hard}) // the newest state stays on record
	if rec, ok := r.core.log.compact(max(upTo, r.core.log.prior.index)); ok {
		first = min(first, rec)
	}
	env.Truncate(first)
}

func (r *replica) voters() []uint64 {
	var ids []uint64
	for _, m := range r.state.Members() {
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
	to, at := protocol.ID(m.GetTo()), r.state.Applied()
	term, err := r.core.log.Term(uint64(at))
	if err != nil {
		r.giveUpTransfer(to) // not yet in the storage
		return true
	}
	meta := &raftpb.SnapshotMetadata{Index: new(uint64(at)), Term: &term, ConfState: &raftpb.ConfState{Voters: r.voters()}}
	transfer, err := r.state.SendState(at, wrapSnapshot(meta, nil))
	if err != nil {
		r.giveUpTransfer(to)
		return true
	}
	r.transfers.Begin(env, to, transfer)
	return true
}

// onTransferTimer goes on with what is to be sent of a snapshot.
func (r *replica) onTransferTimer(env *protocol.Env[smr.Message], to protocol.ID) {
	if r.transfers.OnTimer(env, to) {
		r.giveUpTransfer(to)
		r.core.flush(env)
	}
}

// giveUpTransfer has the library begin another one.
func (r *replica) giveUpTransfer(to protocol.ID) {
	r.transfers.Drop(to)
	r.core.node.ReportSnapshot(uint64(to), raft.SnapshotFailure)
}

// continueTransfers sends what got lost again. A transfer that does not come to an end begins anew.
func (r *replica) continueTransfers(env *protocol.Env[smr.Message]) {
	for _, id := range r.followers() {
		o := r.transfers.Of(id)
		if o == nil {
			continue
		}
		if o.Stalled(env.Now) > r.tempo.Times(20) {
			r.giveUpTransfer(id)
			continue
		}
		r.transfers.Continue(env, id)
	}
	r.core.flush(env)
}

func (r *replica) onWanted(
	env *protocol.Env[smr.Message], from protocol.ID, disk kit.Incarnation, msg kit.SnapshotWanted,
) {
	if r.transfers.Of(from) == nil || !r.core.leads() || !r.admission.Genuine(env, from, disk) || r.stranger(from, disk) {
		return
	}
	r.heard[from] = env.Now
	if r.transfers.OnWanted(env, from, msg) != nil {
		r.core.node.ReportSnapshot(uint64(from), raft.SnapshotFinish)
		r.core.flush(env)
	}
}

// onChunk collects a snapshot, and gives it to the library when it is whole.
func (r *replica) onChunk(env *protocol.Env[smr.Message], from protocol.ID, disk kit.Incarnation, c kit.SnapshotChunk) {
	if !r.admission.Admitted() && !r.cfg.Join || r.core.leader() != from || !r.admission.Genuine(env, from, disk) {
		return
	}
	r.leaderAt, r.hasLeader = env.Now, true
	r.awaitLeader(env)
	answer, whole, err := r.state.Take(env, c, r.state.Applied(), frontBytes)
	if err != nil {
		r.halt(env, err.Error())
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
			Type: raftpb.MsgSnap.Enum(), From: new(uint64(from)), To: new(uint64(r.cfg.ID)), Term: new(r.core.term()),
			Snapshot: &raftpb.Snapshot{Metadata: meta},
		})
		r.arrived = nil
		if r.halted != "" {
			return
		}
	}
	r.admission.Send(env, from, answer) // after what was installed is durable
}

// install replaces the state by the snapshot that has arrived.
func (r *replica) install(env *protocol.Env[smr.Message], s *raftpb.Snapshot) bool {
	if r.arrived == nil || uint64(r.arrived.Slot) != s.GetMetadata().GetIndex() {
		panic("raft: the library installs a snapshot that it was not given")
	}
	if err := r.state.Install(env, r.arrived); err != nil {
		r.halt(env, err.Error())
		return false
	}
	r.lastSnapshot = r.arrived.Slot
	r.admission.MembersChanged(env)
	return true
}
