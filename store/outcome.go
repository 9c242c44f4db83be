package store

import (
	"fmt"
	"time"
)

// Verdict is how a transaction ended, as far as its client knows.
type Verdict uint8

const (
	// Unknown: no answer came, or those who knew have forgotten. It may have taken effect, once, or
	// take effect yet.
	Unknown Verdict = iota
	// Committed: it took effect.
	Committed
	// Aborted: it took no effect and never will.
	Aborted
	// Blocked: it cannot be decided before a site says what it voted. Until then its keys are
	// locked.
	Blocked
	// Rejected: it was never sent, since it is malformed or there is no room.
	Rejected
)

// String returns the verdict's name.
func (v Verdict) String() string {
	switch v {
	case Unknown:
		return "unknown"
	case Committed:
		return "committed"
	case Aborted:
		return "aborted"
	case Blocked:
		return "blocked"
	case Rejected:
		return "rejected"
	}
	return fmt.Sprintf("Verdict(%d)", uint8(v))
}

// Reason is why a site refused a transaction.
type Reason uint8

const (
	// NoReason is that of what was not refused.
	NoReason Reason = iota
	// StaleRead: a key that was read has a newer version.
	StaleRead
	// StaleWrite: a key to be written has a version not below the transaction's, whose client's
	// clock is behind.
	StaleWrite
	// Locked: another transaction that is not decided yet has the key.
	Locked
	// Reserved: an older transaction wants the key.
	Reserved
	// Ahead: the transaction's version is too far in the future.
	Ahead
	// Fenced: somebody asked how the site had voted before it had, so it may not vote yes any more.
	Fenced
	// Old: the site has forgotten all transactions of that time.
	Old
	// Overloaded: the site remembers as many transactions as it may, all of which others still
	// need. Later there is room.
	Overloaded
	// Lapsed: what the client stood on was not confirmed in time, or was wrong.
	Lapsed
)

// String returns the reason in words.
func (r Reason) String() string {
	switch r {
	case NoReason:
		return "none"
	case StaleRead:
		return "stale read"
	case StaleWrite:
		return "stale write"
	case Locked:
		return "locked"
	case Reserved:
		return "reserved"
	case Ahead:
		return "version ahead of time"
	case Fenced:
		return "fenced"
	case Old:
		return "forgotten"
	case Overloaded:
		return "overloaded, retry later"
	case Lapsed:
		return "not confirmed in time"
	}
	return fmt.Sprintf("Reason(%d)", uint8(r))
}

// Outcome is how a transaction ended.
type Outcome struct {
	Verdict Verdict
	Reason  Reason // of an abort: one of a site that refused it
	// Fast says that a committed one was decided by the protocol's fast path: of none of its shards
	// did the coordinator wait for more than the same word of a supermajority of its copies.
	Fast bool
	// Held is for how long it waited at most, at leaders, for others that may have been sent before
	// it (Config.ByArrival).
	Held   time.Duration
	Course *Course  // of a transaction that has read a snapshot: how it came to its end; nil: nobody asked, or knows
	Sites  []string // of what is not decided: those whose votes are missing
	Detail string   // of a rejected one: what is wrong with it; of an unknown one: what those sites say, if anything
}
