package fastpaxos

import (
	"fmt"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// An Era is a ballot for all slots: a fast round, and a classic one above it for each slot. It
// belongs to the replica whose ID is in the lower half, its coordinator. 0 is below all.
type Era uint64

// newEra returns a replica's lowest era above another one.
func newEra(above Era, id protocol.ID) Era { return (above>>32+1)<<32 | Era(id) }

func (e Era) coordinator() protocol.ID { return protocol.ID(uint32(e)) }

func (e Era) String() string { return fmt.Sprintf("%d.%d", uint64(e)>>32, uint32(e)) }

// A Head begins what replicas say to each other.
type Head struct {
	Era        Era
	Generation uint64 // of the members in the sender's state
}

func (h Head) begin() Head { return h }

// headed is a message that begins with a Head.
type headed interface{ begin() Head }

// A Vote is what was accepted in a slot, in the fast round of an era or in its classic one.
type Vote struct {
	Slot    smr.Slot
	Era     Era
	Classic bool
	Entry   kit.Entry
}

// A Placed is an entry in its slot.
type Placed struct {
	Slot  smr.Slot
	Entry kit.Entry
}

// A Named is an entry in its slot without its command, of which it has the length and a checksum.
type Named struct {
	Slot   smr.Slot
	Entry  kit.Entry
	Length uint64
	Sum    uint32
}

// What replicas say to each other.
type (
	// Beat says that a replica is there and how far it has come.
	Beat struct {
		Head
		Applied smr.Slot
		Leads   bool     // the sender coordinates the era
		Open    smr.Slot // slots from it on are open for fast votes; 0: none
	}

	// Voted is phase 2b of fast rounds, for the coordinator.
	Voted struct {
		Head
		Items []Placed
	}

	// Suggest has the receiver vote in the fast round, for what no client has asked for, or whose
	// votes were in vain.
	Suggest struct {
		Head
		Entries []kit.Entry
	}

	// Close has the receiver vote for nothing in the slots up to one in which it has not voted, as
	// others have.
	Close struct {
		Head
		Slot smr.Slot
	}

	// Accept is phase 2a of classic rounds.
	Accept struct {
		Head
		Items []Placed
	}

	// Accepted is phase 2b of classic rounds.
	Accepted struct {
		Head
		Slots []smr.Slot
	}

	// Decided says what is decided.
	Decided struct {
		Head
		Items []Placed
		More  bool // the receiver is to ask for what follows
	}

	// DecidedNames is a Decided of large commands, without them: whoever has accepted them has them.
	DecidedNames struct {
		Head
		Items []Named
	}

	// Prepare is phase 1a for all slots from Low on.
	Prepare struct {
		Head
		Low smr.Slot
	}

	// Promise is phase 1b: the sender's votes from Low on, as many as fit. Unless it is the last
	// part, the candidate asks for more, from Next on.
	Promise struct {
		Head
		Low     smr.Slot
		Applied smr.Slot // whoever knows less must not lead
		Votes   []Vote
		Next    smr.Slot // 0: that is all
	}

	// Refusal answers a message of an era below the one in Head, which the sender has promised.
	Refusal struct{ Head }

	// Fetch asks for what is decided above Applied.
	Fetch struct {
		Head
		Applied smr.Slot
	}

	// Look asks whether the receiver follows the era's coordinator still, for reads.
	Look struct {
		Head
		Round uint64
	}

	// Follows answers it.
	Follows struct {
		Head
		Round uint64
		Top   smr.Slot // the last slot in which the sender has voted in the era's fast round
	}
)

// What clients and replicas say to each other.
type (
	// Copy is a request that a client sends to replicas other than the one that it takes for the
	// coordinator.
	Copy struct{ kit.Request }

	// Cast tells a client in which slots a replica has voted for its commands. Votes of a fast
	// quorum, Need of them, fix the position. Need 0: there are no votes at present.
	Cast struct {
		Head
		Need    uint32
		Session kit.SessionID
		Items   []kit.EarlyReply
	}
)

// Records of the log.
type (
	// VoteRecord is what was accepted in one call. It promises the eras as well.
	VoteRecord struct{ Votes []Vote }

	// PromiseRecord is an era below which nothing is accepted any more.
	PromiseRecord struct{ Era Era }
)
