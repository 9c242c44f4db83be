package kit

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/smr"
)

// A snapshot may be larger than what is free of the memory, and comes in pieces of any size: from
// the disk, or from another replica. So it is read as it comes, by stages that keep what is cut in
// two by the end of a piece, and the machine's bytes go on to the machine at once. That they are
// good is known only at the end of a part, by its checksum: until then the machine restores them
// beside its state, which stays as it is and goes on being used (smr.Restoration.Become).

// restoring begins to restore something beside the machine's state.
func restoring(machine smr.StateMachine) smr.Restoration {
	if m, ok := machine.(smr.Restorer); ok {
		return m.Restoring()
	}
	return &collected{machine: machine, parts: make([]bytes.Buffer, 1)}
}

// collected keeps what a machine restores in one call.
type collected struct {
	machine smr.StateMachine
	parts   []bytes.Buffer // the last one is being written
}

func (c *collected) Write(p []byte) (int, error) { return c.parts[len(c.parts)-1].Write(p) }

func (c *collected) End() error {
	c.parts = append(c.parts, bytes.Buffer{})
	return nil
}

func (c *collected) Become() error {
	for i := range c.parts[:len(c.parts)-1] {
		var err error
		if i == 0 {
			err = c.machine.Restore(&c.parts[i])
		} else {
			err = c.machine.(smr.Differ).Patch(&c.parts[i])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A restorer takes a state as Snapshot has it, or a state and what has changed since, each a part
// with its size in front.
type restorer struct {
	machine smr.StateMachine
	to      smr.Restoration
	stage   restoringStage
	number  []byte // what has come of the number that is being read
	parts   uint64 // that have not begun
	part    restoredPart
	ended   int // parts
	err     error

	// newest is what the last part has beside the machine's state. The rest is for the snapshots
	// that follow.
	newest     image
	wholeBytes int // of the first part
	last       segment
}

type restoringStage uint8

const (
	atFirst restoringStage = iota // the first byte says whether there are several parts
	inCount
	inSize
	inPart
	allRead
)

// image is what a state, or what has changed of one, has beside its machine.
type image struct {
	applied  smr.Slot
	members  members
	sessions *sessions
}

var imageLayout = wirefmt.NewLayout("smr: snapshot", imageFields)

func imageFields(c *wirefmt.Coder, i *image) {
	if c.Reading() {
		i.sessions = newSessions()
	}
	wirefmt.Uint(c, &i.applied)
	i.members.fields(c)
	i.sessions.fields(c)
}

// restoring returns what takes a state of so many bytes.
func (s *State) restoring(sizeBytes uint64) *restorer {
	return &restorer{machine: s.machine, to: restoring(s.machine), part: restoredPart{version: snapshotVersion,
		sizeBytes: sizeBytes}}
}

// Write takes the next bytes, and keeps none of them. After an error it takes none.
func (v *restorer) Write(b []byte) (int, error) {
	size := len(b)
	for len(b) > 0 && v.err == nil {
		switch v.stage {
		case atFirst:
			if v.stage = inPart; b[0] == chainVersion {
				v.stage, b = inCount, b[1:]
			}
		case inCount:
			v.number, b = append(v.number, b[0]), b[1:]
			if n, ok := v.readNumber(); ok {
				v.parts, v.stage = n, inSize
				if _, ok := v.machine.(smr.Differ); n > 1 && !ok {
					v.err = fmt.Errorf("smr: snapshot of a state and what has changed since, of which the state machine, a %T, "+
						"knows nothing", v.machine)
				} else if n == 0 {
					v.err = fmt.Errorf("smr: snapshot without a state")
				}
			}
		case inSize:
			v.number, b = append(v.number, b[0]), b[1:]
			if n, ok := v.readNumber(); ok {
				v.part = restoredPart{version: snapshotVersion, sizeBytes: n}
				if v.ended > 0 {
					v.part.version = changesVersion
				}
				v.parts--
				v.stage = inPart
			}
		case inPart:
			n := min(uint64(len(b)), v.part.sizeBytes-v.part.have)
			v.err = v.part.write(b[:n], v.to)
			if b = b[n:]; v.err == nil && v.part.have >= v.part.sizeBytes {
				v.err = v.endPart()
			}
		default:
			v.err = fmt.Errorf("smr: snapshot: %d bytes too many", len(b))
		}
	}
	return size, v.err
}

func (v *restorer) readNumber() (n uint64, ok bool) {
	n, read := binary.Uvarint(v.number)
	if read < 0 {
		v.err = fmt.Errorf("smr: snapshot: a number is too large")
	}
	if read > 0 {
		v.number = nil
	}
	return n, read > 0
}

func (v *restorer) endPart() error {
	p := &v.part
	switch {
	case p.image == nil:
		return fmt.Errorf("smr: snapshot of %d bytes is cut off", p.sizeBytes)
	case p.sum != binary.BigEndian.Uint32(p.seal):
		return fmt.Errorf("smr: snapshot of %d bytes has the checksum %08x, not %08x", p.sizeBytes, p.sum, p.seal)
	}
	if err := v.to.End(); err != nil {
		return fmt.Errorf("smr: restore the state machine at slot %d: %w", p.image.applied, err)
	}
	v.newest, v.last = *p.image, segment{sizeBytes: p.sizeBytes, sum: crc32.Update(p.sum, castagnoli(), p.seal)}
	if v.ended++; v.ended == 1 {
		v.wholeBytes = int(p.sizeBytes)
	}
	if v.stage = inSize; v.parts == 0 {
		v.stage = allRead
	}
	return nil
}

// end says that all was written.
func (v *restorer) end() error {
	if v.err == nil && v.stage != allRead {
		v.err = fmt.Errorf("smr: snapshot: a part of it is missing")
	}
	return v.err
}

// sealBytes is how long the checksum behind a part is.
const sealBytes = 4

// A restoredPart is a state, or what has changed of one, that is being read.
type restoredPart struct {
	version   byte
	sizeBytes uint64
	have      uint64 // bytes of it
	sum       uint32 // of those but the seal
	head      []byte // what has come of what is in front of the machine's bytes
	tryAt     int    // how long that is when it is looked at again, as nothing tells its length
	image     *image // what was in it, nil as long as it is not there
	seal      []byte
}

func (p *restoredPart) write(b []byte, to io.Writer) error {
	if p.sizeBytes <= sealBytes {
		return fmt.Errorf("smr: snapshot of %d bytes is cut off", p.sizeBytes)
	}
	body := p.sizeBytes - sealBytes
	n := min(uint64(len(b)), body-min(p.have, body))
	p.have += uint64(len(b))
	b, p.seal = b[:n], append(p.seal, b[n:]...)
	p.sum = crc32.Update(p.sum, castagnoli(), b)
	if p.image == nil {
		rest, err := p.readHead(b, p.have >= body)
		if err != nil || p.image == nil {
			return err
		}
		b = rest
	}
	if _, err := to.Write(b); err != nil {
		return fmt.Errorf("smr: restore the state machine at slot %d: %w", p.image.applied, err)
	}
	return nil
}

// readHead takes more of what is in front of the machine's bytes, of which it returns the first if
// all of it is there.
func (p *restoredPart) readHead(b []byte, all bool) (rest []byte, err error) {
	p.head = append(p.head, b...)
	if len(p.head) > 0 && p.head[0] != p.version {
		return nil, fmt.Errorf("smr: snapshot of version %d, this program knows version %d", p.head[0], p.version)
	}
	if len(p.head) == 0 || len(p.head) < p.tryAt && !all {
		return nil, nil
	}
	i, rest, err := imageLayout.DecodeFirst(p.head[1:])
	switch {
	case err == nil:
		p.image, p.head = &i, nil
		return rest, nil
	case all:
		return nil, err
	}
	p.tryAt = 2 * len(p.head)
	return nil, nil
}

// become replaces the state by one of which all was read. After an error of the state machine the
// state is not used.
func (s *State) become(v *restorer) error {
	if err := v.to.Become(); err != nil {
		return fmt.Errorf("smr: restore the state machine at slot %d: %w", v.newest.applied, err)
	}
	s.applied, s.members, s.sessions = v.newest.applied, v.newest.members, v.newest.sessions
	s.saver = saver{
		self: s.self, keeps: s.keeps, underWay: s.underWay, savedBytes: int(v.last.sizeBytes), wholeBytes: v.wholeBytes,
		saved: s.saved,
	}
	if machine, ok := s.machine.(smr.Differ); ok {
		machine.Mark()
		s.mark = v.last
	}
	return nil
}

// Restore replaces the state by one that Snapshot returned. After an error of the state machine the
// state is not used; other errors leave it as it was.
func (s *State) Restore(snapshot []byte) error {
	v := s.restoring(uint64(len(snapshot)))
	_, _ = v.Write(snapshot) // end tells its error
	if err := v.end(); err != nil {
		return err
	}
	return s.become(v)
}
