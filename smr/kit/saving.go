package kit

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// SaveTimer is a replica's timer for the next part of a snapshot: see State.ContinueSave.
type SaveTimer struct{}

// PartSaved is what a replica sends to itself to learn that a part of a snapshot is on its disk:
// see State.PartSaved.
type PartSaved struct{}

const (
	// savePause is the least time between a part of a snapshot that is on disk and the next part.
	savePause = time.Millisecond
	// mergePauses is how many times as long as for a snapshot the disk is the log's alone while
	// segments are merged: no log waits for that.
	mergePauses = 3
	// maxSegments bounds the segments of a snapshot.
	maxSegments = 128
)

// A saving is a segment that is being written.
type saving struct {
	areaWriter
	slot        smr.Slot // of the snapshot that it is a part of
	front       []byte   // of that
	changes     bool     // it follows the segments that are there
	weightBytes int      // of the state when it began
	kept        int      // of saver.kept, is in it
}

// saver is what a State does with its snapshots.
type saver struct {
	self     protocol.ID
	part     int      // bytes
	logBytes int      // that fill a log
	saving   *saving  // nil if none is
	merging  *merging // nil if none is
	mark     segment  // what the state machine notes changes since; no bytes if that is not on the disk
	incoming *incoming
	keeps    bool                // what is applied
	kept     Paged[appliedEntry] // since the snapshot on disk and its tail
	hasTail  bool
	wrote    time.Duration
	underWay int // parts that are not known to be on disk

	weightBytes int // of the entries that were applied since the last snapshot
	passedBytes int // and since the start
	savedBytes  int // of that snapshot
	wholeBytes  int // of the last one that was of all of the state
	saved       smr.Slot
}

// A merging is a segment of all of the state that is written to replace the segments up to one:
// both are of the same moment.
type merging struct {
	areaWriter
	last uint64 // the area of that
}

// BeginSave begins to write a snapshot of the state as it is into the key space, with what the
// protocol puts in front. Small ones are done at once, done is true then. Others are written while
// commands are applied: the replica calls PartSaved with the message of that name and ContinueSave
// with SaveTimer. When one is done the replica cuts its log, in the same call. Whatever replaces
// the state, and Save, gives up one that is under way.
func (s *State) BeginSave(
	env *protocol.Env[smr.Message], cfg smr.ReplicaConfig, slot smr.Slot, front []byte,
) (done bool, err error) {
	there, err := readSnapshotHead(env)
	if err != nil {
		return false, err
	}
	v := &saving{slot: slot, front: slices.Clone(front), weightBytes: s.weightBytes, kept: s.kept.Len()}
	s.saving = nil
	v.area = s.freeArea(there)
	machine, differs := s.machine.(smr.Differ)
	v.changes = differs && s.mark.sizeBytes > 0 && !there.whole && there.there() && there.last().same(s.mark) &&
		there.segments[0].sizeBytes > uint64(cfg.SnapshotPartBytes) && !(s.merging == nil && there.outgrown() &&
		there.mostChanges())
	if v.changes {
		v.from = s.seal(changesVersion, machine.Changes())
	} else if v.from, err = s.freeze(); err != nil {
		return false, err
	}
	s.part, s.logBytes, s.self, s.saving = cfg.SnapshotPartBytes, cfg.LogBytes, cfg.ID, v
	s.beginMerging(there)
	if differs {
		machine.Mark()
		s.mark = segment{}
	}
	return s.ContinueSave(env)
}

// freeArea returns an area that nobody uses.
func (s *State) freeArea(there snapshotHead) uint64 {
	var used []uint64
	if s.saving != nil {
		used = append(used, s.saving.area)
	}
	if s.merging != nil {
		used = append(used, s.merging.area)
	}
	if s.incoming != nil {
		used = append(used, s.incoming.area.area)
	}
	return there.free(used...)
}

// beginMerging begins to write all of the state beside what has changed, if enough has.
func (s *State) beginMerging(there snapshotHead) {
	switch {
	case !s.saving.changes:
		s.merging = nil
	case s.merging == nil && there.outgrown():
		if all, err := s.freeze(); err == nil { // a Freezer's never fails
			s.merging = &merging{areaWriter{segment{area: s.freeArea(there)}, all}, s.saving.area}
		}
	}
}

// Saving reports whether a snapshot is being written.
func (s *State) Saving() bool { return s.saving != nil }

// Saved returns the slot of the newest snapshot that was written.
func (s *State) Saved() smr.Slot { return s.saved }

// ContinueSave writes the next part of a snapshot that is under way, and reports whether it is
// done. After an error of the state machine it is given up.
func (s *State) ContinueSave(env *protocol.Env[smr.Message]) (done bool, err error) {
	if s.saving == nil {
		return false, s.continueMerging(env)
	}
	v := s.saving
	whole, err := v.write(env, s.part)
	switch {
	case err != nil:
		s.saving, s.merging = nil, nil
		return false, fmt.Errorf("smr: snapshot of the state machine at slot %d: %w", v.slot, err)
	case !whole:
		s.partWritten(env)
		return false, nil
	}
	s.finishSaving(env)
	if s.merging != nil {
		s.partWritten(env)
	}
	return true, nil
}

func (s *State) partWritten(env *protocol.Env[smr.Message]) {
	s.wrote = env.Now
	s.underWay++
	env.Send(s.self, PartSaved{})
}

func (s *State) finishSaving(env *protocol.Env[smr.Message]) {
	v := s.saving
	head := snapshotHead{slot: v.slot, front: v.front, segments: []segment{v.segment}}
	there, _ := readSnapshotHead(env) // it was read when this one began
	if v.changes {
		head.segments = append(there.segments, v.segment)
	} else {
		for _, old := range there.segments {
			old.delete(env)
		}
		s.wholeBytes = int(v.sizeBytes)
	}
	for _, old := range there.since.segments {
		old.delete(env)
	}
	s.kept.Forget(v.kept)
	v.finish(env, head)
	s.mark = v.segment
	s.weightBytes -= v.weightBytes
	s.savedBytes, s.saved, s.saving = int(v.sizeBytes), v.slot, nil
}

// continueMerging writes the next part of a segment that is to replace others.
func (s *State) continueMerging(env *protocol.Env[smr.Message]) error {
	m := s.merging
	if m == nil {
		return nil
	}
	whole, err := m.write(env, s.part)
	if err != nil {
		s.merging = nil
		return fmt.Errorf("smr: snapshot of the state machine: %w", err)
	}
	if !whole {
		s.partWritten(env)
		return nil
	}
	head, err := readSnapshotHead(env)
	if err != nil {
		return err
	}
	n := 1 + slices.IndexFunc(head.segments, func(t segment) bool { return t.area == m.last })
	for _, old := range head.segments[:n] {
		old.delete(env)
	}
	if n == len(head.segments) {
		s.mark = m.segment
	}
	head.segments = slices.Concat([]segment{m.segment}, head.segments[n:])
	m.finish(env, head)
	s.merging, s.wholeBytes = nil, int(m.sizeBytes)
	return nil
}

// PartSaved takes note that a part of a snapshot is on disk. The next one waits as long as that
// took, so that half of the time the disk is the log's alone; less if the log has grown since the
// snapshot began, and not at all once it has by half of what fills it: it is in memory until the
// snapshot is done.
func (s *State) PartSaved(env *protocol.Env[smr.Message], from protocol.ID) {
	if from != s.self || s.underWay == 0 {
		return
	}
	s.underWay--
	if s.underWay > 0 || s.saving == nil && s.merging == nil {
		return
	}
	pause := min(max(savePause, env.Now-s.wrote), time.Second)
	if v := s.saving; v == nil {
		pause *= mergePauses
	} else if s.logBytes > 0 {
		grown := float64(s.weightBytes-v.weightBytes) / float64(s.logBytes)
		pause = time.Duration(float64(pause) * max(0, 1-2*grown))
	}
	env.After(pause, SaveTimer{})
}

// SaveWhole writes a snapshot of the state as it is, at once, with what the protocol puts in front.
// It is the first of a group, which says with whom it begins, whatever becomes of the
// configuration. An error is the state machine's.
func (s *State) SaveWhole(env *protocol.Env[smr.Message], slot smr.Slot, front []byte) error {
	data, err := s.Snapshot()
	if err != nil {
		return err
	}
	s.Save(env, Snapshot{Slot: slot, Data: append(front, data...)})
	return nil
}

// Save writes a snapshot into the key space in place of the one that is there. Called with
// Env.Truncate in one call, it takes the place of the log up to its slot.
func (s *State) Save(env *protocol.Env[smr.Message], snapshot Snapshot) {
	there, _ := readSnapshotHead(env) // one that cannot be read kept the replica from starting
	s.saving, s.merging, s.mark = nil, nil, segment{}
	v := &areaWriter{segment{area: s.freeArea(there)}, bytes.NewReader(snapshot.Data)}
	for whole := false; !whole; {
		whole, _ = v.write(env, chunkBytes) // bytes can be read
	}
	there.delete(env)
	s.kept.Forget(s.kept.Len())
	v.finish(env, snapshotHead{slot: snapshot.Slot, whole: true, segments: []segment{v.segment}})
	s.weightBytes, s.savedBytes, s.wholeBytes, s.saved = 0, len(snapshot.Data), len(snapshot.Data), snapshot.Slot
}

// freeze returns the state as it is, as Snapshot's bytes.
func (s *State) freeze() (io.Reader, error) {
	if f, ok := s.machine.(smr.Freezer); ok {
		return s.seal(snapshotVersion, f.Freeze()), nil
	}
	var buf bytes.Buffer
	if err := s.machine.Snapshot(&buf); err != nil {
		return nil, fmt.Errorf("smr: snapshot of the state machine at slot %d: %w", s.applied, err)
	}
	return s.seal(snapshotVersion, &buf), nil
}

// seal puts what the state has beside its machine in front of something of the machine's, and a
// checksum behind it.
func (s *State) seal(version byte, machine io.Reader) io.Reader {
	head := imageLayout.Append([]byte{version}, image{s.applied, s.members, s.sessions})
	return &sealed{from: io.MultiReader(bytes.NewReader(head), machine)}
}

// sealed reads what another reader has, and its checksum behind it.
type sealed struct {
	from io.Reader // nil at its end
	sum  uint32
	seal []byte
}

func (s *sealed) Read(p []byte) (int, error) {
	if s.from == nil {
		n := copy(p, s.seal)
		if s.seal = s.seal[n:]; n == 0 && len(p) > 0 {
			return 0, io.EOF
		}
		return n, nil
	}
	n, err := s.from.Read(p)
	s.sum = crc32.Update(s.sum, castagnoli(), p[:n])
	if err != io.EOF {
		return n, err
	}
	s.from, s.seal = nil, binary.BigEndian.AppendUint32(nil, s.sum)
	return n, nil
}
