package kit

import (
	"bytes"
	"hash/crc32"
	"io"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// SnapshotChunk is a part of a snapshot on its way to a replica that lags too far behind for the
// log.
type SnapshotChunk struct {
	Slot   smr.Slot // of the snapshot, which Slot, Size and Sum name together
	Size   uint64   // bytes, of the whole
	Sum    uint32
	Offset uint64
	Data   []byte
}

// SnapshotWanted answers a chunk: how much of the snapshot is there. At Offset == Size it is
// installed, or not needed.
type SnapshotWanted struct {
	Slot   smr.Slot
	Sum    uint32
	Offset uint64
}

// TransferTimer is a replica's timer for the next step of a snapshot's way to another: the replica
// calls Transfers.OnTimer.
type TransferTimer struct{ To protocol.ID }

const (
	// transferWindow is how many chunks are sent ahead of the answers.
	transferWindow = 8
	// collectedChunks is how many chunks are read in one call of the replica: commands wait for
	// that long.
	collectedChunks = 4
	// collectPause is the time between two such calls, which is the commands'.
	collectPause = time.Millisecond
)

// maxDenied is how often a replica says that it has nothing of what is gone here before the
// transfer is given up: links may deliver an early answer late.
const maxDenied = 2 * transferWindow

// A source is what the bytes of a snapshot are made of, as they are read.
type source interface {
	// read fills p; an error, io.EOF at the end, is told behind the last bytes.
	read(env *protocol.Env[smr.Message], p []byte) (n int, err error)
}

// A stateSource is a state as it was at a moment.
type stateSource struct{ io.Reader }

func (s stateSource) read(_ *protocol.Env[smr.Message], p []byte) (int, error) {
	n, err := io.ReadFull(s.Reader, p)
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	return n, err
}

// An Outgoing is a snapshot on its way to one replica. It stays the same if a newer one is made
// meanwhile: the replica gets one whole. Each chunk says how many bytes there are, and their
// checksum: so all are read first, a few chunks at a time, between commands. Those of a state are
// read again when they are sent, so that they are not in memory beside it; those of a snapshot on
// disk, which is deleted when a newer one is there, are kept.
type Outgoing struct {
	slot   smr.Slot
	passed int    // State.passedBytes when it began
	from   source // nil once all was read
	again  source // the same bytes once more; nil if they are kept
	size   uint64 // bytes of the snapshot
	sum    uint32
	failed bool

	chunks [][]byte // that are kept, or are under way; all but the last are of chunkBytes
	gone   uint64   // chunks before them
	// answers since the last progress that the replica has nothing, though it had more than what is
	// still here
	denied int

	acked uint64 // bytes that the replica has
	sent  uint64 // bytes that were sent. Invariant: acked <= sent.
	heard time.Duration
	moved time.Duration // when bytes were made, or an answer came
}

// SendState begins a transfer of the state as it is, behind what the protocol puts in front: the
// first chunks go with its Continue. An error is the state machine's. One that is no Freezer makes
// all of its bytes in this call.
func (s *State) SendState(slot smr.Slot, front []byte) (*Outgoing, error) {
	state, err := s.freeze()
	if err != nil {
		return nil, err
	}
	from := stateSource{io.MultiReader(bytes.NewReader(front), state)}
	out := &Outgoing{slot: slot, passed: s.passedBytes, from: from}
	if _, ok := s.machine.(smr.Freezer); ok {
		same, _ := s.freeze() // a Freezer's never fails
		out.again = stateSource{io.MultiReader(bytes.NewReader(front), same)}
	}
	return out, nil
}

// SendSnapshot begins a transfer of the snapshot in the key space; ok is false if there is none, or
// none yet of the newest moment that is on disk: see State.SaveNow. If another one takes its place
// before all of it was read, the transfer fails.
func SendSnapshot(env *protocol.Env[smr.Message]) (o *Outgoing, ok bool, err error) {
	h, err := readSnapshotHead(env)
	if err != nil || !h.there() || h.since.there() {
		return nil, false, err
	}
	return &Outgoing{slot: h.slot, from: &storedReader{head: h}}, true, nil
}

// Slot returns the slot of the snapshot.
func (o *Outgoing) Slot() smr.Slot { return o.slot }

// Collecting reports whether not all of the bytes were read yet, so that nothing was sent.
func (o *Outgoing) Collecting() bool { return o.from != nil }

// Failed reports whether the bytes cannot be had, which the transfer's timer brings to the
// replica's notice. It begins another one when it is asked.
func (o *Outgoing) Failed() bool { return o.failed }

// Stalled returns how long ago it was that bytes were made or an answer came.
func (o *Outgoing) Stalled(now time.Duration) time.Duration { return now - o.moved }

// Continue makes more of the snapshot's bytes, or sends what may be sent ahead. If nothing was
// heard for a while, patience, it sends again from what the replica is known to have. The sender
// calls it now and then, and with TransferTimer.
func (o *Outgoing) Continue(env *protocol.Env[smr.Message], to protocol.ID, self Incarnation, patience time.Duration) {
	if o.from != nil && !o.collect(env, to) {
		return
	}
	if o.denied > maxDenied {
		o.fail(env, to)
		return
	}
	if o.sent > o.acked && env.Now-o.heard >= patience {
		o.sent = o.acked
		o.heard = env.Now
	}
	if o.sent == 0 {
		o.heard = env.Now
	}
	for made := 0; o.sent < o.size && o.sent < o.acked+transferWindow*chunkBytes; {
		if o.sent/chunkBytes >= o.gone+uint64(len(o.chunks)) {
			if made++; made > collectedChunks {
				env.After(collectPause, TransferTimer{to})
				return
			}
		}
		chunk := o.chunk(env, o.sent/chunkBytes)
		if chunk == nil {
			o.fail(env, to)
			return
		}
		data := chunk[o.sent%chunkBytes:]
		env.SendAhead(to, Letter{self, SnapshotChunk{Slot: o.slot, Size: o.size, Sum: o.sum, Offset: o.sent, Data: data}})
		o.sent += uint64(len(data))
	}
}

// fail gives the transfer up, which its timer tells.
func (o *Outgoing) fail(env *protocol.Env[smr.Message], to protocol.ID) {
	*o = Outgoing{slot: o.slot, passed: o.passed, failed: true}
	env.After(collectPause, TransferTimer{to})
}

// chunk returns a chunk, nil if it is gone or cannot be read again.
func (o *Outgoing) chunk(env *protocol.Env[smr.Message], i uint64) []byte {
	if i < o.gone {
		return nil
	}
	for i >= o.gone+uint64(len(o.chunks)) {
		if o.again == nil {
			return nil
		}
		chunk, err := readChunk(env, o.again)
		if len(chunk) == 0 || err != nil && err != io.EOF {
			return nil
		}
		o.chunks = append(o.chunks, chunk)
	}
	return o.chunks[i-o.gone]
}

// forget drops the chunks that the replica has, if they were not kept.
func (o *Outgoing) forget() {
	for o.again != nil && o.gone < o.acked/chunkBytes && len(o.chunks) > 0 {
		o.chunks[0] = nil
		o.chunks, o.gone = o.chunks[1:], o.gone+1
	}
}

// readChunk reads the next chunk; an error comes behind the last bytes.
func readChunk(env *protocol.Env[smr.Message], from source) ([]byte, error) {
	chunk := make([]byte, chunkBytes)
	n, err := from.read(env, chunk)
	if n < chunkBytes/2 {
		chunk = append([]byte(nil), chunk[:n]...)
	}
	return chunk[:n:n], err
}

// collect reads the next chunks, and reports whether they were the last.
func (o *Outgoing) collect(env *protocol.Env[smr.Message], to protocol.ID) (all bool) {
	o.moved = env.Now
	for range collectedChunks {
		chunk, err := readChunk(env, o.from)
		if err != nil && err != io.EOF {
			o.fail(env, to)
			return false
		}
		if len(chunk) > 0 {
			if o.again == nil {
				o.chunks = append(o.chunks, chunk)
			}
			o.size += uint64(len(chunk))
			o.sum = crc32.Update(o.sum, castagnoli(), chunk)
		}
		if err == io.EOF {
			if o.from = nil; o.again == nil {
				return true
			}
			break
		}
	}
	env.After(collectPause, TransferTimer{to})
	return false
}

// Wanted takes an answer, and reports whether the replica has all. Answers about other snapshots
// are ignored.
func (o *Outgoing) Wanted(env *protocol.Env[smr.Message], w SnapshotWanted) (done bool) {
	o.moved = env.Now
	if o.from != nil || o.failed || w.Slot != o.slot || w.Sum != o.sum || w.Offset > o.size {
		return false
	}
	switch {
	case w.Offset > o.acked:
		o.acked, o.sent, o.heard = w.Offset, max(o.sent, w.Offset), env.Now
		o.denied = 0
		o.forget()
	case w.Offset == 0 && o.gone > 0:
		o.denied++ // it has crashed, or an answer was overtaken
	case w.Offset == 0 && o.acked > 0:
		o.acked, o.sent, o.heard = 0, 0, env.Now // it has crashed, and lost what it had
	}
	return w.Offset == o.size
}
