package mencius

import (
	"fmt"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// A Ballot is an attempt to lead a track. 0 is its owner's from the beginning; any other belongs to
// the replica whose ID is in the lower half.
type Ballot uint64

// newBallot returns a replica's lowest ballot above another one.
func newBallot(above Ballot, id protocol.ID) Ballot { return (above>>32+1)<<32 | Ballot(id) }

func (b Ballot) String() string { return fmt.Sprintf("%d.%d", uint64(b)>>32, uint32(b)) }

// An Epoch counts the groups of members that follow one another, from 1.
type Epoch uint64

// A Pos is a position in a track, from 1.
type Pos uint64

// A Place says which track of an epoch a message is about, and in which ballot.
type Place struct {
	Epoch  Epoch
	Track  uint32 // the owner's place among the members, from 0
	Ballot Ballot
}

func (p Place) place() Place { return p }

// placed is a message about a track.
type placed interface{ place() Place }

// What replicas say to each other.
type (
	// Accept is phase 2a for the positions of a track from First on, which the receiver takes if it
	// has all before them. Without items it is a heartbeat.
	Accept struct {
		Place
		First  Pos
		Commit Pos // positions up to it are decided
		Items  []Item
	}

	// Item is some positions that the owner has skipped for good, and then one with an entry,
	// unless its kind is 0.
	Item struct {
		Skips uint64
		Entry kit.Entry
	}

	// Accepted is phase 2b: all positions up to Match are on the sender's disk as the ballot's
	// leader has them.
	Accepted struct {
		Place
		Match Pos
	}

	// Missing answers an Accept that was ahead of what the sender has: it needs the positions from
	// Want on.
	Missing struct {
		Place
		Want Pos
	}

	// Refusal answers a message of a ballot below the one in Place, which the sender has promised.
	Refusal struct{ Place }

	// Prepare is phase 1a for all positions of a track from Low on.
	Prepare struct {
		Place
		Low Pos
	}

	// Promise is phase 1b: what the sender has accepted from Low on, as much as fits. Unless it is
	// the last part, the candidate asks for more.
	Promise struct {
		Place
		Low   Pos
		Base  Pos // positions up to it the sender has no more; it can send a snapshot
		Votes []Vote
		Last  bool
	}

	// Vote is what was accepted for a position, and in which ballot.
	Vote struct {
		Ballot Ballot
		Skip   bool // the owner has promised never to propose anything here
		Entry  kit.Entry
	}

	// Beat says that a replica is there, how far it has come and what it leads.
	Beat struct {
		Epoch   Epoch
		Applied smr.Slot
		Seen    smr.Slot // the last slot in which the sender has seen a command: others give way to it
		Leads   []Led
	}

	// Led is a track that the sender of a Beat leads, and up to where it is decided.
	Led struct {
		Track  uint32
		Ballot Ballot
		Commit Pos
	}

	// Fetch asks for what is decided above Applied.
	Fetch struct {
		Epoch   Epoch
		Applied smr.Slot
	}

	// Decided answers it, unless a snapshot does: the entries of consecutive slots from First on.
	Decided struct {
		Epoch   Epoch
		First   smr.Slot
		Entries []kit.Entry
	}

	// Look asks how far up the receiver has seen commands, for reads.
	Look struct {
		Epoch Epoch
		Round uint64
	}

	// Seen answers it.
	Seen struct {
		Epoch Epoch
		Round uint64
		Slot  smr.Slot
	}
)

// Records of the log.
type (
	// AcceptRecord is what was accepted in one call. It promises the ballots as well.
	AcceptRecord struct {
		Epoch Epoch
		Parts []Part
	}

	// Part is what was accepted for positions of a track from First on.
	Part struct {
		Track  uint32
		Ballot Ballot
		First  Pos
		Items  []Item
	}

	// PromiseRecord is the ballots below which nothing is accepted any more, track by track.
	PromiseRecord struct {
		Epoch   Epoch
		Ballots []Ballot
	}
)
