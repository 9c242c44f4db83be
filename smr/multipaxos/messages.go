package multipaxos

import (
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// What replicas say to each other, in letters.
type (
	// preVote asks whether a prepare would be welcome: it disturbs nobody who has a leader.
	preVote struct {
		Ballot kit.Ballot
		Commit smr.Slot
	}

	// preVoteReply answers a preVote. Promised is the highest ballot that the sender has promised.
	preVoteReply struct {
		Ballot   kit.Ballot
		Granted  bool
		Promised kit.Ballot
	}

	// prepare is phase 1a for all slots from Low on.
	prepare struct {
		Ballot kit.Ballot
		Low    smr.Slot
	}

	// promise is phase 1b: what the sender has accepted from slot Low on, as much as fits. Unless
	// it is the last part, the candidate asks for more.
	promise struct {
		Ballot kit.Ballot
		Low    smr.Slot
		// The sender has discarded slots up to Base; a candidate that needs them cannot lead by
		// this promise.
		Base   smr.Slot
		Commit smr.Slot // the sender's votes up to Commit are the decided values
		Slots  []vote
		Last   bool
	}

	// vote is the entry that was accepted for a slot last, and in which ballot.
	vote struct {
		Ballot kit.Ballot
		Entry  kit.Entry
	}

	// accept is phase 2a for consecutive slots from First on, which the follower takes if it has
	// all before them. Without entries it is a beat.
	accept struct {
		Ballot  kit.Ballot
		First   smr.Slot
		Commit  smr.Slot // slots up to it are decided
		Round   uint64   // number of the leader's question whether it still leads; 0 if none was asked
		Entries []kit.Entry
	}

	// accepted is phase 2b: the sender has on its disk what the ballot's leader has in all slots up
	// to Match, because it accepted them in this ballot or knew them to be decided.
	accepted struct {
		Ballot kit.Ballot
		Match  smr.Slot
	}

	// takeOver asks a follower to lead in place of the ballot's leader. It skips the pre-vote, in
	// which those who hear the leader would refuse.
	takeOver struct {
		Ballot kit.Ballot
	}

	// polled answers a leader's poll, which is the number of a round in an accept: when the sender
	// received it, it had promised no higher ballot. Reads that came before the question can be
	// answered once a majority has said so.
	polled struct {
		Ballot kit.Ballot
		Round  uint64
	}

	// missing answers an accept that was ahead of the sender's log: it needs the slots from Want
	// on, or a snapshot if Want is 0.
	missing struct {
		Ballot kit.Ballot
		Want   smr.Slot
	}

	// refusal answers a message of a ballot below the one that the sender has promised.
	refusal struct {
		Promised kit.Ballot
	}
)

// Records of the log.
type (
	// promiseRecord is a ballot below which nothing is accepted any more.
	promiseRecord struct {
		Ballot kit.Ballot
		Commit smr.Slot
	}

	// acceptRecord is what was accepted for consecutive slots from First on. It promises its ballot
	// as well.
	acceptRecord struct {
		Ballot  kit.Ballot
		First   smr.Slot
		Commit  smr.Slot // decided up to here; may be below what was known before the crash
		Entries []kit.Entry
	}
)

// codec returns the codec of the protocol's messages and records.
func codec() protocol.Codec[smr.Message] {
	return kit.NewFormat("multipaxos", 1,
		kit.Kind(64, preVoteFields), kit.Kind(65, preVoteReplyFields), kit.Kind(66, prepareFields),
		kit.Kind(67, promiseFields), kit.Kind(68, acceptFields),
		kit.Kind(69, acceptedFields), kit.Kind(70, polledFields), kit.Kind(71, missingFields), kit.Kind(72, refusalFields),
		kit.Kind(74, takeOverFields),
		kit.Kind(80, promiseRecordFields), kit.Kind(81, acceptRecordFields),
	)
}

func preVoteFields(c *wirefmt.Coder, m *preVote) {
	wirefmt.Uint(c, &m.Ballot)
	wirefmt.Uint(c, &m.Commit)
}

func preVoteReplyFields(c *wirefmt.Coder, m *preVoteReply) {
	wirefmt.Uint(c, &m.Ballot)
	wirefmt.Bool(c, &m.Granted)
	wirefmt.Uint(c, &m.Promised)
}

func prepareFields(c *wirefmt.Coder, m *prepare) {
	wirefmt.Uint(c, &m.Ballot)
	wirefmt.Uint(c, &m.Low)
}

func promiseFields(c *wirefmt.Coder, m *promise) {
	wirefmt.Uint(c, &m.Ballot)
	wirefmt.Uint(c, &m.Low)
	wirefmt.Uint(c, &m.Base)
	wirefmt.Uint(c, &m.Commit)
	wirefmt.Bool(c, &m.Last)
	wirefmt.List(c, &m.Slots, 1+kit.MinEntryBytes, func(c *wirefmt.Coder, v *vote) {
		wirefmt.Uint(c, &v.Ballot)
		kit.EntryFields(c, &v.Entry)
	})
}

func acceptFields(c *wirefmt.Coder, m *accept) {
	wirefmt.Uint(c, &m.Ballot)
	wirefmt.Uint(c, &m.First)
	wirefmt.Uint(c, &m.Commit)
	wirefmt.Uint(c, &m.Round)
	kit.EntriesFields(c, &m.Entries)
}

func acceptedFields(c *wirefmt.Coder, m *accepted) {
	wirefmt.Uint(c, &m.Ballot)
	wirefmt.Uint(c, &m.Match)
}

func takeOverFields(c *wirefmt.Coder, m *takeOver) {
	wirefmt.Uint(c, &m.Ballot)
}

func polledFields(c *wirefmt.Coder, m *polled) {
	wirefmt.Uint(c, &m.Ballot)
	wirefmt.Uint(c, &m.Round)
}

func missingFields(c *wirefmt.Coder, m *missing) {
	wirefmt.Uint(c, &m.Ballot)
	wirefmt.Uint(c, &m.Want)
}

func refusalFields(c *wirefmt.Coder, m *refusal) {
	wirefmt.Uint(c, &m.Promised)
}

func promiseRecordFields(c *wirefmt.Coder, m *promiseRecord) {
	wirefmt.Uint(c, &m.Ballot)
	wirefmt.Uint(c, &m.Commit)
}

func acceptRecordFields(c *wirefmt.Coder, m *acceptRecord) {
	wirefmt.Uint(c, &m.Ballot)
	wirefmt.Uint(c, &m.First)
	wirefmt.Uint(c, &m.Commit)
	kit.EntriesFields(c, &m.Entries)
}
