package smr

import (
	"time"

	"github.com/foresay/foresay/protocol"
)

// A Protocol makes the nodes of one way to replicate. It is a value that package internal/catalog
// has under its name.
type Protocol struct {
	Name string // as on a command line
	Doc  string // one sentence
	// NewReplica and NewClient validate their configurations; an error names the field.
	NewReplica func(ReplicaConfig) (protocol.Node[Message], error)
	NewClient  func(ClientConfig) (protocol.Node[Message], error)
	Codec      protocol.Codec[Message]
	// Salvage is what kit.SalvageDisk calls; nil if the disks of the protocol's replicas do not tell
	// what these had executed.
	Salvage func(cfg ReplicaConfig, env *protocol.Env[Message], log []protocol.Record[Message]) (Salvaged, error)
	// Leaderless protocols have commands decided by each replica; there is no Status.Leader.
	Leaderless bool
	// HandsOver says that a leader takes a HandOver.
	HandsOver bool
	// Learns says that a replica with Join gets the state and what is decided before it is a
	// member, and that one is added only when it is up to date. Else it counts from the change that
	// adds it on, and gets them then.
	Learns bool
	// Timed says that slots are times, so a replica's clock is to be the time of day, also when that
	// is set. Other protocols do as well with a clock that never jumps.
	Timed bool
}

// ReplicaConfig is what a replica of any protocol of the family is made from. A zero value of an
// optional field is its default.
type ReplicaConfig struct {
	ID protocol.ID
	// Members are the replicas of a new group, the same for each of them. A replica whose disk
	// knows better ignores it; one that joins an existing group has Join set, and gets from Members
	// whom to ask.
	Members []Member
	Join    bool
	Machine StateMachine

	// RoundTrip is about the longest round-trip time between two members. Timeouts follow from it.
	// 0 is 100 ms.
	RoundTrip time.Duration
	// Leader is the member that should lead first, 0 for whoever comes first. Protocols without a
	// leader ignore it.
	Leader protocol.ID
	// MaxBatch is how many commands are agreed on at once at most. 0 is 1024, 1 is no batching.
	MaxBatch int
	// MaxPending bounds the commands that a replica has taken and not answered, and the queries;
	// more are rejected as overload. 0 is 65536.
	MaxPending int
	// MaxPendingBytes bounds the bytes of these commands, and of these queries; a single larger one
	// is taken. 0 is 64 MiB.
	MaxPendingBytes int
	// SnapshotEvery is how many commands are executed between two snapshots, after which the log is
	// cut. 0 is 100000.
	SnapshotEvery int
	// LogBytes is about how many bytes of commands are executed between two snapshots, if
	// SnapshotEvery does not come first; for a Machine that is no Differ as many as the last
	// snapshot has, if that is more. 0 is 32 MiB.
	LogBytes int
	// SnapshotPartBytes is how much of a snapshot is written in one go; commands wait for that
	// long. 0 is 128 KiB.
	SnapshotPartBytes int
	// MaxSessions bounds the sessions; the one that was unused for the longest time goes first. 0
	// is 10000.
	MaxSessions int
	// MaxAnswerBytes bounds the results that are kept until their clients acknowledge them, in case
	// they ask again. Beyond it those of sessions that were unused for the longest time are
	// forgotten, but not that the commands were executed. 0 is 64 MiB.
	MaxAnswerBytes int
	// MaxUnderwayBytes bounds how much of the log is sent to a member that has not acknowledged it,
	// but for one message: one that was away gets what it lacks a part at a time, and what is lost
	// is sent again no faster. 0 is 6 MiB: two logs, of two tracks, and what else is said fit in the
	// queue of a connection (transport.Config.QueueBytes), which loses what is more.
	MaxUnderwayBytes int
	// Executed gets, for figures, how long after it came to this replica a command was executed
	// here, of those that clients asked this replica for. It is called in the node's own calls, and
	// must not wait. nil: nobody.
	Executed func(outcome Outcome, took time.Duration)
	// Vouch tells what this replica's host knows of another member's, and of itself. It is called
	// in the node's own calls. With it, groups rest while they have nothing to do. nil: hosts do not
	// vouch for each other, and no group rests.
	Vouch func(protocol.ID) (Vouched, bool)
}

// ClientConfig is what a client node of any protocol of the family is made from.
type ClientConfig struct {
	ID      protocol.ID
	Members []Member // of whom some are still members
	// RoundTrip is about the longest round-trip time to a member. A request without an answer is
	// repeated after a multiple of it. 0 is 100 ms.
	RoundTrip time.Duration
	// MaxPending bounds the calls that are not done; more are rejected at once. 0 is 65536.
	MaxPending int
	// MaxPendingBytes bounds the bytes of their commands and queries; a single larger one is taken.
	// 0 is 64 MiB.
	MaxPendingBytes int
	// Nearest is the member to ask first, 0 for any.
	Nearest protocol.ID
}
