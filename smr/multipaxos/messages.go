package multipaxos

import (
	"fmt"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// A Ballot is an attempt to lead. Each belongs to one replica, whose ID is the lower half, so no
// two replicas ever propose in the same ballot. 0 is below all ballots.
type Ballot uint64

// newBallot returns a replica's lowest ballot above another one.
func newBallot(above Ballot, id protocol.ID) Ballot { return (above>>32+1)<<32 | Ballot(id) }

func (b Ballot) String() string { return fmt.Sprintf("%d.%d", uint64(b)>>32, uint32(b)) }

// What replicas say to each other, in letters.
type (
	// PreVote asks whether a Prepare would be welcome: it disturbs nobody who has a leader.
	PreVote struct {
		Ballot Ballot
		Commit smr.Slot
	}

	// PreVoteReply answers a PreVote. Promised is the highest ballot that the sender has promised.
	PreVoteReply struct {
		Ballot   Ballot
		Granted  bool
		Promised Ballot
	}

	// Prepare is phase 1a for all slots from Low on.
	Prepare struct {
		Ballot Ballot
		Low    smr.Slot
	}

	// Promise is phase 1b: what the sender has accepted from slot Low on, as much as fits. Unless
	// it is the last part, the candidate asks for more.
	Promise struct {
		Ballot Ballot
		Low    smr.Slot
		// The sender has discarded slots up to Base; a candidate that needs them cannot lead by
		// this promise.
		Base   smr.Slot
		Commit smr.Slot // the sender's votes up to Commit are the decided values
		Slots  []Vote
		Last   bool
	}

	// Vote is the entry that was accepted for a slot last, and in which ballot.
	Vote struct {
		Ballot Ballot
		Entry  kit.Entry
	}

	// Accept is phase 2a for consecutive slots from First on, which the follower takes if it has
	// all before them. Without entries it is a heartbeat.
	Accept struct {
		Ballot  Ballot
		First   smr.Slot
		Commit  smr.Slot // slots up to it are decided
		Round   uint64   // number of the leader's question whether it still leads; 0 if none was asked
		Entries []kit.Entry
	}

	// Accepted is phase 2b: the sender has on its disk what the ballot's leader has in all slots up
	// to Match, because it accepted them in this ballot or knew them to be decided.
	Accepted struct {
		Ballot Ballot
		Match  smr.Slot
	}

	// Lead asks a follower to take over from the ballot's leader. It skips the pre-vote, in which
	// those who hear the leader would refuse.
	Lead struct {
		Ballot Ballot
	}

	// Follows answers a leader's question: when the sender received it, it had promised no higher
	// ballot. Reads that came before the question can be answered once a majority has said so.
	Follows struct {
		Ballot Ballot
		Round  uint64
	}

	// Missing answers an Accept that was ahead of the sender's log: it needs the slots from Want
	// on, or a snapshot if Want is 0.
	Missing struct {
		Ballot Ballot
		Want   smr.Slot
	}

	// Refusal answers a message of a ballot below the one that the sender has promised.
	Refusal struct {
		Promised Ballot
	}
)

// Records of the log.
type (
	// PromiseRecord is a ballot below which nothing is accepted any more.
	PromiseRecord struct {
		Ballot Ballot
		Commit smr.Slot
	}

	// AcceptRecord is what was accepted for consecutive slots from First on. It promises its ballot
	// as well.
	AcceptRecord struct {
		Ballot  Ballot
		First   smr.Slot
		Commit  smr.Slot // decided up to here; may be below what was known before the crash
		Entries []kit.Entry
	}
)

// Codec returns the codec of the protocol's messages and records.
func Codec() protocol.Codec[smr.Message] {
	return kit.NewFormat("multipaxos", 1,
		kit.Kind(64, preVoteFields), kit.Kind(65, preVoteReplyFields), kit.Kind(66, prepareFields),
		kit.Kind(67, promiseFields), kit.Kind(68, acceptFields),
		kit.Kind(69, acceptedFields), kit.Kind(70, followsFields), kit.Kind(71, missingFields), kit.Kind(72, refusalFields),
		kit.Kind(74, leadFields),
		kit.Kind(80, promiseRecordFields), kit.Kind(81, acceptRecordFields),
	)
}

func preVoteFields(c *wirefmt.Coder, m *PreVote) {
	wirefmt.Uint(c, &m.Ballot)
	wirefmt.Uint(c, &m.Commit)
}

func preVoteReplyFields(c *wirefmt.Coder, m *PreVoteReply) {
	wirefmt.Uint(c, &m.Ballot)
	wirefmt.Bool(c, &m.Granted)
	wirefmt.Uint(c, &m.Promised)
}

func prepareFields(c *wirefmt.Coder, m *Prepare) {
	wirefmt.Uint(c, &m.Ballot)
	wirefmt.Uint(c, &m.Low)
}

func promiseFields(c *wirefmt.Coder, m *Promise) {
	wirefmt.Uint(c, &m.Ballot)
	wirefmt.Uint(c, &m.Low)
	wirefmt.Uint(c, &m.Base)
	wirefmt.Uint(c, &m.Commit)
	wirefmt.Bool(c, &m.Last)
	wirefmt.List(c, &m.Slots, 1+kit.MinEntryBytes, func(c *wirefmt.Coder, v *Vote) {
		wirefmt.Uint(c, &v.Ballot)
		kit.EntryFields(c, &v.Entry)
	})
}

func acceptFields(c *wirefmt.Coder, m *Accept) {
	wirefmt.Uint(c, &m.Ballot)
	wirefmt.Uint(c, &m.First)
	wirefmt.Uint(c, &m.Commit)
	wirefmt.Uint(c, &m.Round)
	kit.EntriesFields(c, &m.Entries)
}

func acceptedFields(c *wirefmt.Coder, m *Accepted) {
	wirefmt.Uint(c, &m.Ballot)
	wirefmt.Uint(c, &m.Match)
}

func leadFields(c *wirefmt.Coder, m *Lead) {
	wirefmt.Uint(c, &m.Ballot)
}

func followsFields(c *wirefmt.Coder, m *Follows) {
	wirefmt.Uint(c, &m.Ballot)
	wirefmt.Uint(c, &m.Round)
}

func missingFields(c *wirefmt.Coder, m *Missing) {
	wirefmt.Uint(c, &m.Ballot)
	wirefmt.Uint(c, &m.Want)
}

func refusalFields(c *wirefmt.Coder, m *Refusal) {
	wirefmt.Uint(c, &m.Promised)
}

func promiseRecordFields(c *wirefmt.Coder, m *PromiseRecord) {
	wirefmt.Uint(c, &m.Ballot)
	wirefmt.Uint(c, &m.Commit)
}

func acceptRecordFields(c *wirefmt.Coder, m *AcceptRecord) {
	wirefmt.Uint(c, &m.Ballot)
	wirefmt.Uint(c, &m.First)
	wirefmt.Uint(c, &m.Commit)
	kit.EntriesFields(c, &m.Entries)
}
