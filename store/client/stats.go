package client

import (
	"sync/atomic"

	"github.com/foresay/foresay/store"
)

// Stats are what a client has done so far.
type Stats struct {
	Attempts  uint64
	Committed uint64 // attempts, as the following
	Aborted   uint64
	Unknown   uint64
	Blocked   uint64
	Rejected  uint64
	// Guesses are the reads that were answered first by one replica, under the engine; Right those of them where the quorum had the same version.
	Guesses uint64
	Right   uint64
}

// Stats returns the present figures.
func (c *Client) Stats() Stats {
	s := &c.stats
	return Stats{
		Attempts: s.attempts.Load(), Committed: s.verdicts[store.Committed].Load(), Aborted: s.verdicts[store.Aborted].Load(),
		Unknown: s.verdicts[store.Unknown].Load(), Blocked: s.verdicts[store.Blocked].Load(), Rejected: s.verdicts[store.Rejected].Load(),
		Guesses: s.guesses.Load(), Right: s.right.Load(),
	}
}

type counters struct {
	attempts       atomic.Uint64
	verdicts       [store.Rejected + 1]atomic.Uint64
	guesses, right atomic.Uint64
}

func (c *counters) count(o store.Outcome) {
	if int(o.Verdict) < len(c.verdicts) {
		c.verdicts[o.Verdict].Add(1)
	}
}

func (c *counters) guessed(right bool) {
	c.guesses.Add(1)
	if right {
		c.right.Add(1)
	}
}
