package kit

import (
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"time"

	"github.com/foresay/foresay/internal/diskid"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// A Front is how a protocol tells what it has put in front of a state in a snapshot: it returns how
// long that is, from the first bytes of the snapshot, and ok is false if not all of it is among
// them. nil: nothing is in front.
type Front func(begin []byte) (sizeBytes int, ok bool)

// An arrival is a snapshot whose bytes come one after the other, and are restored beside the state.
type arrival struct {
	of    *State
	total uint64 // bytes of the snapshot
	have  uint64
	split Front
	front []byte
	state *restorer // nil before all of the front is there
	err   error
}

func (s *State) arrival(total uint64, split Front) *arrival {
	if split == nil {
		split = func([]byte) (int, bool) { return 0, true }
	}
	return &arrival{of: s, total: total, split: split}
}

// write takes the next bytes, and returns those of the state, which it does not keep.
func (a *arrival) write(b []byte) (state []byte) {
	a.have += uint64(len(b))
	if a.state == nil {
		a.front = append(a.front, b...)
		n, ok := a.split(a.front)
		if !ok {
			return nil
		}
		b, a.front = a.front[n:], slices.Clone(a.front[:n])
		a.state = a.of.restoring(a.total - uint64(n))
	}
	_, a.err = a.state.Write(b)
	return b
}

// end says that all was written.
func (a *arrival) end() error {
	switch {
	case a.err != nil:
		return a.err
	case a.state == nil:
		return fmt.Errorf("smr: snapshot: what its protocol puts in front of it is cut off, or of a version that this " +
			"program does not know")
	}
	return a.state.end()
}

// Load restores the snapshot in the key space, and returns its slot and what the protocol has put
// in front; ok is false if there is none. What SaveNow has written is a part of it. An error says
// that the disk does not have what was written, or is the state machine's; then the state is not
// used.
func (s *State) Load(env *protocol.Env[smr.Message], split Front) (slot smr.Slot, front []byte, ok bool, err error) {
	h, err := readSnapshotHead(env)
	if err != nil || !h.there() {
		return 0, nil, false, err
	}
	size := uint64(len(h.front))
	for _, part := range h.segments {
		size += part.sizeBytes
	}
	a := s.arrival(size, split)
	for from := (&storedReader{head: h}); ; {
		piece, err := from.next(env)
		if err == io.EOF {
			break
		}
		if err != nil {
			return 0, nil, false, err
		}
		a.write(piece)
	}
	if err := a.end(); err != nil {
		return 0, nil, false, err
	}
	if err := s.become(a.state); err != nil {
		return 0, nil, false, err
	}
	if !h.since.there() {
		return h.slot, a.front, true, nil
	}
	if s.hooks.Loaded != nil {
		if err := s.hooks.Loaded(a.front); err != nil {
			return 0, nil, false, err
		}
	}
	if err := s.replay(env, h); err != nil {
		return 0, nil, false, err
	}
	return h.since.slot, h.since.front, true, nil
}

// Found is what Open found on a disk.
type Found struct {
	Snapshot bool // there is one
	Slot     smr.Slot
	Front    []byte
	Blank    bool // nothing was there
}

// Open takes over the snapshot on the disk at a start: see Load. On a blank disk of a replica that
// does not join, begin writes the first one of a group, which says with whom it begins, whatever
// the configuration says later; if it is nil, SaveWhole does.
//
// From then on the log follows a snapshot, so a log without one is refused: what its records follow
// is lost, and a replica that took them for all that there was would vote as if it had never seen
// the rest. Only a replica that waits to be added has records and no snapshot, if its protocol has
// it promise before it has a state.
func (s *State) Open(
	env *protocol.Env[smr.Message], cfg smr.ReplicaConfig, log []protocol.Record[smr.Message], split Front,
	begin func() error,
) (f Found, err error) {
	f.Slot, f.Front, f.Snapshot, err = s.Load(env, split)
	if err != nil || f.Snapshot {
		return f, err
	}
	f.Blank = len(log) == 0
	// An identity that cannot be read is Admission's to tell of.
	self, _, _ := diskid.Read(env, selfKey)
	switch {
	case !f.Blank && (!cfg.Join || self.Joined):
		return f, fmt.Errorf("the log has %d records, and there is no snapshot of what was before them", len(log))
	case !f.Blank || cfg.Join:
		return f, nil
	case begin != nil:
		return f, begin()
	}
	return f, s.SaveWhole(env, s.Applied(), nil)
}

// An incoming is a snapshot on its way to this replica. Each chunk is written to an area of the key
// space that nothing uses, and restored beside the state, when it comes. It goes on after lost
// messages and with another sender of the same snapshot, and is given up for a newer one. Another
// one of the same slot, of which the bytes differ as it was written in other segments, or an older
// one, takes its place only if nothing more comes of it. A crash leaves chunks that the next one in
// the area overwrites.
type incoming struct {
	*arrival
	area    areaWriter // of the state
	slot    smr.Slot
	sum     uint32        // that all of it has
	got     uint32        // that what has come has
	refused int           // others that were begun, since the last chunk
	came    time.Duration // the last chunk
}

// Arriving reports whether a snapshot is on its way here, of which a chunk came within so long.
func (s *State) Arriving(now, within time.Duration) bool {
	in := s.incoming
	return in != nil && in.have > 0 && now >= in.came && now-in.came < within
}

// How many others are refused between two chunks: then the sender is not there any more.
const (
	maxRefused      = 3
	maxRefusedNewer = 1
)

// Arrived is a snapshot that has come whole. It is of no use any more after a further call of Take.
type Arrived struct {
	Slot  smr.Slot
	Front []byte // what the protocol has put in front
	from  *incoming
}

// Take takes a chunk for a replica that has applied all up to a slot. The answer is to be sent,
// once the snapshot is installed if there is one: see Install. An error says that what has arrived
// whole cannot be restored.
func (s *State) Take(
	env *protocol.Env[smr.Message], c SnapshotChunk, applied smr.Slot, split Front,
) (answer SnapshotWanted, whole *Arrived, err error) {
	answer = SnapshotWanted{Slot: c.Slot, Sum: c.Sum, Offset: c.Size}
	if s.incoming != nil && s.incoming.slot <= applied {
		s.incoming = nil // what has come of it is not needed any more
	}
	if c.Slot <= applied || c.Size > maxSizeBytes || c.Size == 0 {
		return answer, nil, nil
	}
	in := s.incoming
	same := in != nil && in.slot == c.Slot && in.sum == c.Sum && in.total == c.Size
	most := maxRefused
	if in != nil && c.Slot > in.slot {
		most = maxRefusedNewer
	}
	switch {
	case same:
	case in != nil && in.have > 0 && (c.Offset > 0 || in.refused < most):
		if c.Offset == 0 {
			in.refused++
		}
		return answer, nil, nil // its sender need not go on
	default:
		there, err := readSnapshotHead(env)
		if err != nil {
			return answer, nil, err
		}
		s.incoming = nil
		in = &incoming{slot: c.Slot, sum: c.Sum, arrival: s.arrival(c.Size, split)}
		in.area.area = s.freeArea(there)
		s.incoming = in
	}
	if c.Offset == in.have && uint64(len(c.Data)) <= c.Size-in.have && len(c.Data) > 0 {
		in.got = crc32.Update(in.got, castagnoli(), c.Data)
		if state := in.write(c.Data); len(state) > 0 {
			in.area.put(env, state)
		}
		in.refused, in.came = 0, env.Now
	}
	if answer.Offset = in.have; answer.Offset < c.Size {
		return answer, nil, nil
	}
	s.incoming = nil
	if in.got != in.sum {
		answer.Offset = 0
		return answer, nil, nil
	}
	if err := in.end(); err != nil {
		return answer, nil, err
	}
	return answer, &Arrived{Slot: in.slot, Front: in.front, from: in}, nil
}

// Install puts a snapshot that has arrived in the place of the state, and of the snapshot in the
// key space. Called with Env.Truncate in one call, it takes the place of the log up to its slot.
// After an error, which is the state machine's, the state is not used.
func (s *State) Install(env *protocol.Env[smr.Message], a *Arrived) error {
	if err := s.become(a.from.state); err != nil {
		return err
	}
	there, _ := readSnapshotHead(env) // one that cannot be read kept the replica from starting
	there.delete(env)
	v := &a.from.area
	v.finish(env, snapshotHead{slot: a.Slot, front: a.Front, segments: []segment{v.segment}})
	s.saved = a.Slot
	return nil
}
