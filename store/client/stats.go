package client

import (
	"sync/atomic"
	"time"

	"github.com/foresay/foresay/store"
)

// Stats are what a client has done so far.
type Stats struct {
	Attempts  uint64
	Committed uint64 // attempts, as the following
	Aborted   uint64
	// AbortedBy are the aborted ones by why a site refused them.
	AbortedBy [store.Lapsed + 1]uint64
	Unknown   uint64
	Blocked   uint64
	Rejected  uint64
	// Guesses are the reads that were answered first by one replica, under the engine; Right those
	// of them where the quorum had the same version.
	Guesses uint64
	Right   uint64
}

// Stats returns the present figures.
func (c *Client) Stats() Stats {
	s := &c.stats
	out := Stats{
		Attempts: s.attempts.Load(), Committed: s.verdicts[store.Committed].Load(), Aborted: s.verdicts[store.Aborted].Load(),
		Unknown: s.verdicts[store.Unknown].Load(), Blocked: s.verdicts[store.Blocked].Load(),
		Rejected: s.verdicts[store.Rejected].Load(),
		Guesses:  s.guesses.Load(), Right: s.right.Load(),
	}
	for i := range s.abortedBy {
		out.AbortedBy[i] = s.abortedBy[i].Load()
	}
	return out
}

// Attempted is an attempt of a transaction that came to an outcome.
type Attempted struct {
	Mode    Mode // in which it was made; Auto has chosen
	Outcome store.Outcome
	// Took is since the attempt began, SinceFirst since the transaction's first attempt did: of one
	// that is committed, how long its caller waited. In a task both are how long the commit took.
	Took, SinceFirst time.Duration
}

type counters struct {
	attempts       atomic.Uint64
	verdicts       [store.Rejected + 1]atomic.Uint64
	abortedBy      [store.Lapsed + 1]atomic.Uint64
	guesses, right atomic.Uint64
}

// attempted counts an attempt that came to an outcome.
func (c *Client) attempted(a Attempted) {
	s, o := &c.stats, a.Outcome
	if int(o.Verdict) < len(s.verdicts) {
		s.verdicts[o.Verdict].Add(1)
	}
	if o.Verdict == store.Aborted && int(o.Reason) < len(s.abortedBy) {
		s.abortedBy[o.Reason].Add(1)
	}
	if c.cfg.Attempted != nil {
		c.cfg.Attempted(a)
	}
}

func (c *counters) guessed(right bool) {
	c.guesses.Add(1)
	if right {
		c.right.Add(1)
	}
}
