package smr

import (
	"encoding/binary"
	"fmt"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
)

// chunkBytes is how much of a snapshot is in one key, and in one message.
const chunkBytes = 128 << 10

// A Snapshot is what State.Snapshot returned, with the slot that it stands at. Data is not changed.
type Snapshot struct {
	Slot Slot
	Data []byte
}

// The keys of a replica that this package uses begin with these.
const (
	snapshotKey  = "smr/snapshot" // a snapshotHead
	chunkPrefix  = "smr/chunk"    // then the area, if not the first, a slash, and the number of the chunk: 4 bytes
	selfKey      = "smr/self"
	peerPrefix   = "smr/peer/" // then the ID: 4 bytes
	maxSizeBytes = 1 << 40     // of a snapshot that somebody announces
)

// areas is how many there are for chunks.
const areas = 2

func chunkKey(area, i uint64) []byte {
	prefix := []byte(chunkPrefix + "/")
	if area > 0 {
		prefix = fmt.Appendf(nil, "%s%d/", chunkPrefix, area)
	}
	return binary.BigEndian.AppendUint32(prefix, uint32(i))
}

// A snapshotHead says what the snapshot on disk is, and in which of two areas its chunks are. A snapshot is written into the area that is free, a chunk at a
// time; the head that names it is what puts it in the place of the one before.
type snapshotHead struct {
	slot      Slot
	sizeBytes uint64
	sum       uint32
	area      uint64
	chunks    uint64
}

func (h snapshotHead) append(w *wirefmt.Writer) {
	w.Uint(uint64(h.slot))
	w.Uint(h.sizeBytes)
	w.Uint(uint64(h.sum))
	w.Uint(h.area)
	w.Uint(h.chunks)
}

func readSnapshotHead(env *protocol.Env[Message]) (h snapshotHead, err error) {
	b, ok := env.Get([]byte(snapshotKey))
	if !ok {
		return snapshotHead{}, nil
	}
	r := wirefmt.NewReader(b)
	h = snapshotHead{slot: Slot(r.Uint()), sizeBytes: r.Uint(), sum: r.Uint32()}
	h.chunks = (h.sizeBytes + chunkBytes - 1) / chunkBytes
	err = r.Err()
	if rest := r.Rest(); err == nil && len(rest) > 0 { // heads of earlier versions have none
		more := wirefmt.NewReader(rest)
		h.area, h.chunks = more.Uint(), more.Uint()
		err = more.Close()
	}
	if err != nil {
		return snapshotHead{}, fmt.Errorf("smr: the snapshot's head on disk: %w", err)
	}
	if h.area >= areas {
		return snapshotHead{}, fmt.Errorf("smr: the snapshot's head on disk: there is no area %d", h.area)
	}
	return h, nil
}

// LoadSnapshot returns the snapshot in the key space; ok is false if there is none. An error says that the disk does not have what was written.
func LoadSnapshot(env *protocol.Env[Message]) (s Snapshot, ok bool, err error) {
	h, err := readSnapshotHead(env)
	if err != nil || h.sizeBytes == 0 {
		return Snapshot{}, false, err
	}
	s = Snapshot{Slot: h.slot}
	for i := range h.chunks {
		chunk, ok := env.Get(chunkKey(h.area, i))
		if !ok || len(chunk) == 0 {
			return Snapshot{}, false, fmt.Errorf("smr: chunk %d of the snapshot at slot %d is not on disk", i, h.slot)
		}
		if i == 0 {
			s.Data = make([]byte, 0, min(h.sizeBytes, uint64(len(chunk))*h.chunks))
		}
		s.Data = append(s.Data, chunk...)
	}
	if got := Checksum(s.Data); got != h.sum || uint64(len(s.Data)) != h.sizeBytes {
		return Snapshot{}, false, fmt.Errorf("smr: the snapshot at slot %d on disk has %d bytes with the checksum %08x, not %d with %08x",
			h.slot, len(s.Data), got, h.sizeBytes, h.sum)
	}
	return s, true, nil
}
