package epaxos

import (
	"fmt"
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/kit"
)

// CommandKind is what an instance's command is.
type CommandKind uint8

const (
	// Nothing is what a recovery decides if the proposer's command cannot have been decided. It
	// conflicts with nothing and depends on nothing.
	Nothing CommandKind = iota + 1
	// Work has entries.
	Work
	// Checkpoint conflicts with all. What is executed before it is the same everywhere, and is in
	// the snapshot that each replica makes after it.
	Checkpoint
	// Fence conflicts with all, and does nothing. A query of several keys waits for its own.
	Fence
)

func (k CommandKind) String() string {
	switch k {
	case Nothing:
		return "nothing"
	case Work:
		return "work"
	case Checkpoint:
		return "checkpoint"
	case Fence:
		return "fence"
	}
	return fmt.Sprintf("command kind %d", uint8(k))
}

// A Command is what an instance decides, beside its dependencies. It is not changed after it was
// made.
type Command struct {
	Kind CommandKind
	// Stamp is greater than those of all commands that the proposer knew, and than the causal
	// bounds of the calls in it. It orders commands that depend on each other.
	Stamp   uint64
	Entries []kit.Entry // of Work
}

// changes tells whether the command changes the members.
func (c *Command) changes() bool {
	return c.Kind == Work && slices.ContainsFunc(c.Entries, func(e kit.Entry) bool { return e.Kind == kit.ChangeMembers })
}

// brief returns what says of a command to those who were sent it before: nil is the proposer's.
func (c *Command) brief() *Command {
	if c != nil && c.Kind == Nothing {
		return c
	}
	return nil
}

// possible tells whether a replica can have proposed the command.
func (c *Command) possible() bool { return c == nil || c.Stamp < 2*maxAfter }

// phase is how far an instance has come at a replica.
type phase uint8

const (
	unknown phase = iota
	preAccepted
	accepted
	committed
)

func (p phase) String() string {
	return [...]string{"unknown", "pre-accepted", "accepted", "committed"}[p]
}

// What replicas say to each other.
type (
	// Head is what all messages between replicas begin with: the generation of the group. It ends
	// with a change of the members; its instances mean nothing in another one.
	Head struct {
		Gen uint64
	}

	// PreAccept proposes a command with what it depends on as far as its proposer knows.
	PreAccept struct {
		Head
		ID   ID
		Cmd  *Command // nil: as was sent before; it asks for the answer
		Deps Deps
	}

	// PreAccepted answers it with what it depends on as far as both know.
	PreAccepted struct {
		Head
		ID     ID
		Deps   Deps
		Fenced bool // the sender knows a change of the members that is not executed
	}

	// Accept is phase 2a of Paxos for an instance.
	Accept struct {
		Head
		ID     ID
		Ballot Ballot
		Cmd    *Command // nil: as proposed
		Deps   Deps
	}

	// Accepted is phase 2b.
	Accepted struct {
		Head
		ID     ID
		Ballot Ballot
	}

	// Commit says what was decided.
	Commit struct {
		Head
		ID   ID
		Cmd  *Command // nil: as proposed
		Deps Deps
	}

	// Lacking answers a message without the command that the sender was not sent, or has lost: the
	// message is wanted with it.
	Lacking struct {
		Head
		ID ID
	}

	// Recover is phase 1a for an instance.
	Recover struct {
		Head
		ID     ID
		Ballot Ballot
	}

	// Recovered is phase 1b. A decided instance is answered with a Commit instead.
	Recovered struct {
		Head
		ID     ID
		Ballot Ballot
		Phase  uint8
		Voted  Ballot   // in which the sender accepted, if it did
		Cmd    *Command // nil if not known
		Init   Deps     // as proposed, empty if not known
		Deps   Deps     // as pre-accepted or accepted
	}

	// Validate asks whether anything says that a command cannot have been decided on the fast path
	// with the dependencies that it was proposed with.
	Validate struct {
		Head
		ID     ID
		Ballot Ballot
		Cmd    *Command
		Deps   Deps
	}

	// Validated answers it.
	Validated struct {
		Head
		ID      ID
		Ballot  Ballot
		Invalid bool // a decided command conflicts with it, and neither depends on the other
		Pending []ID // commands that are not decided, of which the same would be said if they were decided as proposed
	}

	// Waiting says that the sender recovers a command, which must wait for others to be decided.
	// Agreed replicas are known to have agreed at once with how it was proposed, the proposer
	// included.
	Waiting struct {
		Head
		ID     ID
		Agreed uint64
	}

	// Refusal answers a message with a ballot below the promised one.
	Refusal struct {
		Head
		ID       ID
		Promised Ballot
	}

	// News tells what the sender has heard of, from time to time.
	News struct {
		Head
		Top Deps
	}

	// Fetch asks for what was decided in some instances, or for a snapshot if the receiver has them
	// no more or is in a later generation.
	Fetch struct {
		Head
		Missing []Range
	}

	// Range is the instances of a row from First to Last.
	Range struct {
		Row         protocol.ID
		First, Last uint64
	}

	// Poll asks for all that conflicts with queries.
	Poll struct {
		Head
		Round uint64
		Keys  []string
		All   bool // they conflict with everything
	}

	// Polled answers it.
	Polled struct {
		Head
		Round uint64
		Deps  Deps
	}

	// Settled is a message to oneself: the decision of an instance is on the disk.
	Settled struct {
		Head
		ID ID
	}
)

func (h Head) begin() Head { return h }

// headed is a message that begins with a Head.
type headed interface{ begin() Head }

// InstanceRecord is an instance as it is on disk: the newest record of each counts.
type InstanceRecord struct {
	ID      ID
	Phase   uint8
	Ballot  Ballot   // promised
	Voted   Ballot   // in which it was accepted
	Nothing bool     // what was accepted or decided is nothing
	Cmd     *Command // as proposed; nil: that of the record before, if there is one
	Init    Deps
	Deps    Deps
}
