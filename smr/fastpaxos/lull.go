package fastpaxos

import (
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/kit"
)

// idle reports whether the replica has nothing to do: there is a coordinator, slots are open, and
// nothing was voted for that is not executed.
func (r *replica) idle() (mark uint64, ok bool) {
	applied := r.State.Applied()
	if !r.active() || r.cand != nil || r.carry != nil || r.open == 0 || r.top > applied || len(r.ours) > 0 {
		return 0, false
	}
	if l := r.lead; l == nil && r.coordinator().ID == 0 || l != nil && (l.classic || l.changing != 0 || l.end > applied ||
		len(l.wants)+len(l.suggest)+len(l.proposed) > 0 || l.reads.Waiting()) {
		return 0, false
	}
	return kit.MarkOf(uint64(r.promised), uint64(r.open), uint64(applied)), true
}

// heardDrowsy takes the coordinator's word that it is there.
func (r *replica) heardDrowsy(from protocol.ID) {
	if from == r.promised.Owner() {
		r.silent = 0
	}
}

func (r *replica) lullPatience() time.Duration { return r.Tempo.Times(patience * beatEvery) }
