package bft

// A CallID names a call among those of one client node. The application chooses it and does not use
// it twice.
type CallID uint64

// A Call goes from an application to its client node, which answers with one Done. Before that it
// may say First, and Withdrawn after that.
type Call struct {
	ID      CallID
	Command []byte
	// Read says that the command is a query, which need not be ordered.
	Read bool
	// Members says that the command is a Change of the members, which only administrators may order.
	Members bool
	// After is an earlier call that must have been executed before, 0 for none, and Assumes are the
	// results of earlier calls that the caller stands on. If they are other ones nothing is done.
	After   CallID
	Assumes []Assumption
}

// An Assumption is what a caller takes for the result of an earlier call.
type Assumption struct {
	Call   CallID
	Digest Digest
}

// First is the first reply to a call: a guess, which the group has not confirmed.
type First struct {
	ID     CallID
	Result Result
}

// Withdrawn says that nothing speaks for what First said any more.
type Withdrawn struct{ ID CallID }

// Done is what became of a call: the group has confirmed it.
type Done struct {
	ID     CallID
	Result Result
}

// Repairing goes from a replica to its application: its disk had something else than it should. It
// fetches from the others what differs, and takes part again then.
type Repairing struct{ Reason string }

// Turned goes from a replica or a client node to its application: there are other members, or keys,
// from now on.
type Turned struct{ Directory *Directory }

// Refused goes from a replica to its application: it cannot take part with the disk that it has, so
// it is mute.
type Refused struct{ Reason string }
