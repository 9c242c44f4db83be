package store

import "time"

// What clients and sites say.
type (
	// ReadRequest asks a shard for a key. With a priority it reserves the key for an older
	// transaction than those that may come.
	ReadRequest struct {
		Ref      uint64
		Key      Key
		Priority Priority
	}

	// ReadReply answers it.
	ReadReply struct {
		Ref     uint64
		Value   Value
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
		Txn     Txn
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
		ID     TxnID
		Shards []uint32
		Yes    bool
		Reason Reason
		Hint   uint64
		// Current are keys that were read and have changed, or are about to; to clients only, and
		// perhaps not all.
		Current []Current
	}

	// Current is what a server that refuses a transaction holds under a key that the transaction
	// read: a later value or, if Locked, one that has to be read, as it is about to change or too
	// big to be sent along.
	Current struct {
		Key    Key
		Locked bool
		Value  Value
	}

	// Busy tells a client that a coordinator remembers as many transactions as it may, and has done
	// nothing with a CommitRequest.
	Busy struct{ ID TxnID }

	// Decided tells a client how its transaction ended.
	Decided struct {
		ID      TxnID
		Verdict Verdict // Committed, Aborted or Unknown
		Reason  Reason
	}
)

// Bytes returns how large what a request carries is.
func (m CommitRequest) Bytes() int { return ContentBytes(m.Txn.Reads, m.Txn.Writes) }

// leastRate is a rate at which transactions surely get to a site, in bytes a second.
const leastRate = 4 << 20

// SendTime returns how long it takes at most to send so many bytes to a site.
func SendTime(bytes int) time.Duration { return time.Duration(bytes) * time.Second / leastRate }
