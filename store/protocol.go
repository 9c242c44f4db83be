package store

import (
	"time"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/protocol"
)

// A Message is anything that nodes of the family exchange, or get from and give to their
// applications. Which types it can be is the protocol's affair, beside those of this package.
type Message any

// A Protocol makes the nodes of one way to run a store. It is a value that package internal/catalog
// has under its name.
type Protocol struct {
	Name string // as in a configuration
	Doc  string // one sentence
	// Level is what is promised of committed transactions; 0: they are strictly serializable.
	Level history.Level
	// NewServer makes the node of one shard at one site, which has a disk. Its application may send
	// StatusQuery and Retire, and gets ServerStatus, Full and Refused.
	NewServer func(Config) (protocol.Node[Message], error)
	// NewCoordinator makes a machine's node that forgets all with a crash. Its application gets
	// Full. nil: there is none.
	NewCoordinator func(Config) (protocol.Node[Message], error)
	// NewClient makes the node of an application that reads and commits transactions: Get, Submit
	// and Query each have one answer.
	NewClient func(Config) (ClientNode, error)
	Codec     protocol.Codec[Message]
	// FixedSites says that a store has the sites that it began with, for good: none of them can be
	// fenced or replaced.
	FixedSites bool
	// Partial says that a shard may have copies at some of the sites only.
	Partial bool
}

// A ClientNode is an application's node. Whoever carries its messages may ask how long it waits
// for answers, but not concurrently with its other methods.
type ClientNode interface {
	protocol.Node[Message]
	// Patience is for how long at present the node waits for answers to CommitRequests until it
	// asks again.
	Patience() time.Duration
	// ReadPatience is the same for ReadRequests that nothing holds up.
	ReadPatience() time.Duration
}
