package smr

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
)

// A Freezer is a StateMachine of which a moment can be kept at little cost, like a tree whose nodes are copied when they are written. Its snapshots are
// written a part at a time, between commands. A machine that is none is written whole into memory first, and commands wait for that.
type Freezer interface {
	// Freeze returns what Snapshot would write now. Commands that are applied later do not change it. It is read by the goroutine that applies them, and
	// may be dropped half read.
	Freeze() io.Reader
}

// SaveTimer is a replica's timer for the next part of a snapshot: see State.ContinueSave.
type SaveTimer struct{}

// PartSaved is what a replica sends to itself to learn that a part of a snapshot is on its disk: see State.PartSaved.
type PartSaved struct{}

// savePause is the least time between a part of a snapshot that is on disk and the next part.
const savePause = time.Millisecond

// A saving is a snapshot that is being written.
type saving struct {
	head        snapshotHead
	from        io.Reader
	part        int // bytes
	self        protocol.ID
	wrote       time.Duration // when the newest part was handed to the disk
	weightBytes int           // of the state when it began
}

// BeginSave begins to write a snapshot of the state as it is into the key space, with what the protocol puts in front. Small ones are done at once, done is true then. Others are written
// while commands are applied: the replica calls PartSaved with the message of that name and ContinueSave with SaveTimer. When one is done the replica cuts its log, in the same
// call. Whatever replaces the state, and Save, gives up one that is under way.
func (s *State) BeginSave(env *protocol.Env[Message], cfg ReplicaConfig, slot Slot, front []byte) (done bool, err error) {
	state, err := s.freeze()
	if err != nil {
		return false, err
	}
	s.saving = newSaving(env, slot, io.MultiReader(bytes.NewReader(front), state))
	s.saving.part, s.saving.self, s.saving.weightBytes = cfg.SnapshotPartBytes, cfg.ID, s.weightBytes
	return s.ContinueSave(env)
}

// Saving tells whether a snapshot is being written.
func (s *State) Saving() bool { return s.saving != nil }

// Saved returns the slot of the newest snapshot that was written.
func (s *State) Saved() Slot { return s.saved }

// ContinueSave writes the next part of a snapshot that is under way, and tells whether it is done. After an error of the state machine it is given up.
func (s *State) ContinueSave(env *protocol.Env[Message]) (done bool, err error) {
	v := s.saving
	if v == nil {
		return false, nil
	}
	whole, err := v.write(env, v.part)
	switch {
	case err != nil:
		s.saving = nil
		return false, fmt.Errorf("smr: snapshot of the state machine at slot %d: %w", v.head.slot, err)
	case !whole:
		v.wrote = env.Now
		env.Send(v.self, PartSaved{})
		return false, nil
	}
	v.finish(env)
	s.weightBytes -= v.weightBytes
	s.savedBytes, s.saved, s.saving = int(v.head.sizeBytes), v.head.slot, nil
	return true, nil
}

// PartSaved takes note that a part of a snapshot is on disk. The next one waits as long as that took: half of the time the disk is the log's alone.
func (s *State) PartSaved(env *protocol.Env[Message], from protocol.ID) {
	if v := s.saving; v != nil && from == v.self {
		env.After(min(max(savePause, env.Now-v.wrote), time.Second), SaveTimer{})
	}
}

// Save writes a snapshot into the key space in place of the one that is there. Called with Env.Truncate in one call, it takes the place of the log up to its slot.
func (s *State) Save(env *protocol.Env[Message], snapshot Snapshot) {
	s.saving = nil
	v := newSaving(env, snapshot.Slot, bytes.NewReader(snapshot.Data))
	for whole := false; !whole; {
		whole, _ = v.write(env, chunkBytes) // bytes can be read
	}
	v.finish(env)
	s.weightBytes, s.savedBytes, s.saved = 0, len(snapshot.Data), snapshot.Slot
}

func newSaving(env *protocol.Env[Message], slot Slot, from io.Reader) *saving {
	there, _ := readSnapshotHead(env) // one that cannot be read kept the replica from starting
	return &saving{head: snapshotHead{slot: slot, area: (there.area + 1) % areas}, from: from}
}

// write writes a chunk, and tells whether it was the last one.
func (v *saving) write(env *protocol.Env[Message], size int) (last bool, err error) {
	chunk := make([]byte, size)
	n, err := io.ReadFull(v.from, chunk)
	switch err {
	case nil:
	case io.EOF, io.ErrUnexpectedEOF:
		last = true
	default:
		return false, err
	}
	if n == 0 {
		return true, nil
	}
	env.Put(chunkKey(v.head.area, v.head.chunks), chunk[:n:n])
	v.head.chunks++
	v.head.sizeBytes += uint64(n)
	v.head.sum = crc32.Update(v.head.sum, castagnoli(), chunk[:n])
	return last, nil
}

// finish puts a snapshot that is written in the place of the one before.
func (v *saving) finish(env *protocol.Env[Message]) {
	if there, err := readSnapshotHead(env); err == nil && there.area != v.head.area {
		for i := range there.chunks {
			env.Delete(chunkKey(there.area, i))
		}
	}
	for i := v.head.chunks; ; i++ { // of one that a crash, or another snapshot, kept from its end
		key := chunkKey(v.head.area, i)
		if _, ok := env.Get(key); !ok {
			break
		}
		env.Delete(key)
	}
	var w wirefmt.Writer
	v.head.append(&w)
	env.Put([]byte(snapshotKey), w.Buf)
}

// freeze returns the state as it is, as Snapshot's bytes.
func (s *State) freeze() (io.Reader, error) {
	w := wirefmt.Writer{Buf: []byte{snapshotVersion}}
	w.Uint(uint64(s.applied))
	s.members.append(&w)
	s.sessions.append(&w)
	if f, ok := s.machine.(Freezer); ok {
		return &sealed{from: io.MultiReader(bytes.NewReader(w.Buf), f.Freeze())}, nil
	}
	buf := bytes.NewBuffer(w.Buf)
	if err := s.machine.Snapshot(buf); err != nil {
		return nil, fmt.Errorf("smr: snapshot of the state machine at slot %d: %w", s.applied, err)
	}
	return &sealed{from: buf}, nil
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
