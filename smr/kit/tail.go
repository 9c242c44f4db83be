package kit

import (
	"fmt"
	"io"
	"slices"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// A tail is what was executed behind the snapshot on disk, up to a moment: entries in the order
// in which they were applied. A restart applies them again, so that snapshot and tail are as good
// as a snapshot of that moment.
type tail struct {
	slot     smr.Slot // of the moment
	front    []byte   // what the protocol has put in front of the state then
	segments []segment
}

func (v tail) there() bool { return len(v.segments) > 0 }

func tailFields(c *wirefmt.Coder, v *tail) {
	wirefmt.Uint(c, &v.slot)
	wirefmt.Bytes(c, &v.front)
	wirefmt.List(c, &v.segments, segmentBytes, segmentFields)
}

// appliedEntry is an entry that was applied.
type appliedEntry struct {
	slot  smr.Slot
	entry Entry
}

// tailHead is what a segment of a tail begins with.
type tailHead struct {
	applied smr.Slot // all up to it was, with what follows
	entries uint64   // how many follow
}

var (
	tailHeadLayout = wirefmt.NewLayout("smr: what was applied", func(c *wirefmt.Coder, h *tailHead) {
		wirefmt.Version(c, tailVersion)
		wirefmt.Uint(c, &h.applied)
		wirefmt.Uint(c, &h.entries)
	})
	appliedLayout = wirefmt.NewLayout("smr: an entry that was applied", func(c *wirefmt.Coder, a *appliedEntry) {
		wirefmt.Uint(c, &a.slot)
		EntryFields(c, &a.entry)
	})
)

// KeepApplied has the state keep what it applies until that is on disk, in a snapshot or beside
// one. SaveNow needs it.
func (s *State) KeepApplied() { s.keeps = true }

// SaveNow makes the state as it is durable in this call, at a moment that must be on disk, such as
// a change of the members. A small state is written whole. A large one would keep everybody waiting
// for as long as that takes: here what was applied since the last snapshot is written, which no
// more than a log has, and a snapshot of this moment begins, as with BeginSave; done is false then,
// and the replica goes on as after that. The protocol cuts its log in both cases.
func (s *State) SaveNow(
	env *protocol.Env[smr.Message], cfg smr.ReplicaConfig, slot smr.Slot, front []byte,
) (done bool, err error) {
	head, err := readSnapshotHead(env)
	if err != nil {
		return false, err
	}
	if !head.there() || !s.keeps {
		return true, s.SaveWhole(env, slot, front)
	}
	if done, err = s.BeginSave(env, cfg, slot, front); done || err != nil {
		return done, err
	}
	v := &areaWriter{segment: segment{area: s.freeArea(head)}}
	s.writeApplied(env, v)
	head.since = tail{slot: slot, front: slices.Clone(front), segments: append(head.since.segments, v.segment)}
	v.finish(env, head)
	s.kept.Forget(s.kept.Len())
	s.saving.kept, s.saved = 0, slot
	return false, nil
}

// writeApplied writes what was applied since the last snapshot, or the last such segment.
func (s *State) writeApplied(env *protocol.Env[smr.Message], v *areaWriter) {
	buf := tailHeadLayout.Encode(tailHead{s.applied, uint64(s.kept.Len())})
	for i := range s.kept.Len() {
		buf = appliedLayout.Append(buf, *s.kept.At(i))
		if len(buf) >= chunkBytes {
			v.put(env, buf)
			buf = make([]byte, 0, chunkBytes+chunkBytes/8)
		}
	}
	if len(buf) > 0 {
		v.put(env, buf)
	}
}

// HasTail reports whether Load has found a tail beside the snapshot, so that no snapshot on disk
// is of the moment that the state is of.
func (s *State) HasTail() bool { return s.hasTail }

// replay applies again what was applied behind the snapshot on disk.
func (s *State) replay(env *protocol.Env[smr.Message], h snapshotHead) error {
	keeps := s.keeps
	s.keeps = false // it is on disk
	defer func() { s.keeps = keeps }()
	for _, part := range h.since.segments {
		var b []byte
		for from := (&storedReader{head: snapshotHead{slot: h.since.slot, segments: []segment{part}}}); ; {
			piece, err := from.next(env)
			if err == io.EOF {
				break
			}
			if err != nil {
				return err
			}
			b = append(b, piece...)
		}
		if err := s.replayPart(b); err != nil {
			return fmt.Errorf("smr: what was executed behind the snapshot on disk, up to slot %d: %w", h.since.slot, err)
		}
	}
	s.hasTail = h.since.there()
	return nil
}

func (s *State) replayPart(b []byte) error {
	head, rest, err := tailHeadLayout.DecodeFirst(b)
	if err != nil {
		return err
	}
	last := smr.Slot(0)
	for range head.entries {
		var a appliedEntry
		if a, rest, err = appliedLayout.DecodeFirst(rest); err != nil {
			return err
		}
		if a.slot == last { // of one batch
			s.applied = a.slot - 1
		}
		if a.slot <= s.applied || a.slot > head.applied {
			return fmt.Errorf("an entry of slot %d comes after slot %d", a.slot, s.applied)
		}
		s.Apply(a.slot, a.entry)
		last = a.slot
	}
	if len(rest) > 0 {
		return fmt.Errorf("%d bytes too many", len(rest))
	}
	s.Skip(head.applied)
	return nil
}
