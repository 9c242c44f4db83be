package mencius

import (
	"fmt"
	"math"
	"slices"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// window is how far above the last applied slot a command may be proposed, and how long an epoch
// goes on after the slot that changes its members: nobody who has not applied that slot can have
// proposed anything behind the epoch's end.
const window = 1 << 13

// epoch is a row of slots that belong to the same members in turn. An epoch without members is that
// of a replica that knows nothing yet.
type epoch struct {
	number  Epoch
	first   smr.Slot
	last    smr.Slot      // 0 until its members are changed
	members []protocol.ID // in the order of their tracks
	tracks  []*track
}

func newEpoch(number Epoch, first smr.Slot, members []protocol.ID) *epoch {
	e := &epoch{number: number, first: first, members: members}
	for i, id := range members {
		e.tracks = append(e.tracks, &track{
			index: uint32(i), owner: id, skips: math.MaxUint64, acks: make([]ack, len(members)),
		})
	}
	return e
}

func memberIDs(s *kit.State) []protocol.ID {
	var ids []protocol.ID
	for _, m := range s.Members() {
		ids = append(ids, m.ID)
	}
	return ids
}

// at returns whose track a slot is in, and where. The slot is not below the epoch.
func (e *epoch) at(s smr.Slot) (*track, Pos) {
	n := smr.Slot(len(e.members))
	return e.tracks[(s-e.first)%n], Pos((s-e.first)/n) + 1
}

func (e *epoch) slot(l *track, p Pos) smr.Slot {
	return e.first + smr.Slot(p-1)*smr.Slot(len(e.members)) + smr.Slot(l.index)
}

// upTo returns a track's last position at or below a slot, 0 if there is none.
func (e *epoch) upTo(l *track, s smr.Slot) Pos {
	if s < e.first+smr.Slot(l.index) {
		return 0
	}
	return Pos((s-e.first-smr.Slot(l.index))/smr.Slot(len(e.members))) + 1
}

// index returns a member's place, or -1.
func (e *epoch) index(id protocol.ID) int { return slices.Index(e.members, id) }

// promises returns what was promised in all tracks.
func (e *epoch) promises() PromiseRecord {
	rec := PromiseRecord{Epoch: e.number}
	for _, l := range e.tracks {
		rec.Ballots = append(rec.Ballots, l.promised)
	}
	return rec
}

// front returns what a snapshot has in front of the state.
func (e *epoch) front() []byte {
	var w wirefmt.Writer
	w.Uint(uint64(e.number))
	w.Uint(uint64(e.first))
	w.Uint(uint64(e.last))
	w.List(len(e.members))
	for _, id := range e.members {
		w.Uint(uint64(id))
	}
	return w.Buf
}

// frontBytes tells how long what front has returned is.
func frontBytes(begin []byte) (sizeBytes int, ok bool) {
	r := wirefmt.NewReader(begin)
	r.Uint()
	r.Uint()
	r.Uint()
	for range r.List(1) {
		r.Uint32()
	}
	ok = r.Err() == nil
	return len(begin) - len(r.Rest()), ok
}

// readFront returns the epoch of a snapshot at a slot.
func readFront(at smr.Slot, front []byte) (*epoch, error) {
	r := wirefmt.NewReader(front)
	number, first, last := Epoch(r.Uint()), smr.Slot(r.Uint()), smr.Slot(r.Uint())
	var members []protocol.ID
	for range r.List(1) {
		members = append(members, protocol.ID(r.Uint32()))
	}
	if err := r.Close(); err != nil {
		return nil, fmt.Errorf("mencius: snapshot at slot %d: %w", at, err)
	}
	if number == 0 || first == 0 || len(members) == 0 || at+1 < first {
		return nil, fmt.Errorf("mencius: snapshot at slot %d: epoch %d of %d members begins with slot %d", at, number,
			len(members), first)
	}
	e := newEpoch(number, first, members)
	e.last = last
	return e, nil
}
