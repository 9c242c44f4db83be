package kit

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// chunkBytes is how much of a snapshot is in one key, and in one message.
const chunkBytes = 128 << 10

// A Snapshot is a state as State.Restore takes it, behind what its protocol puts in front, with the
// slot that it stands at. Data is not changed.
type Snapshot struct {
	Slot smr.Slot
	Data []byte
}

// The keys of a replica that this package uses begin with these.
const (
	snapshotKey  = "smr/snapshot" // a snapshotHead
	chunkPrefix  = "smr/chunk"    // then the area, if not the first, a slash, and the number of the chunk: 4 bytes
	selfKey      = "smr/self"
	peerPrefix   = "smr/peer/" // then the ID: 4 bytes
	markPrefix   = "smr/mark/" // then the ID: 4 bytes
	maxSizeBytes = 1 << 40     // of a snapshot that somebody announces
)

func chunkKey(area, i uint64) []byte {
	prefix := []byte(chunkPrefix + "/")
	if area > 0 {
		prefix = fmt.Appendf(nil, "%s%d/", chunkPrefix, area)
	}
	return binary.BigEndian.AppendUint32(prefix, uint32(i))
}

// A segment is a part of a snapshot that was written at a time, in an area of the key space, a
// chunk at a time.
type segment struct {
	area      uint64
	chunks    uint64
	sizeBytes uint64
	sum       uint32
}

// same reports whether two segments have the same bytes.
func (s segment) same(o segment) bool { return s.sizeBytes == o.sizeBytes && s.sum == o.sum }

func segmentFields(c *wirefmt.Coder, s *segment) {
	wirefmt.Uint(c, &s.area)
	wirefmt.Uint(c, &s.chunks)
	wirefmt.Uint(c, &s.sizeBytes)
	wirefmt.Uint32(c, &s.sum)
}

// segmentBytes is how long a segment is at least, as bytes.
const segmentBytes = 4

// delete removes a segment's chunks.
func (s segment) delete(env *protocol.Env[smr.Message]) {
	for i := range s.chunks {
		env.Delete(chunkKey(s.area, i))
	}
}

// A snapshotHead says what the snapshot on disk is: the first segment has all of a state, each
// further one what has changed since the one before. A segment is written into an area that is
// free; the head that names it is what makes it a part of the snapshot.
type snapshotHead struct {
	slot     smr.Slot
	front    []byte // what the protocol has put in front of the state
	whole    bool   // the front is in the only segment, so that none can follow
	segments []segment
	since    tail // what was executed since
}

var headLayout = wirefmt.NewLayout("smr: the snapshot's head on disk", snapshotHeadFields)

// headVersion is of the head's layout.
const headVersion = 1

func snapshotHeadFields(c *wirefmt.Coder, h *snapshotHead) {
	wirefmt.Uint(c, &h.slot)
	wirefmt.Version(c, headVersion)
	wirefmt.Bytes(c, &h.front)
	wirefmt.Bool(c, &h.whole)
	wirefmt.List(c, &h.segments, segmentBytes, segmentFields)
	tailFields(c, &h.since)
}

// delete removes the chunks of all segments.
func (h snapshotHead) delete(env *protocol.Env[smr.Message]) {
	for _, old := range slices.Concat(h.segments, h.since.segments) {
		old.delete(env)
	}
}

// newest returns the slot of the newest moment that is on disk.
func (h snapshotHead) newest() smr.Slot { return max(h.slot, h.since.slot) }

// there reports whether there is a snapshot.
func (h snapshotHead) there() bool { return len(h.segments) > 0 }

// last returns the newest segment.
func (h snapshotHead) last() segment { return h.segments[len(h.segments)-1] }

// free returns the lowest area that is not in use, nor among others.
func (h snapshotHead) free(others ...uint64) (area uint64) {
	used := slices.Concat(h.segments, h.since.segments)
	for slices.Contains(others, area) || slices.ContainsFunc(used, func(s segment) bool { return s.area == area }) {
		area++
	}
	return area
}

// changeBytes returns how many bytes the segments have that are not the first.
func (h snapshotHead) changeBytes() (n uint64) {
	for _, s := range h.segments[1:] {
		n += s.sizeBytes
	}
	return n
}

// outgrown reports whether the segments are to be merged: those of changes are as large as the
// state.
func (h snapshotHead) outgrown() bool {
	return h.changeBytes() >= h.segments[0].sizeBytes || len(h.segments) >= maxSegments
}

// mostChanges reports whether at least half of the state has changed for the newest segment. To
// write all of it, when the segments are to be merged, is less then than to write another segment
// beside.
func (h snapshotHead) mostChanges() bool { return 2*h.last().sizeBytes >= h.segments[0].sizeBytes }

func readSnapshotHead(env *protocol.Env[smr.Message]) (snapshotHead, error) {
	b, ok := env.Get([]byte(snapshotKey))
	if !ok {
		return snapshotHead{}, nil
	}
	h, err := headLayout.Decode(b)
	if err != nil {
		return snapshotHead{}, err
	}
	for _, s := range slices.Concat(h.segments, h.since.segments) {
		if s.sizeBytes > maxSizeBytes || s.chunks > s.sizeBytes {
			return snapshotHead{}, fmt.Errorf("smr: the snapshot's head on disk: area %d has %d bytes in %d chunks", s.area,
				s.sizeBytes, s.chunks)
		}
	}
	return h, nil
}

// A storedReader reads the snapshot in the key space a chunk at a time. If another one takes its
// place meanwhile, it says that a chunk is missing, or wrong.
type storedReader struct {
	head  snapshotHead
	begun bool   // the front was read
	at    int    // the segment that is being read
	chunk uint64 // the next one of it
	have  uint64 // bytes of it
	sum   uint32 // of them
	// of the last piece, what read has not handed out; its own, as the key space's bytes stay for a
	// call only
	rest    []byte
	entered bool // how large the segment is was read
}

// next returns the next piece, io.EOF behind the last one.
func (v *storedReader) next(env *protocol.Env[smr.Message]) ([]byte, error) {
	many := len(v.head.segments) > 1
	if !v.begun {
		v.begun = true
		piece := slices.Clone(v.head.front)
		if many {
			piece = binary.AppendUvarint(append(piece, chainVersion), uint64(len(v.head.segments)))
		}
		return piece, nil
	}
	if v.at == len(v.head.segments) {
		return nil, io.EOF
	}
	s := v.head.segments[v.at]
	if many && !v.entered {
		v.entered = true
		return binary.AppendUvarint(nil, s.sizeBytes), nil
	}
	if v.chunk < s.chunks {
		return v.nextChunk(env, s)
	}
	if v.sum != s.sum || v.have != s.sizeBytes {
		return nil, fmt.Errorf("smr: area %d of the snapshot at slot %d on disk has %d bytes with the checksum %08x, not "+
			"%d with %08x",
			s.area, v.head.slot, v.have, v.sum, s.sizeBytes, s.sum)
	}
	v.at, v.chunk, v.have, v.sum, v.entered = v.at+1, 0, 0, 0, false
	return nil, nil
}

func (v *storedReader) nextChunk(env *protocol.Env[smr.Message], s segment) ([]byte, error) {
	chunk, ok := env.Get(chunkKey(s.area, v.chunk))
	if !ok || len(chunk) == 0 {
		return nil, fmt.Errorf("smr: chunk %d of area %d of the snapshot at slot %d is not on disk", v.chunk, s.area,
			v.head.slot)
	}
	v.chunk++
	v.have += uint64(len(chunk))
	if v.have > s.sizeBytes {
		return nil, fmt.Errorf("smr: area %d of the snapshot at slot %d on disk has more than %d bytes", s.area, v.head.slot,
			s.sizeBytes)
	}
	v.sum = crc32.Update(v.sum, castagnoli(), chunk)
	return chunk, nil
}

// read fills a buffer with the next pieces.
func (v *storedReader) read(env *protocol.Env[smr.Message], p []byte) (n int, err error) {
	piece := v.rest
	for {
		m := copy(p[n:], piece)
		if n, piece = n+m, piece[m:]; n == len(p) {
			v.rest = bytes.Clone(piece)
			return n, nil
		}
		if piece, err = v.next(env); err != nil {
			v.rest = nil
			return n, err
		}
	}
}

// An areaWriter writes a segment.
type areaWriter struct {
	segment
	from io.Reader
}

// write writes a chunk, and reports whether it was the last one.
func (v *areaWriter) write(env *protocol.Env[smr.Message], size int) (last bool, err error) {
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
	if n < size/2 {
		chunk = append([]byte(nil), chunk[:n]...)
	}
	v.put(env, chunk[:n:n])
	return last, nil
}

// put writes a chunk.
func (v *areaWriter) put(env *protocol.Env[smr.Message], chunk []byte) {
	env.Put(chunkKey(v.area, v.chunks), chunk)
	v.chunks++
	v.sizeBytes += uint64(len(chunk))
	v.sum = crc32.Update(v.sum, castagnoli(), chunk)
}

// finish makes a head that names the segment the newest one.
func (v *areaWriter) finish(env *protocol.Env[smr.Message], head snapshotHead) {
	for i := v.chunks; ; i++ { // of one that a crash, or another snapshot, kept from its end
		key := chunkKey(v.area, i)
		if _, ok := env.Get(key); !ok {
			break
		}
		env.Delete(key)
	}
	env.Put([]byte(snapshotKey), headLayout.Encode(head))
}
