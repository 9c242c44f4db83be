package mencius

import (
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// An epochNumber counts the groups of members that follow one another, from 1.
type epochNumber uint64

// A pos is a position in a track, from 1.
type pos uint64

// A place says which track of an epoch a message is about, and in which ballot.
type place struct {
	Epoch  epochNumber
	Track  uint32     // the owner's place among the members, from 0
	Ballot kit.Ballot // 0 is the track's owner's
}

func (p place) where() place { return p }

// ofTrack is a message about a track.
type ofTrack interface{ where() place }

// What replicas say to each other.
type (
	// accept is phase 2a for the positions of a track from First on, which the receiver takes if it
	// has all before them. Without items it asks how far the receiver is.
	accept struct {
		place
		First  pos
		Commit pos // positions up to it are decided
		Items  []item
	}

	// item is some positions that the owner has skipped for good, and then one with an entry,
	// unless its kind is 0.
	item struct {
		Skips uint64
		Entry kit.Entry
	}

	// accepted is phase 2b: all positions up to Match are on the sender's disk as the ballot's
	// leader has them.
	accepted struct {
		place
		Match pos
	}

	// missing answers an Accept that was ahead of what the sender has: it needs the positions from
	// Want on.
	missing struct {
		place
		Want pos
	}

	// refusal answers a message of a ballot below the one in Place, which the sender has promised.
	refusal struct{ place }

	// prepare is phase 1a for all positions of a track from Low on.
	prepare struct {
		place
		Low pos
	}

	// promise is phase 1b: what the sender has accepted from Low on, as much as fits. Unless it is
	// the last part, the candidate asks for more.
	promise struct {
		place
		Low   pos
		Base  pos // positions up to it the sender has no more; it can send a snapshot
		Votes []vote
		Last  bool
	}

	// vote is what was accepted for a position, and in which ballot.
	vote struct {
		Ballot kit.Ballot
		Skip   bool // the owner has promised never to propose anything here
		Entry  kit.Entry
	}

	// beat says that a replica is there, how far it has come and what it leads.
	beat struct {
		Epoch   epochNumber
		Applied smr.Slot
		Seen    smr.Slot // the last slot in which the sender has seen a command: others give way to it
		Leads   []led
	}

	// led is a track that the sender of a Beat leads, and up to where it is decided.
	led struct {
		Track  uint32
		Ballot kit.Ballot
		Commit pos
	}

	// fetch asks for what is decided above Applied.
	fetch struct {
		Epoch   epochNumber
		Applied smr.Slot
	}

	// decided answers it, unless a snapshot does: the entries of consecutive slots from First on.
	decided struct {
		Epoch   epochNumber
		First   smr.Slot
		Entries []kit.Entry
	}

	// poll asks how far up the receiver has seen commands, for reads.
	poll struct {
		Epoch epochNumber
		Round uint64
	}

	// polled answers it.
	polled struct {
		Epoch epochNumber
		Round uint64
		Slot  smr.Slot
	}
)

// Records of the log.
type (
	// acceptRecord is what was accepted in one call. It promises the ballots as well.
	acceptRecord struct {
		Epoch epochNumber
		Parts []part
	}

	// part is what was accepted for positions of a track from First on.
	part struct {
		Track  uint32
		Ballot kit.Ballot
		First  pos
		Items  []item
	}

	// promiseRecord is the ballots below which nothing is accepted any more, track by track.
	promiseRecord struct {
		Epoch   epochNumber
		Ballots []kit.Ballot
	}
)
