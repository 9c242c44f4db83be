package replicatedcommit

import "github.com/foresay/foresay/store"

// Counts is what a server has done since it started.
type Counts struct {
	// Committed and Aborted are the transactions of which it has a part, and has carried out the
	// decision. Aborted ones are told apart by why this server refused them: NoReason is of those
	// that others refused.
	Committed uint64
	Aborted   ByReason
	// Accepted and Refused are the votes that it gave, those on transactions that only read
	// included.
	Accepted uint64
	Refused  ByReason
	// CopiedValues and CopiedBytes are the values that it has got from other servers as it took the
	// place of a lost one, or after it was away, and what they and their keys take.
	CopiedValues, CopiedBytes uint64
}

// ByReason counts by reason.
type ByReason [store.Overloaded + 1]uint64

func (c *ByReason) add(r store.Reason) {
	if int(r) < len(c) {
		c[r]++
	}
}

// voted counts a vote.
func (c *Counts) voted(why store.Reason) {
	if why == store.NoReason {
		c.Accepted++
	} else {
		c.Refused.add(why)
	}
}

// decided counts a decision that is carried out.
func (c *Counts) decided(r *record) {
	if r.state == Committed {
		c.Committed++
	} else {
		c.Aborted.add(r.reason)
	}
}
