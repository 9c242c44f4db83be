package replicatedcommit

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// State is what a shard knows of a transaction.
type State uint8

// The states. A vote, Yes or No, is given once and for all; it may be followed by the decision.
const (
	Undecided State = iota // not heard of
	Yes
	No
	Wanting // committed, but what it writes is not known here yet
	Committed
	Aborted
	Old  // older than what is remembered: it was never voted for here, or is decided and applied everywhere
	Gone // older than what is remembered, and perhaps applied everywhere but at a site that has not copied it yet
)

// What clients and servers say.
type (
	// ReadRequest asks a shard for a key. With a priority it reserves the key for an older
	// transaction than those that may come.
	ReadRequest struct {
		Ref      uint64
		Key      store.Key
		Priority store.Priority
	}

	// ReadReply answers it.
	ReadReply struct {
		Ref     uint64
		Value   store.Value
		Pending bool   // a transaction that is not decided has the key, and has had it for long
		Hint    uint64 // the client's next version must be above it
		// Queued says that it is not the transaction's turn: older ones that were refused before
		// are going to change the key. The client had better ask again.
		Queued bool
	}

	// CommitRequest asks a coordinator, one of each site, to have its site vote. It can be
	// repeated. Recover is for one that got no answer: what is known of a decision is found out
	// then, and sites that have not voted are made to.
	CommitRequest struct {
		Txn     store.Txn
		Recover bool
		// Firm says that another site has voted yes already: reservations are no reason to vote no.
		Firm bool
		// Hold says that the vote may wait a round trip for keys that other transactions have or
		// are to have. One site at most is asked so, the nearest, as its vote alone comes before
		// those of others; while a site is silent, none is. A transaction that only reads is not
		// held back.
		Hold bool
	}

	// SiteVote says how a site votes, to clients and to coordinators of other sites.
	SiteVote struct {
		ID     store.TxnID
		Shards []uint32
		Yes    bool
		Reason store.Reason
		Hint   uint64
		// Current are keys that were read and have changed, or are about to; to clients only, and
		// perhaps not all.
		Current []Current
	}

	// Current is what a server that refuses a transaction holds under a key that the transaction
	// read: a later value or, if Locked, one that has to be read, as it is about to change or too
	// big to be sent along.
	Current struct {
		Key    store.Key
		Locked bool
		Value  store.Value
	}

	// Busy tells a client that a coordinator remembers as many transactions as it may, and has done
	// nothing with a CommitRequest.
	Busy struct{ ID store.TxnID }

	// Decided tells a client how its transaction ended.
	Decided struct {
		ID      store.TxnID
		Verdict store.Verdict // Committed, Aborted or Unknown
		Reason  store.Reason
	}
)

// What coordinators and servers say.
type (
	// Prepare asks a shard for its vote on its part of a transaction. It comes from the site's
	// coordinator, or from the shard's server at a site that voted yes.
	Prepare struct {
		Txn    store.Txn
		Shards []uint32 // that have a part
		// ReadOnly says that no part writes. Then the vote binds nobody.
		ReadOnly bool
		Firm     bool // as in CommitRequest
		Hold     bool // likewise
	}

	// Vote is what a shard knows of a transaction.
	Vote struct {
		ID      store.TxnID
		State   State
		Reason  store.Reason
		Hint    uint64
		Current []Current // as in SiteVote
	}

	// Ask asks a shard how it voted. If it has not, it votes no with Fence, and otherwise says so:
	// it may still vote.
	Ask struct {
		ID     store.TxnID
		Shards []uint32
		Fence  bool
	}

	// Urge has a shard that voted yes hand its part to the shard's server at another site, which
	// has not voted.
	Urge struct {
		ID   store.TxnID
		Site uint32
	}

	// Decide tells a shard the decision.
	Decide struct {
		ID     store.TxnID
		Shards []uint32
		Commit bool
		// Old says that an abort rests on sites which may have forgotten a decision: one that is
		// remembered stands.
		Old bool
	}

	// Applied says that all shards of the sender's site have carried out the decision.
	Applied struct{ ID store.TxnID }

	// Forget says that all servers which have a part have carried out the decision, but for those
	// of which nothing is heard.
	Forget struct {
		ID  store.TxnID
		But []protocol.ID
	}

	// Resolve asks the site's coordinator to find out about a transaction that the sender
	// remembers.
	Resolve struct {
		ID     store.TxnID
		Shards []uint32
		State  State
		Reason store.Reason
	}
)

// What servers of one shard say to each other.
type (
	// Fetch asks for what a committed transaction writes.
	Fetch struct{ ID store.TxnID }

	// Content answers it.
	Content struct {
		ID     store.TxnID
		Old    bool // the sender has forgotten it, or never heard of it and never will
		Writes []store.Write
	}

	// Hello tells a peer how far the sender's disk is, and asks whether it may take part under the
	// sender's ID.
	Hello struct{ Disk, Mark, Start uint64 }

	// Welcome answers it with the disk that the peer knows under the ID, the highest mark of that,
	// and the start that it is of.
	Welcome struct {
		Asked             uint64 // the start of the Hello
		Disk, Mark, Start uint64
	}
)

// What applications and their nodes say.
type (
	// Get reads a key from a majority of the sites. Got answers it.
	Get struct {
		Ref      uint64 // of the application's choice, as in all its calls
		Key      store.Key
		Priority store.Priority // of a transaction that is tried again
		// Nearest asks the nearest site only, and others if that does not answer. Got is the first
		// answer then, which may be old.
		Nearest bool
	}

	// Got is what a majority knows, or not OK: none answered in time.
	Got struct {
		Ref     uint64
		OK      bool
		Value   store.Value
		Pending bool // somebody is about to change it, or blocks it
		// Settled says that a majority has answered, and nobody of it is about to change the key:
		// one who reads nothing else needs no validation.
		Settled bool
		Full    bool // nobody was asked: too many reads wait
		Site    int  // whose answer was the last that was needed, by its place in the layout
	}

	// First is the first answer to a Get. It comes before Got, unless that is the same, and is a
	// guess at it.
	First struct {
		Ref     uint64
		Value   store.Value
		Pending bool
		Site    int
	}

	// Cancel says that nobody waits for the answer to a call any more. A Submit or Query is
	// answered with what is known; a Get is not answered.
	Cancel struct{ Ref uint64 }

	// Submit commits a transaction. Done answers it.
	Submit struct {
		Ref      uint64
		Priority store.Priority // of the first attempt; zero: this is the first
		Reads    []store.Read
		Writes   []store.Write
		// Hold has the nearest site hold its vote back, as in CommitRequest. It does nothing before
		// there were reads, as nobody knows which site that is.
		Hold bool
		// Absent are the places of sites that there is no connection to: they are away until they
		// answer.
		Absent []int
	}

	// Query asks again for the outcome of a transaction that was unknown or blocked. Done answers
	// it.
	Query struct {
		Ref uint64
		Txn store.Txn // as Done had it
	}

	// Done says how a transaction ended. Txn has its ID, and the priority for the next attempt.
	Done struct {
		Ref     uint64
		Txn     store.Txn
		Outcome store.Outcome
		Current []Current // of an aborted one: what its reads should have been, as far as votes said
		Site    int       // whose vote or word was the last that was needed, by its place in the layout; -1: none's
	}

	// Full tells the application of a server or a coordinator that it takes no new transactions at
	// present, as it has as many as it may remember. It comes now and then while that is so.
	Full struct{ Transactions int }

	// Refused tells a server's application that its disk may not take part, and why.
	Refused struct {
		Reason string
		Forgot bool // the disk is lost, or has forgotten what it had voted: its site has to be replaced
	}
)
