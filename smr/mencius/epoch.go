package mencius

import (
	"fmt"
	"math"
	"slices"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// window is how far above the last applied slot a command may be proposed, and how long an epoch
// goes on after the slot that changes its members: nobody who has not applied that slot can have
// proposed anything behind the epoch's end.
const window = 1 << 13

// epoch is a row of slots that belong to the same members in turn. An epoch without members is that
// of a replica that knows nothing yet.
type epoch struct {
	number  epochNumber
	first   smr.Slot
	last    smr.Slot      // 0 until its members are changed
	members []protocol.ID // in the order of their tracks
	tracks  []*track
}

func newEpoch(number epochNumber, first smr.Slot, members []protocol.ID) *epoch {
	e := &epoch{number: number, first: first, members: members}
	for i, id := range members {
		e.tracks = append(e.tracks, &track{
			index: uint32(i), owner: id, skips: math.MaxUint64, acks: make([]ack, len(members)),
		})
	}
	return e
}

// at returns whose track a slot is in, and where. The slot is not below the epoch.
func (e *epoch) at(s smr.Slot) (*track, pos) {
	n := smr.Slot(len(e.members))
	return e.tracks[(s-e.first)%n], pos((s-e.first)/n) + 1
}

func (e *epoch) slot(l *track, p pos) smr.Slot {
	return e.first + smr.Slot(p-1)*smr.Slot(len(e.members)) + smr.Slot(l.index)
}

// upTo returns a track's last position at or below a slot, 0 if there is none.
func (e *epoch) upTo(l *track, s smr.Slot) pos {
	if s < e.first+smr.Slot(l.index) {
		return 0
	}
	return pos((s-e.first-smr.Slot(l.index))/smr.Slot(len(e.members))) + 1
}

// index returns a member's place, or -1.
func (e *epoch) index(id protocol.ID) int { return slices.Index(e.members, id) }

// promises returns what was promised in all tracks.
func (e *epoch) promises() promiseRecord {
	rec := promiseRecord{Epoch: e.number}
	for _, l := range e.tracks {
		rec.Ballots = append(rec.Ballots, l.promised)
	}
	return rec
}

// front is what a snapshot has in front of the state.
type front struct {
	number  epochNumber
	first   smr.Slot
	last    smr.Slot
	members []protocol.ID
}

var frontLayout = wirefmt.NewLayout("mencius: snapshot", func(c *wirefmt.Coder, f *front) {
	wirefmt.Uint(c, &f.number)
	wirefmt.Uint(c, &f.first)
	wirefmt.Uint(c, &f.last)
	wirefmt.List(c, &f.members, 1, wirefmt.Uint32)
})

func (e *epoch) front() []byte {
	return frontLayout.Encode(front{e.number, e.first, e.last, e.members})
}

// readFront returns the epoch of a snapshot at a slot.
func readFront(at smr.Slot, b []byte) (*epoch, error) {
	f, err := frontLayout.Decode(b)
	if err != nil {
		return nil, fmt.Errorf("at slot %d: %w", at, err)
	}
	if f.number == 0 || f.first == 0 || len(f.members) == 0 || at+1 < f.first {
		return nil, fmt.Errorf("mencius: snapshot at slot %d: epoch %d of %d members begins with slot %d", at, f.number,
			len(f.members), f.first)
	}
	e := newEpoch(f.number, f.first, f.members)
	e.last = f.last
	return e, nil
}
