package kit

import "github.com/foresay/foresay/bft"

// pace is how long a replica waits for others. Its timeouts double when they may have been too
// short, and come down again with what becomes stable, as long as the requests of late leave them
// room: else a group whose messages take longer than it was told would change views for ever, each
// time that its timeouts have come down.
type pace struct {
	// Patience is for how many ticks a request may wait, and a new view be awaited, at first.
	Patience  int
	first     bft.Seq // the last place with which the view began
	late      bool    // the view ends as a request has waited for too long
	waited    int     // the longest that one has waited for its primary since the last stable checkpoint, in ticks
	unrelaxed int     // stable checkpoints since timeouts came down last
	spoke     int     // the tick of the last status
}

const (
	// roomToWait is how many times as long as requests wait the timeout is at least that comes down.
	roomToWait = 4
	// maxUnrelaxed is after how many checkpoints it comes down in any case, as a primary may keep
	// requests waiting on purpose.
	maxUnrelaxed = 8
	// maxSlower bounds how many times the time between two words of a replica doubles.
	maxSlower = 3
)

// Timeout is for how many ticks a request may wait, and a new view be awaited.
func (r *Replica) Timeout() int { return r.Patience << r.Doublings }

// settle notes that a request is committed.
func (r *Replica) settle(d bft.Digest) {
	if b := r.Requests.Body(d); b != nil && b.waiting {
		r.waited = max(r.waited, r.Tick-b.Since)
	}
	r.Requests.Settled(d)
}

// relax lets timeouts come down when a checkpoint has become stable.
func (r *Replica) relax() {
	r.unrelaxed++
	if r.Doublings > 0 && (r.waited*roomToWait <= r.Timeout()/2 || r.unrelaxed >= maxUnrelaxed) {
		r.Doublings, r.unrelaxed = r.Doublings-1, 0
	}
	r.waited = 0
}

// Speaks reports whether it is time to tell the others how this replica is, and notes that it does:
// if it is busy, after so many ticks. Whose timeouts have doubled asks more seldom, as those whom
// it asks may be slow because of what they are asked.
func (r *Replica) Speaks(busy bool, every int) bool {
	if !busy {
		every = MaxIdleTicks
	}
	if r.Tick-r.spoke < every<<min(r.Doublings, maxSlower) {
		return false
	}
	r.spoke = r.Tick
	return true
}
