package zyzzyva

import "github.com/foresay/foresay/bft"

// heard is what a member has said of an operation: the last that it has speculated, certified, and
// that is final, each on its own.
type heard struct {
	speculated, certified, final bool

	stamp  stampBody  // of what it has speculated
	result bft.Digest // of that

	at        heldAt // of what it has certified
	concluded bft.Digest
}

// heldAt is an operation's place, the history up to it, and the operation's result.
type heldAt struct {
	seq             bft.Seq
	history, result bft.Digest
}

// confirmed returns the result that no view change can take away any more. All members have stamped
// one history, and say that it came of that; or a quorum has certificates of one history up to the
// operation's place; or so many call it final that one of them does not lie. Words on different
// histories do not add up, though the result is the same: the next view may begin with another one.
func confirmed(words []heard, quorum, witness int) (bft.Digest, bool) {
	for _, h := range words {
		all, certified, final := 0, 0, 0
		for _, o := range words {
			if h.speculated && o.speculated && o.stamp == h.stamp && o.result == h.result {
				all++
			}
			if h.certified && o.certified && o.at == h.at {
				certified++
			}
			if h.final && o.final && o.concluded == h.concluded {
				final++
			}
		}
		switch {
		case all == len(words):
			return h.result, true
		case certified >= quorum:
			return h.at.result, true
		case final >= witness:
			return h.concluded, true
		}
	}
	return bft.Digest{}, false
}
