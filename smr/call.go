package smr

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/protocol"
)

// A Message is anything that nodes of the family exchange, record, or get from and give to their
// applications. Which types it can be is the protocol's affair, beside those of this package.
type Message any

// A Slot is a position in the order of commands. Later commands have greater ones; not each slot
// has a command.
type Slot uint64

// A CallID names a call among those of one client node. The application chooses it and does not use
// it twice.
type CallID uint64

// CallKind is what a call asks for.
type CallKind uint8

const (
	// Propose is done when the command's position is fixed: it will be executed there, whatever
	// fails.
	Propose CallKind = iota + 1
	// Execute is done when the command was executed, and has its result.
	Execute
	// Read is done with the answer of the state machine to a query that sees all that was done
	// before the call, and changes nothing.
	Read
	// Reconfigure is done when the change of the members has come into force.
	Reconfigure
)

func (k CallKind) String() string {
	switch k {
	case Propose:
		return "propose"
	case Execute:
		return "execute"
	case Read:
		return "read"
	case Reconfigure:
		return "reconfigure"
	}
	return fmt.Sprintf("call kind %d", uint8(k))
}

// A Call goes from an application to its client node, which answers with one Done.
type Call struct {
	ID      CallID
	Kind    CallKind
	Command []byte // or a query; not changed any more
	Change  Change // of Reconfigure
	Ack     Ack    // of Propose
	// After is a causal bound: the command gets a position above it. It is the Slot of a Done that
	// the caller has seen, here or at another client, and is needed only after an AckDurable.
	After Slot
	// Patience is how long the client node asks for an answer, if that is longer than 128 round
	// trips.
	Patience time.Duration
}

// Awaits returns the kind of acknowledgement that a call waits for: what it asks for, or else its
// kind's.
func (c Call) Awaits() Ack {
	switch {
	case c.Kind != Propose:
		return AckExecuted
	case c.Ack == AckDefault:
		return AckOrdered
	}
	return c.Ack
}

// A Cancel goes from an application to its client node: it does not wait for the call any more, and
// gets a Done with Unknown, unless one is on its way, or with Rejected if the call was not sent to
// anybody. A command that was sent may still be executed, once.
type Cancel struct {
	ID     CallID
	Reason string
}

// Done is what became of a call.
type Done struct {
	ID      CallID
	Outcome Outcome
	Slot    Slot   // if Committed, but for reads
	Result  []byte // of Execute and Read
	Reason  string // if not Committed
	// Unsent says of a rejected call that no replica was found to take it: nothing was sent.
	Unsent bool
}

// Outcome is how a call ended.
type Outcome uint8

const (
	// Committed says that what the call asked for is the case.
	Committed Outcome = iota + 1
	// Rejected says that it is not, and never will be by this call. The reason says why.
	Rejected
	// Unknown says that nobody could be asked, or the session that would know is gone.
	Unknown
)

// NotSent is the end of a call that a client node gives up before it was sent to anybody; why says
// what kept it.
func NotSent(why string) Done {
	return Done{Outcome: Rejected, Reason: "nothing was sent: " + why, Unsent: true}
}

func (o Outcome) String() string {
	switch o {
	case Committed:
		return "committed"
	case Rejected:
		return "rejected"
	case Unknown:
		return "unknown"
	}
	return fmt.Sprintf("outcome %d", uint8(o))
}

// A Member is a replica of a group.
type Member struct {
	ID      protocol.ID
	Address string // where its host listens, for runners; protocols only hand it on
}

// A Change adds a member or removes one. Exactly one of the fields is set. A member that was
// removed does not come back under its ID.
type Change struct {
	Add    Member
	Remove protocol.ID
}

// MaxCommandBytes bounds a command, a query, and a result. A client rejects calls with more; a
// result with more is not sent, and the call is told why.
const MaxCommandBytes = 2 << 20

func (c Change) String() string {
	if c.Remove != 0 {
		return fmt.Sprintf("remove %d", c.Remove)
	}
	return fmt.Sprintf("add %d at %s", c.Add.ID, c.Add.Address)
}

// Validate tells what is wrong with a change, or nil.
func (c Change) Validate() error {
	switch {
	case c.Add == Member{} && c.Remove == 0:
		return fmt.Errorf("smr: change of members: neither Add nor Remove is set")
	case c.Add != Member{} && c.Remove != 0:
		return fmt.Errorf("smr: change of members: both Add and Remove are set")
	case c.Remove == 0 && c.Add.ID == protocol.App:
		return fmt.Errorf("smr: change of members: Add.ID is 0")
	}
	return nil
}

// HandOver goes from an application to its replica, if Protocol.HandsOver: it leads, and is to have
// another member lead, or whoever is up to date if To is 0. It is answered at once with a
// HandingOver, and done when the Status says so.
type HandOver struct {
	ID CallID
	To protocol.ID
}

// HandingOver answers a HandOver: who is to lead, or why nobody is.
type HandingOver struct {
	ID     CallID
	To     protocol.ID
	Reason string // "" if it was begun
}
