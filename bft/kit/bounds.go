package kit

import (
	"iter"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/sessions"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
)

// Bounds of messages, see bft.MaxMessageBytes.
const (
	smallBytes  = 1024     // of a request that goes with its proposal
	inlineBytes = 64 << 10 // of all of them
	// answerBytes, replyBytes are of bodies and of results that are sent at once. The last one of them
	// may go beyond.
	answerBytes = 1 << 20
	replyBytes  = 512 << 10
	entryBytes  = 128     // about, of what is in a message beside commands and results
	tickBytes   = 4 << 20 // that a node gets again in a tick, or a little more

	// PlaceBytes is what sending a proposal again counts for, see Affords.
	PlaceBytes = inlineBytes
)

// mostUnderCheckpoint returns how many places there may be between two checkpoints: a NEW-VIEW has
// the words of a quorum, each with up to twice as many places and the votes of a quorum for each.
func mostUnderCheckpoint(members int) int {
	quorum := quorum.Byzantine(members)
	perPlace := (quorum*quorum + 2) * 2 * entryBytes
	return max((bft.MaxMessageBytes-quorum*members*entryBytes)/perPlace, 1)
}

// resent is what this replica has sent in a tick because it was asked.
type resent struct {
	at      int // the tick
	toBytes map[protocol.ID]int
}

// Affords reports whether a node that has asked for it is to be sent so much again: who asks too
// often gets nothing until the next tick.
func (r *Replica) Affords(to protocol.ID, sizeBytes int) bool {
	if r.resent.at != r.Tick || r.resent.toBytes == nil {
		r.resent = resent{r.Tick, map[protocol.ID]int{}}
	}
	if r.resent.toBytes[to] >= tickBytes {
		return false
	}
	r.resent.toBytes[to] += sizeBytes
	return true
}

// AffordsEntries is Affords for results.
func (r *Replica) AffordsEntries(to protocol.ID, entries []sessions.Entry, full bool) bool {
	n := 0
	for i := range entries {
		n += resultBytes(&entries[i], full)
	}
	return n == 0 || r.Affords(to, n)
}

func resultBytes(e *sessions.Entry, full bool) int {
	if full {
		return entryBytes + len(e.Result.Value)
	}
	return entryBytes
}

// Parts splits results into those that go into one message: in full, or their digests.
func Parts(entries []sessions.Entry, full bool) iter.Seq[[]sessions.Entry] {
	return func(yield func([]sessions.Entry) bool) {
		for len(entries) > 0 {
			n := 0
			for room := replyBytes; n < len(entries) && room > 0; n++ {
				room -= resultBytes(&entries[n], full)
			}
			if !yield(entries[:n]) {
				return
			}
			entries = entries[n:]
		}
	}
}

// answer returns the result of an optimised read.
func (r *Replica) answer(query []byte) bft.Result {
	value := r.Config.Service.Read(sessions.ServiceView(r.Store.Committed()), query)
	if len(value) > r.Config.Limits.Value {
		return bft.Result{Outcome: bft.Oversized}
	}
	return bft.Result{Outcome: bft.Executed, Value: value}
}
