package domino

import (
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// An item is what is agreed on for one slot: commands that travel together. It is not changed after
// it was made.
type item struct {
	Slot    smr.Slot
	Answer  protocol.ID // the replica that tells the client the results
	Entries []kit.Entry
}

func (i item) equal(o item) bool {
	if i.Slot != o.Slot || i.Answer != o.Answer || len(i.Entries) != len(o.Entries) {
		return false
	}
	for k := range i.Entries {
		if !i.Entries[k].Equal(o.Entries[k]) {
			return false
		}
	}
	return true
}

func (i item) sizeBytes() int {
	n := 32
	for _, e := range i.Entries {
		n += 32 + len(e.Command)
	}
	return n
}

// claims are a replica's promises that come with time. They say something about its stream: all
// items that they do not exclude are among its first Count.
type claims struct {
	Count uint64
	// Closed: the replica votes for no more items of the shared track up to this slot. It is phase
	// 1b of ballot 1 for all these slots.
	Closed smr.Slot
	// Skipped: it proposes no more items in its own track up to this slot.
	Skipped smr.Slot
}

// have is how far a replica has another one's stream. The items of the owner's track in it are
// accepted and on the sender's disk, but for those up to Revoked, of which this says nothing.
type have struct {
	Owner   protocol.ID
	Count   uint64
	Revoked smr.Slot
}

// A closeSlots is a decision of the coordinator about all slots of a track above Low, up to High:
// these items, and otherwise no-ops.
type closeSlots struct {
	Track trackID
	Low   smr.Slot
	High  smr.Slot
	Items []item
}

// A part is what an acceptor has accepted from coordinators: a closeSlots, with its ballot.
type part struct {
	Ballot kit.Ballot // not 0: that is everybody's, by the fast path and in own tracks
	closeSlots
}

// A name is what is said of an item without its commands: which one of the message's it is, how
// long they are, and a checksum of them all.
type name struct {
	Index   uint64
	Lengths []uint64
	Sum     uint32
}

// What replicas say to each other, in letters.
type (
	// news is what a replica's stream has in addition, and how far it is with everything. The
	// stream is the sequence of its votes in the shared track and its proposals in its own,
	// numbered from 1.
	news struct {
		First uint64 // number of the first of Items
		Items []item
		// Base and Through: the items up to number Base are not sent any more. They are of slots up
		// to Through, which the sender has executed.
		Base    uint64
		Through smr.Slot
		claims
		Executed smr.Slot
		Have     []have
		// Promised is the ballot that the sender follows, of whose coordinator it has the first
		// Accepted decisions on disk. Leads: that coordinator is the sender.
		Promised kit.Ballot
		Accepted uint64
		Leads    bool
		// Names say which of Items, votes for what clients have sent to all, lack their large
		// commands.
		Names []name
	}

	// missing asks for the stream from a number on: the sender does not have the commands of a
	// named item.
	missing struct {
		Number uint64
	}

	// accept is phase 2a for decisions of the coordinator, which acceptors take in order. Those up
	// to number Base are not sent any more: they are of slots up to Through, executed by the
	// sender. Generation is that of the members among whom the ballot holds.
	accept struct {
		Ballot     kit.Ballot
		Generation uint64
		Base       uint64
		Through    smr.Slot
		First      uint64
		Closes     []closeSlots
	}

	// prepare is phase 1a of a ballot for all tracks.
	prepare struct {
		Ballot kit.Ballot
	}

	// promise is phase 1b: what the sender has accepted from earlier coordinators for slots that it
	// has not executed. It is one message of Count, numbered from 0, which belong together if
	// Executed is the same.
	promise struct {
		Ballot   kit.Ballot
		Executed smr.Slot
		Number   uint64
		Count    uint64
		Parts    []part
	}

	// refusal answers a message of a ballot below the sender's.
	refusal struct {
		Promised kit.Ballot
	}

	// revoke is phase 1a for slots of a track that are not used yet: acceptors accept nothing more
	// from the track's owner, or of the shared track, up to High.
	revoke struct {
		Ballot kit.Ballot
		Track  trackID
		High   smr.Slot
	}

	// revoked answers it for a replica's track with what the sender has accepted there up to High
	// and not executed: as much as goes in one message. Asked is what Revoke says. For the shared
	// track News says it.
	revoked struct {
		Ballot kit.Ballot
		Track  trackID
		Asked  smr.Slot
		High   smr.Slot
		// Executed: of slots up to it the sender knows more than what it accepted.
		Executed smr.Slot
		Items    []item
	}

	// learned says what is decided in a track: what the coordinator knows before others, if it
	// alone learns.
	learned struct {
		closeSlots
		// Names say which of Items, for which the receiver has voted, lack their large commands.
		Names []name
	}

	// fetch asks for what was executed after a slot. Blank: the sender has no state at all.
	fetch struct {
		After smr.Slot
		Blank bool
	}

	// decided is what is in the slots above Low, up to High: all that is not a no-op. The sender
	// has executed more if Executed is higher.
	decided struct {
		Low      smr.Slot
		High     smr.Slot
		Executed smr.Slot
		Items    []item
	}

	// poll asks a replica for the highest slot in which it has accepted something, for reads.
	poll struct {
		Round uint64
	}

	// polled answers it.
	polled struct {
		Round uint64
		Slot  smr.Slot
	}
)

// What clients and replicas say to each other, beside what smr has.
type (
	// submit asks to have commands of a session executed. With a slot of the shared track it goes
	// to all replicas, of which Answer tells the results. Otherwise it goes to one, which proposes
	// them in its track, in a slot above After.
	submit struct {
		kit.Request
		Slot   smr.Slot
		Answer protocol.ID
		Acks   []smr.Ack // what the client waits for, command by command
	}

	// vote says what became of a Submit with a slot at one acceptor. Late is by how much it came
	// after the time of its slot, or, if the acceptor has said its last word about the slot, after
	// that; it is below 0 if it came before. Members is the number of acceptors of the slot.
	vote struct {
		Session kit.SessionID
		Slot    smr.Slot
		Members uint32
		Verdict verdict
		Late    time.Duration
	}

	// placed says that commands were proposed in a slot of a replica's track and are on the
	// sender's disk. Whole: a majority has them.
	placed struct {
		Session kit.SessionID
		Slot    smr.Slot
		Members uint32
		Whole   bool
		Seqs    []kit.Seq
	}

	// outcome says what was decided for a Submit with a slot.
	outcome struct {
		Session   kit.SessionID
		Slot      smr.Slot
		Committed bool
	}

	// ordered says that commands' slots are decided and that no later call gets an earlier one.
	ordered struct {
		Session kit.SessionID
		Slot    smr.Slot
		Seqs    []kit.Seq
	}

	// probe measures the way to a replica. Generation is that of the members that the sender knows.
	probe struct {
		Sent       time.Duration
		Generation uint64
	}

	// echo answers a Probe.
	echo struct {
		Sent   time.Duration // as in the Probe
		Now    time.Duration // the time by which the sender closes slots
		Shown  time.Duration // what its clock shows, if it was started again and has heard nobody at work; else 0
		Delays []delay       // to the other members, if it makes proposals
		Leader protocol.ID   // who coordinates, 0 if not known
		// Generation and Members are told to those who do not know them.
		Generation uint64
		Members    []smr.Member
	}

	// delay is the round trip between a replica and another one.
	delay struct {
		ID    protocol.ID
		Round time.Duration
	}
)

// A verdict is an acceptor's answer to a Submit with a slot.
type verdict uint8

const (
	// yes: it has voted for it.
	yes verdict = iota + 1
	// no: it never will.
	no
	// full: it has not, as there is too much to do or the slot is too far ahead. It says nothing
	// about later.
	full
)

// Records of the log.
type (
	// ownRecord is what a replica added to its stream, from number First on.
	ownRecord struct {
		First uint64
		Items []item
	}

	// trackRecord is what was accepted of another replica's track.
	trackRecord struct {
		Owner protocol.ID
		Items []item
	}

	// closeRecord is a decision that was accepted from a coordinator.
	closeRecord struct{ part }

	// executedRecord is what was executed where the replica has accepted something else, or
	// nothing. An item without entries says that there was nothing in its slot.
	executedRecord struct{ Items []item }
)
