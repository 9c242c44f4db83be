package fastpaxos

import (
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// A head begins what replicas say to each other.
type head struct {
	// Era is a ballot for all slots: a fast round, and a classic one above it for each slot. Its
	// owner is the coordinator.
	Era        kit.Ballot
	Generation uint64 // of the members in the sender's state
}

func (h head) begin() head { return h }

// headed is a message that begins with a Head.
type headed interface{ begin() head }

// A vote is what was accepted in a slot, in the fast round of an era or in its classic one.
type vote struct {
	Slot    smr.Slot
	Era     kit.Ballot
	Classic bool
	Entry   kit.Entry
}

// An item is an entry in its slot.
type item struct {
	Slot  smr.Slot
	Entry kit.Entry
}

// A named is an entry in its slot without its command, of which it has the length and a checksum.
type named struct {
	Slot   smr.Slot
	Entry  kit.Entry
	Length uint64
	Sum    uint32
}

// What replicas say to each other.
type (
	// beat says that a replica is there and how far it has come.
	beat struct {
		head
		Applied smr.Slot
		Leads   bool     // the sender coordinates the era
		Open    smr.Slot // slots from it on are open for fast votes; 0: none
	}

	// voted is phase 2b of fast rounds, for the coordinator.
	voted struct {
		head
		Items []item
	}

	// suggest has the receiver vote in the fast round, for what no client has asked for, or whose
	// votes were in vain.
	suggest struct {
		head
		Entries []kit.Entry
	}

	// closeSlots has the receiver vote for nothing in the slots up to one in which it has not
	// voted, as others have.
	closeSlots struct {
		head
		Slot smr.Slot
	}

	// accept is phase 2a of classic rounds.
	accept struct {
		head
		Items []item
	}

	// accepted is phase 2b of classic rounds.
	accepted struct {
		head
		Slots []smr.Slot
	}

	// decided says what is decided.
	decided struct {
		head
		Items []item
		More  bool // the receiver is to ask for what follows
	}

	// decidedNames is a Decided of large commands, without them: whoever has accepted them has
	// them.
	decidedNames struct {
		head
		Items []named
	}

	// prepare is phase 1a for all slots from Low on.
	prepare struct {
		head
		Low smr.Slot
	}

	// promise is phase 1b: the sender's votes from Low on, as many as fit. Unless it is the last
	// part, the candidate asks for more, from Next on.
	promise struct {
		head
		Low     smr.Slot
		Applied smr.Slot // whoever knows less must not lead
		Votes   []vote
		Next    smr.Slot // 0: that is all
	}

	// refusal answers a message of an era below the one in Head, which the sender has promised.
	refusal struct{ head }

	// fetch asks for what is decided above Applied.
	fetch struct {
		head
		Applied smr.Slot
	}

	// poll asks whether the receiver follows the era's coordinator still, for reads.
	poll struct {
		head
		Round uint64
	}

	// polled answers it.
	polled struct {
		head
		Round uint64
		Slot  smr.Slot // the last slot in which the sender has voted in the era's fast round
	}
)

// What clients and replicas say to each other.
type (
	// requestCopy is a request that a client sends to replicas other than the one that it takes for
	// the coordinator.
	requestCopy struct{ kit.Request }

	// cast tells a client in which slots a replica has voted for its commands. Votes of a fast
	// quorum, Need of them, fix the position. Need 0: there are no votes at present.
	cast struct {
		head
		Need    uint32
		Session kit.SessionID
		Items   []kit.EarlyReply
	}
)

// Records of the log.
type (
	// voteRecord is what was accepted in one call. It promises the eras as well.
	voteRecord struct{ Votes []vote }

	// decidedRecord is what is decided where the replica has not voted for it.
	decidedRecord struct{ Items []item }

	// promiseRecord is an era below which nothing is accepted any more.
	promiseRecord struct{ Era kit.Ballot }
)
