package kit

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// A Journal is what a replica knows of its disk: which records are in the log and how long each is
// needed, of which slot the newest snapshot is, and how much has come since. It says when the next
// snapshot is due, has it written, and cuts the log behind it.
type Journal struct {
	snapshot smr.Slot // of the newest one
	records  []journalRecord
	executed int                             // commands, since the snapshot
	written  int                             // records, since the snapshot
	saving   struct{ executed, written int } // when the snapshot began that is being written
	of       *Replica
	cut      func(env *protocol.Env[smr.Message], to smr.Slot)
}

// journalRecord is one of the log. Those of promises have no slots: when they are cut, the
// protocol writes down anew what it has promised.
type journalRecord struct {
	index uint64
	last  smr.Slot // needed until this one is in a snapshot
}

// Follow says whose journal it is, and how its protocol forgets what was decided up to a slot once
// that is in a snapshot: it calls Cut, at least.
func (j *Journal) Follow(of *Replica, cut func(env *protocol.Env[smr.Message], to smr.Slot)) {
	j.of, j.cut = of, cut
}

// Snapshot returns the slot of the newest snapshot on disk.
func (j *Journal) Snapshot() smr.Slot { return j.snapshot }

// Records returns how many records are in the log.
func (j *Journal) Records() int { return len(j.records) }

// Found notes a record that was in the log at the start, and the last slot that it is about.
func (j *Journal) Found(index uint64, last smr.Slot) {
	j.records = append(j.records, journalRecord{index, last})
}

// Wrote notes a record that was just appended.
func (j *Journal) Wrote(index uint64, last smr.Slot) {
	j.Found(index, last)
	j.written++
}

// Promised notes a record that is about no slot.
func (j *Journal) Promised(index uint64) { j.Found(index, 0) }

// Executed notes that a command was executed.
func (j *Journal) Executed() { j.executed++ }

// Has notes that the disk has a snapshot of this slot, with nothing behind it.
func (j *Journal) Has(snapshot smr.Slot) { j.snapshot, j.executed, j.written = snapshot, 0, 0 }

// SaveNow makes the state durable in this call: see State.SaveNow. The protocol forgets what was
// decided up to here, on disk at least. If the snapshot is not done, State.ContinueSave goes on
// with it.
func (j *Journal) SaveNow(env *protocol.Env[smr.Message], front []byte) error {
	s := j.of.State
	_, err := s.SaveNow(env, j.of.Cfg, s.Applied(), front)
	if err == nil {
		j.Has(s.Applied())
		j.saving.executed, j.saving.written = 0, 0
	}
	return err
}

// MaybeSave begins a snapshot if enough was executed since the last one, or if the log is long:
// what fills slots without commands takes room too. Once it is whole, the protocol forgets what was
// decided: an eighth of what is new stays, for replicas that lag a little, and what is behind the
// states that are being sent. After an error of the state machine the log stays, and the next
// command tries again.
func (j *Journal) MaybeSave(env *protocol.Env[smr.Message], front func() []byte) {
	s, cfg := j.of.State, j.of.Cfg
	long := len(j.records) >= cfg.SnapshotEvery && j.written >= cfg.SnapshotEvery/4
	if s.Saving() || j.executed < cfg.SnapshotEvery && !long && s.Fullness(cfg.LogBytes) < 1 || s.Applied() == j.snapshot {
		return
	}
	j.saving.executed, j.saving.written = j.executed, j.written
	var before []byte
	if front != nil {
		before = front()
	}
	done, err := s.BeginSave(env, cfg, s.Applied(), before)
	j.Saved(env, done, err)
}

// Saved is Rules.Saved.
func (j *Journal) Saved(env *protocol.Env[smr.Message], done bool, err error) {
	if !done || err != nil {
		return
	}
	s, cfg := j.of.State, j.of.Cfg
	stays := (s.Saved() - j.snapshot) / 8
	if n := j.saving.executed; n > 2*cfg.SnapshotEvery { // a slow disk: no more commands than ever
		stays = smr.Slot(float64(stays) * float64(cfg.SnapshotEvery) / float64(n))
	}
	j.snapshot = s.Saved()
	j.executed, j.written = j.executed-j.saving.executed, j.written-j.saving.written
	j.cut(env, s.HeldCut(j.of.Transfers, j.snapshot-stays, cfg.LogBytes))
}

// Cut forgets the records that are not needed once all up to a slot is in a snapshot. What records
// say beside slots is written anew, by promises, unless that is nil.
func (j *Journal) Cut(env *protocol.Env[smr.Message], to smr.Slot, promises smr.Message) (cut bool) {
	n := slices.IndexFunc(j.records, func(r journalRecord) bool { return r.last > to })
	if n < 0 {
		n = len(j.records)
	}
	if n == 0 {
		return false
	}
	first := j.records[n-1].index + 1
	j.records = slices.Delete(j.records, 0, n)
	if promises != nil {
		j.Promised(env.Append(promises))
	}
	env.Truncate(first)
	return true
}

// Forget cuts all of the log.
func (j *Journal) Forget(env *protocol.Env[smr.Message]) {
	env.Truncate(env.NextIndex())
	j.records = nil
}
