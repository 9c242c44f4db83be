package mencius

import (
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/kit"
)

// idle reports whether the replica has nothing to do: each member leads its own track, all commands
// are executed, and all members have all of the own track.
func (r *replica) idle() (mark uint64, ok bool) {
	e := r.epoch
	if !r.active() || e.last != 0 || r.seen > r.State.Applied() || r.Batch.Waits() || r.reads.Waiting() ||
		len(r.queue)+len(r.mine)+len(r.parts)+len(r.changes) > 0 || !slices.Equal(e.members, r.State.MemberIDs()) {
		return 0, false
	}
	marks := []uint64{uint64(e.number), uint64(r.State.Applied())}
	for i, l := range e.tracks {
		if l.cand != nil || l.leader() != l.owner || (l.lead != nil) != (i == r.own) {
			return 0, false
		}
		marks = append(marks, uint64(l.promised))
	}
	own := e.tracks[r.own]
	for i := range e.members {
		if i != r.own && r.ackedBy(own, i) < own.end() {
			return 0, false
		}
	}
	return kit.MarkOf(marks...), true
}

// heardDrowsy takes a member's word that it is there.
func (r *replica) heardDrowsy(from protocol.ID) {
	for _, l := range r.epoch.tracks {
		if l.leader() == from {
			l.silent = 0
		}
	}
}

func (r *replica) lullPatience() time.Duration { return r.Tempo.Times(patience * beatEvery) }
