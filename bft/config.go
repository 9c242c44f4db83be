package bft

import (
	"time"

	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/protocol"
)

// ReplicaConfig is what a replica is made from. A zero value of an optional field is its default.
type ReplicaConfig struct {
	ID        protocol.ID
	Directory *Directory
	Scheme    *Scheme
	// Signer is this replica's. If its key is not that of the member ID, which may be no member at
	// all, the replica waits until a change makes it one.
	Signer *Signer
	// NextSigner takes the place of Signer when its key is the member's; nil: there is none.
	NextSigner *Signer
	Service    Service
	// RoundTrip is about the longest round-trip time between two members. Timeouts follow from it. 0
	// is 100 ms.
	RoundTrip time.Duration
	// CheckpointEvery is how many batches are executed between two checkpoints; 0 is 64. Twice as
	// many are under way at most.
	CheckpointEvery int
	MaxBatch        int // operations; 0 is 64
	// MaxUnderway is how many batches a primary has proposed that are not prepared before further
	// requests wait until they fill one; 0 is 4.
	MaxUnderway int
	// NoFirst says that a primary tells clients nothing before the group has executed it, which spares
	// it a signature: plain PBFT.
	NoFirst bool
	// ClockSlack is by how much a primary's time may differ from a backup's clock; 0 is 10 s.
	ClockSlack time.Duration
	Limits     Limits
}

// ClientConfig is what a client node is made from.
type ClientConfig struct {
	ID        protocol.ID
	Directory *Directory
	Scheme    *Scheme
	Signer    *Signer
	RoundTrip time.Duration // 0 is 100 ms
	// Session is below what the node's session will be. A client whose disk does not outlive it says
	// here what no earlier session of its key was above; 0 is right for one with a disk.
	Session SessionID
	// Ordered says that no client of the group makes optimised reads: all calls are ordered, and
	// fewer replies confirm one.
	Ordered bool
	Limits  Limits // the group's
}

// A Protocol is one of the family.
type Protocol struct {
	Name       string
	NewReplica func(ReplicaConfig) (protocol.Node[Message], error)
	NewClient  func(ClientConfig) (protocol.Node[Message], error)
	// Codec returns the codec of a group's messages and records, which checks signatures.
	Codec func(*Scheme) protocol.Codec[Message]
	// Strategies are how a replica can betray the others, and Traitor makes a traitor of a replica:
	// a wrapper around it that has its keys. They are for tests.
	Strategies []string
	Traitor    func(strategy string) Traitor
	// ClientStrategies are how a client can do as it likes, and NewBadClient returns one that does.
	// With no strategy it is each of the small ones in turn. It does not write.
	ClientStrategies []string
	NewBadClient     func(strategy string, c ClientConfig) protocol.Node[Message]
}

// A Traitor makes a replica do as it likes.
type Traitor func(node protocol.Node[Message], cfg ReplicaConfig) protocol.Node[Message]

// Standing is how far a replica is.
type Standing struct {
	Epoch                            Epoch
	Member                           bool // of this epoch, by its ID and its key
	View                             View
	Active                           bool // the view has begun here
	Stable, Committed, Executed, Top Seq
	High                             Seq // the water mark: nothing above it is proposed
	// Transfers is how many states it has fetched since it started, and Refused how many parts that
	// others gave it were wrong.
	Transfers, Refused int
	// Repairs is how many times it has found that its disk had something else than it should.
	Repairs int
	// Caught is how many views it has ended since it started because what their primaries had signed
	// proved that they lie.
	Caught int
}

// Observed is a replica that can be looked at.
type Observed interface {
	protocol.Node[Message]
	Standing() Standing
	// State returns what is committed, from what the replica has on its disk.
	State(disk keyspace.Reader) keyspace.Reader
	// Decided tells which batches are committed of those that are still kept.
	Decided(func(Seq, Digest))
}
