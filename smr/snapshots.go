package smr

import (
	"encoding/binary"
	"fmt"
	"slices"

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
	snapshotKey  = "smr/snapshot" // slot, size, checksum
	chunkPrefix  = "smr/chunk/"   // then the number of the chunk: 4 bytes
	selfKey      = "smr/self"
	peerPrefix   = "smr/peer/" // then the ID: 4 bytes
	maxSizeBytes = 1 << 40     // of a snapshot that somebody announces
)

func chunkKey(i int) []byte { return binary.BigEndian.AppendUint32([]byte(chunkPrefix), uint32(i)) }

// SaveSnapshot writes a snapshot into the key space in place of the one that is there. Called with Env.Truncate in one call, it takes the place of the
// log up to its slot.
func SaveSnapshot(env *protocol.Env[Message], s Snapshot) {
	_, old, _, _ := readSnapshotHead(env)
	n := 0
	for chunk := range slices.Chunk(s.Data, chunkBytes) {
		env.Put(chunkKey(n), chunk)
		n++
	}
	for ; uint64(n)*chunkBytes < old; n++ {
		env.Delete(chunkKey(n))
	}
	var w wirefmt.Writer
	w.Uint(uint64(s.Slot))
	w.Uint(uint64(len(s.Data)))
	w.Uint(uint64(Checksum(s.Data)))
	env.Put([]byte(snapshotKey), w.Buf)
}

func readSnapshotHead(env *protocol.Env[Message]) (slot Slot, sizeBytes uint64, sum uint32, err error) {
	b, ok := env.Get([]byte(snapshotKey))
	if !ok {
		return 0, 0, 0, nil
	}
	r := wirefmt.NewReader(b)
	slot, sizeBytes, sum = Slot(r.Uint()), r.Uint(), r.Uint32()
	if err := r.Close(); err != nil {
		return 0, 0, 0, fmt.Errorf("smr: the snapshot's head on disk: %w", err)
	}
	return slot, sizeBytes, sum, nil
}

// LoadSnapshot returns the snapshot in the key space; ok is false if there is none. An error says that the disk does not have what was written.
func LoadSnapshot(env *protocol.Env[Message]) (s Snapshot, ok bool, err error) {
	slot, size, sum, err := readSnapshotHead(env)
	if err != nil || size == 0 {
		return Snapshot{}, false, err
	}
	s = Snapshot{Slot: slot}
	for i := 0; uint64(len(s.Data)) < size; i++ {
		chunk, ok := env.Get(chunkKey(i))
		if !ok || len(chunk) == 0 {
			return Snapshot{}, false, fmt.Errorf("smr: chunk %d of the snapshot at slot %d is not on disk", i, slot)
		}
		s.Data = append(s.Data, chunk...)
	}
	if got := Checksum(s.Data); got != sum || uint64(len(s.Data)) != size {
		return Snapshot{}, false, fmt.Errorf("smr: the snapshot at slot %d on disk has %d bytes with the checksum %08x, not %d with %08x",
			slot, len(s.Data), got, size, sum)
	}
	return s, true, nil
}
