package epaxos

import (
	"fmt"
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/kit"
)

// commandKind is what an instance's command is.
type commandKind uint8

const (
	// nothing is what a recovery decides if the proposer's command cannot have been decided. It
	// conflicts with nothing and depends on nothing.
	nothing commandKind = iota + 1
	// work has entries.
	work
	// checkpoint conflicts with all. What is executed before it is the same everywhere, and is in
	// the snapshot that each replica makes after it.
	checkpoint
	// fence conflicts with all, and does nothing. A query of several keys waits for its own.
	fence
)

func (k commandKind) String() string {
	switch k {
	case nothing:
		return "nothing"
	case work:
		return "work"
	case checkpoint:
		return "checkpoint"
	case fence:
		return "fence"
	}
	return fmt.Sprintf("command kind %d", uint8(k))
}

// A command is what an instance decides, beside its dependencies. It is not changed after it was
// made.
type command struct {
	Kind commandKind
	// Stamp is greater than those of all commands that the proposer knew, and than the causal
	// bounds of the calls in it. It orders commands that depend on each other.
	Stamp   uint64
	Entries []kit.Entry // of Work
}

// changes reports whether the command changes the members.
func (c *command) changes() bool {
	return c.Kind == work && slices.ContainsFunc(c.Entries, func(e kit.Entry) bool { return e.Kind == kit.ChangeMembers })
}

// brief returns what says of a command to those who were sent it before: nil is the proposer's.
func (c *command) brief() *command {
	if c != nil && c.Kind == nothing {
		return c
	}
	return nil
}

// possible reports whether a replica can have proposed the command.
func (c *command) possible() bool { return c == nil || c.Stamp < 2*maxAfter }

// phase is how far an instance has come at a replica.
type phase uint8

const (
	phaseUnknown phase = iota
	phasePreAccepted
	phaseAccepted
	phaseCommitted
)

func (p phase) String() string {
	return [...]string{"unknown", "pre-accepted", "accepted", "committed"}[p]
}

// What replicas say to each other.
type (
	// head is what all messages between replicas begin with: the generation of the group. It ends
	// with a change of the members; its instances mean nothing in another one.
	head struct {
		Generation uint64
	}

	// preAccept proposes a command with what it depends on as far as its proposer knows.
	preAccept struct {
		head
		ID   instanceID
		Cmd  *command // nil: as was sent before; it asks for the answer
		Deps deps
	}

	// preAccepted answers it with what it depends on as far as both know.
	preAccepted struct {
		head
		ID     instanceID
		Deps   deps
		Fenced bool // the sender knows a change of the members that is not executed
	}

	// accept is phase 2a of Paxos for an instance.
	accept struct {
		head
		ID     instanceID
		Ballot kit.Ballot
		Cmd    *command // nil: as proposed
		Deps   deps
	}

	// accepted is phase 2b.
	accepted struct {
		head
		ID     instanceID
		Ballot kit.Ballot
	}

	// commit says what was decided.
	commit struct {
		head
		ID   instanceID
		Cmd  *command // nil: as proposed
		Deps deps
	}

	// lacking answers a message without the command that the sender was not sent, or has lost: the
	// message is wanted with it.
	lacking struct {
		head
		ID instanceID
	}

	// recover is phase 1a for an instance.
	recover struct {
		head
		ID     instanceID
		Ballot kit.Ballot
	}

	// recovered is phase 1b. A decided instance is answered with a Commit instead.
	recovered struct {
		head
		ID     instanceID
		Ballot kit.Ballot
		Phase  uint8
		Voted  kit.Ballot // in which the sender accepted, if it did
		Cmd    *command   // nil if not known
		Init   deps       // as proposed, empty if not known
		Deps   deps       // as pre-accepted or accepted
	}

	// validate asks whether anything says that a command cannot have been decided on the fast path
	// with the dependencies that it was proposed with.
	validate struct {
		head
		ID     instanceID
		Ballot kit.Ballot
		Cmd    *command
		Deps   deps
	}

	// validated answers it.
	validated struct {
		head
		ID      instanceID
		Ballot  kit.Ballot
		Invalid bool // a decided command conflicts with it, and neither depends on the other
		// commands that are not decided, of which the same would be said if they were decided as
		// proposed
		Pending []instanceID
	}

	// waiting says that the sender recovers a command, which must wait for others to be decided.
	// Agreed replicas are known to have agreed at once with how it was proposed, the proposer
	// included.
	waiting struct {
		head
		ID     instanceID
		Agreed uint64
	}

	// refusal answers a message with a ballot below the promised one.
	refusal struct {
		head
		ID       instanceID
		Promised kit.Ballot
	}

	// news tells what the sender has heard of, from time to time.
	news struct {
		head
		Top deps
	}

	// fetch asks for what was decided in some instances, or for a snapshot if the receiver has them
	// no more or is in a later generation.
	fetch struct {
		head
		Missing []span
	}

	// span is the instances of a row from First to Last.
	span struct {
		Row         protocol.ID
		First, Last uint64
	}

	// poll asks for all that conflicts with queries.
	poll struct {
		head
		Round uint64
		Keys  []string
		All   bool // they conflict with everything
	}

	// polled answers it.
	polled struct {
		head
		Round uint64
		Deps  deps
	}

	// settled is a message to oneself: the decision of an instance is on the disk.
	settled struct {
		head
		ID instanceID
	}
)

func (h head) begin() head { return h }

// headed is a message that begins with a Head.
type headed interface{ begin() head }

// instanceRecord is an instance as it is on disk: the newest record of each counts.
type instanceRecord struct {
	ID      instanceID
	Phase   uint8
	Ballot  kit.Ballot // promised
	Voted   kit.Ballot // in which it was accepted
	Nothing bool       // what was accepted or decided is nothing
	Cmd     *command   // as proposed; nil: that of the record before, if there is one
	Init    deps
	Deps    deps
}
