package smr

import (
	"time"

	"github.com/foresay/foresay/protocol"
)

// SnapshotChunk is a part of a snapshot on its way to a replica that lags too far behind for the log.
type SnapshotChunk struct {
	From   Incarnation // the sender's
	Slot   Slot        // of the snapshot, which Slot, Size and Sum name together
	Size   uint64      // bytes, of the whole
	Sum    uint32
	Offset uint64
	Data   []byte
}

// SnapshotWanted answers a chunk: how much of the snapshot is there. At Offset == Size it is installed, or not needed.
type SnapshotWanted struct {
	From   Incarnation
	Slot   Slot
	Sum    uint32
	Offset uint64
}

// transferWindow is how many chunks are sent ahead of the answers.
const transferWindow = 8

// An Outgoing is a snapshot on its way to one replica. It stays the same if a newer one is made meanwhile: the replica gets one whole.
type Outgoing struct {
	snapshot Snapshot
	sum      uint32
	acked    uint64 // bytes that the replica has
	sent     uint64 // bytes that were sent. Invariant: acked <= sent.
	heard    time.Duration
}

// NewOutgoing begins a transfer: the first chunks go with its Continue.
func NewOutgoing(s Snapshot) *Outgoing { return &Outgoing{snapshot: s, sum: Checksum(s.Data)} }

// Slot returns the slot of the snapshot.
func (o *Outgoing) Slot() Slot { return o.snapshot.Slot }

// Continue sends what may be sent ahead. If nothing was heard for a while, patience, it sends again from what the replica is known to have. The
// sender calls it now and then.
func (o *Outgoing) Continue(env *protocol.Env[Message], to protocol.ID, self Incarnation, patience time.Duration) {
	if o.sent > o.acked && env.Now-o.heard >= patience {
		o.sent = o.acked
		o.heard = env.Now
	}
	if o.sent == 0 {
		o.heard = env.Now
	}
	size := uint64(len(o.snapshot.Data))
	for o.sent < size && o.sent < o.acked+transferWindow*chunkBytes {
		end := min(o.sent+chunkBytes, size)
		env.SendAhead(to, SnapshotChunk{
			From: self, Slot: o.snapshot.Slot, Size: size, Sum: o.sum,
			Offset: o.sent, Data: o.snapshot.Data[o.sent:end],
		})
		o.sent = end
	}
}

// Wanted takes an answer, and tells whether the replica has all. Answers about other snapshots are ignored.
func (o *Outgoing) Wanted(env *protocol.Env[Message], w SnapshotWanted) (done bool) {
	size := uint64(len(o.snapshot.Data))
	if w.Slot != o.snapshot.Slot || w.Sum != o.sum || w.Offset > size {
		return false
	}
	switch {
	case w.Offset > o.acked:
		o.acked, o.sent, o.heard = w.Offset, max(o.sent, w.Offset), env.Now
	case w.Offset == 0 && o.acked > 0:
		o.acked, o.sent, o.heard = 0, 0, env.Now // it has crashed, and lost what it had
	}
	return w.Offset == size
}

// An Incoming collects the chunks of a snapshot. Its zero value is ready. One that was begun goes on after lost messages and with another sender
// of the same snapshot, and is given up for a newer one.
type Incoming struct {
	slot Slot
	sum  uint32
	size uint64
	data []byte
}

// Take takes a chunk for a replica that has applied all up to a slot. The answer is to be sent, once the snapshot is installed if there is one.
func (in *Incoming) Take(c SnapshotChunk, applied Slot) (answer SnapshotWanted, whole *Snapshot) {
	answer = SnapshotWanted{Slot: c.Slot, Sum: c.Sum, Offset: c.Size}
	if c.Slot <= applied || c.Size > maxSizeBytes {
		return answer, nil
	}
	same := in.slot == c.Slot && in.sum == c.Sum && in.size == c.Size
	switch {
	case same:
	case c.Slot < in.slot && len(in.data) > 0:
		return answer, nil // an older one: its sender need not go on
	default:
		*in = Incoming{slot: c.Slot, sum: c.Sum, size: c.Size}
	}
	have := uint64(len(in.data))
	if c.Offset == have && uint64(len(c.Data)) <= in.size-have {
		in.data = append(in.data, c.Data...)
	}
	answer.Offset = uint64(len(in.data))
	if answer.Offset < in.size {
		return answer, nil
	}
	s := Snapshot{Slot: in.slot, Data: in.data}
	*in = Incoming{}
	if Checksum(s.Data) != c.Sum {
		answer.Offset = 0
		return answer, nil
	}
	return answer, &s
}
