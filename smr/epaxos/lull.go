package epaxos

import (
	"time"

	"github.com/foresay/foresay/smr/kit"
)

// idle reports whether the replica has nothing to do: all instances that it knows of are executed.
func (r *replica) idle() (mark uint64, ok bool) {
	if !r.active || r.ahead != 0 || r.Batch.Waits() ||
		len(r.queue)+len(r.mine)+len(r.waiting)+len(r.fences)+len(r.reads.queue)+len(r.reads.polls) > 0 {
		return 0, false
	}
	marks := []uint64{r.generation}
	for p := range r.rows {
		if w := &r.rows[p]; w.done < w.top() {
			return 0, false
		}
		marks = append(marks, r.rows[p].top())
	}
	return kit.MarkOf(marks...), true
}

// lullPatience is five ticks, as everywhere else.
func (r *replica) lullPatience() time.Duration { return r.Tempo.Times(resendTicks * 0.5) }
