package store

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
type ByReason [Lapsed + 1]uint64

// Add counts one.
func (c *ByReason) Add(r Reason) {
	if int(r) < len(c) {
		c[r]++
	}
}

// Voted counts a vote: NoReason is a yes.
func (c *Counts) Voted(why Reason) {
	if why == NoReason {
		c.Accepted++
	} else {
		c.Refused.Add(why)
	}
}

// Decided counts a decision that is carried out. The reason is that of an abort.
func (c *Counts) Decided(committed bool, why Reason) {
	if committed {
		c.Committed++
	} else {
		c.Aborted.Add(why)
	}
}
