package kit

import (
	"bytes"
	"fmt"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// A SessionID names a session of a client. It is a count in the replicated state, so it is never
// given twice. 0 is no session.
type SessionID uint64

// A Seq numbers the commands of a session, from 1.
type Seq uint64

// An Incarnation names a replica's disk: a random number that it drew at its first start. 0 is
// none.
type Incarnation uint64

// EntryKind is what an Entry does.
type EntryKind uint8

const (
	// NoOp fills a slot.
	NoOp EntryKind = iota + 1
	// Command is for the state machine.
	Command
	// OpenSession opens a session for a client.
	OpenSession
	// ChangeMembers adds a member or removes one.
	ChangeMembers
)

// An Entry is what replicas agree on for one slot. It is not changed after it was made.
type Entry struct {
	Kind    EntryKind
	Client  protocol.ID // who asked for it, and is answered
	Session SessionID   // of Command and ChangeMembers
	Seq     Seq         // of Command and ChangeMembers; of OpenSession the client's nonce
	Acked   Seq         // the client waits for no answer below it
	Command []byte
	Open    *Open         // of OpenSession
	Members *MemberChange // of ChangeMembers
}

// Open is how a session is opened. Its limits come from the configuration of the replica that
// proposes it and hold on all, so that replicas whose configurations differ do not come to differ
// in their states.
type Open struct {
	MaxSessions uint64 // how many sessions there are after it, at most
	Window      Seq    // of the new session: it takes a Seq below Acked+Window only
}

// MemberChange is a Change with what the replica that proposes it knows of the new member.
type MemberChange struct {
	smr.Change
	Incarnation Incarnation // the new member's disk; of no other is a vote counted
}

// Equal reports whether two entries are the same.
func (e Entry) Equal(o Entry) bool {
	if e.Kind != o.Kind || e.Kind == NoOp {
		return e.Kind == o.Kind
	}
	if e.Client != o.Client || e.Session != o.Session || e.Seq != o.Seq || e.Acked != o.Acked {
		return false
	}
	switch e.Kind {
	case Command:
		return bytes.Equal(e.Command, o.Command)
	case OpenSession:
		return *e.Open == *o.Open
	case ChangeMembers:
		return *e.Members == *o.Members
	}
	return true
}

func (e Entry) String() string {
	switch e.Kind {
	case NoOp:
		return "no-op"
	case Command:
		return fmt.Sprintf("command %d.%d of %d bytes", e.Session, e.Seq, len(e.Command))
	case OpenSession:
		return fmt.Sprintf("open a session for %d", e.Client)
	case ChangeMembers:
		return "members: " + e.Members.String()
	}
	return fmt.Sprintf("entry kind %d", uint8(e.Kind))
}

// A Ballot is the number of an attempt to have slots decided. Each belongs to one replica, whose ID
// is the lower half, so no two replicas ever propose in the same ballot. 0 is below all ballots:
// what it stands for, if anything, is the protocol's affair.
type Ballot uint64

// NewBallot returns a replica's lowest ballot above another one.
func NewBallot(above Ballot, id protocol.ID) Ballot { return (above>>32+1)<<32 | Ballot(id) }

// Owner returns the replica whose ballot it is.
func (b Ballot) Owner() protocol.ID { return protocol.ID(uint32(b)) }

func (b Ballot) String() string { return fmt.Sprintf("%d.%d", uint64(b)>>32, uint32(b)) }
