package store

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
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
	// and Query each have one answer. In a program it is behind the gRPC service (package front),
	// which has calls for ReadRequest, to a server, and for CommitRequest, DeclareRequest and
	// AbandonRequest, to a coordinator, and for nothing else. What a client has to say besides is for
	// a site's coordinator to say.
	NewClient func(Config) (ClientNode, error)
	Codec     protocol.Codec[Message]
	// FixedSites says that a store has the sites that it began with, for good: none of them can be
	// fenced or replaced.
	FixedSites bool
	// Absent says that clients go by Submit.Absent: to know it a client waits, before it writes, until
	// it is connected to all sites.
	Absent bool
	// Partial says that a shard may have copies at some of the sites only.
	Partial bool
	// Coordinating says that transactions are coordinated by groups of their own: a layout has shards
	// for them that have no keys, Layout.Keyless.
	Coordinating bool
	// Preload says how keys get on disks before a server's first start. nil: not supported.
	Preload *Preload
	// Stamped says that the versions of what a transaction writes have a time of the store's choice.
	// Their Client is the ID's, which no two transactions share then. Else the version is the ID.
	Stamped bool
	// Clocked says that transactions which only read are in real time's order as long as clocks keep
	// Config.MaxOffset. They are serializable whatever clocks do, and the others are what Level says.
	Clocked bool
	// Snapshots says that servers keep versions for Config.Retain at least, and answer PageRequest.
	Snapshots bool
	// Declares says that clients take Declare. With Clocked, one without writes is a transaction that
	// only reads: it is committed when Declared has its values, and there is nothing to submit.
	Declares bool
	// Steps says that a transaction reads a snapshot, by Declares alone: the first one begins it and
	// has General, and those that follow name that one as Begun. A Get is a transaction of its own.
	Steps bool
	// Speculates says that transactions can be answered when they are committed locally
	// (Submit.Speculate).
	Speculates bool
	// Degrees are how far transactions may build on what is not final, by Config.Speculate, the first
	// one if that says nothing; nil: there is no choice.
	Degrees []string
	// Readers says that not all copies need to serve reads (Config.Readers).
	Readers bool
	// CoordinatorStatus says that a coordinator answers its application's StatusQuery.
	CoordinatorStatus bool
	// Stale says that clients take a Declare with MaxAge: a site near them answers alone, as of a
	// timestamp at or below which nothing is written any more.
	Stale bool
	// Orders says that servers can handle requests by arrival: see Config.ByArrival.
	Orders bool
	// Leads says that one server of a shard leads it, and takes HandOver.
	Leads bool
	// Modes are the protocol's variants, which a store is made with for good; nil: there is one only.
	// Mode is the one of them that this is, and Variant returns it in another one.
	Modes   []string
	Mode    string
	Variant func(mode string) Protocol
}

// A Preload says how a server's key space has a key that was there before the server was first
// started: behind a prefix that no other keys of the space have.
type Preload struct {
	Prefix string
	Encode func(Value) []byte
}

// Writer returns what identifies the transaction that wrote a version: it is the same for all that
// the transaction wrote, and for its ID.
func (p Protocol) Writer(v Version) Version {
	if p.Stamped {
		v.Time = 0
	}
	return v
}

// Title returns the protocol's name, with its mode if it has modes.
func (p Protocol) Title() string {
	if p.Mode == "" {
		return p.Name
	}
	return p.Name + " in mode " + p.Mode
}

// In returns the protocol in a mode; "" is the first one.
func (p Protocol) In(mode string) (Protocol, error) {
	switch {
	case mode == "" || len(p.Modes) > 0 && mode == p.Modes[0]:
		return p, nil
	case slices.Contains(p.Modes, mode):
		return p.Variant(mode), nil
	case len(p.Modes) == 0:
		return Protocol{}, fmt.Errorf("the mode %q: the protocol %s has no modes", mode, p.Name)
	}
	return Protocol{}, fmt.Errorf("unknown mode %q of the protocol %s (want %s)", mode, p.Name,
		strings.Join(p.Modes, ", "))
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

// Promises returns the level of committed transactions.
func (p Protocol) Promises() history.Level { return cmp.Or(p.Level, history.StrictSerializable) }
