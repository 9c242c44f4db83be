package replicatedcommit

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// txnState is what a shard knows of a transaction.
type txnState uint8

// The states. A vote, Yes or No, is given once and for all; it may be followed by the decision.
const (
	undecided txnState = iota // not heard of
	yes
	no
	wanting // committed, but what it writes is not known here yet
	committed
	aborted
	old  // older than what is remembered: it was never voted for here, or is decided and applied everywhere
	gone // older than what is remembered, and perhaps applied everywhere but at a site that has not copied it yet
)

// What coordinators and servers say.
type (
	// prepare asks a shard for its vote on its part of a transaction. It comes from the site's
	// coordinator, or from the shard's server at a site that voted yes.
	prepare struct {
		Txn    store.Txn
		Shards []uint32 // that have a part
		// ReadOnly says that no part writes. Then the vote binds nobody.
		ReadOnly bool
		Firm     bool // as in CommitRequest
		Hold     bool // likewise
	}

	// vote is what a shard knows of a transaction.
	vote struct {
		ID      store.TxnID
		State   txnState
		Reason  store.Reason
		Hint    uint64
		Current []store.Current // as in SiteVote
	}

	// ask asks a shard how it voted. If it has not, it votes no with Fence, and otherwise says so:
	// it may still vote.
	ask struct {
		ID     store.TxnID
		Shards []uint32
		Fence  bool
	}

	// urge has a shard that voted yes hand its part to the shard's server at another site, which
	// has not voted.
	urge struct {
		ID   store.TxnID
		Site uint32
	}

	// decide tells a shard the decision.
	decide struct {
		ID     store.TxnID
		Shards []uint32
		Commit bool
		// Old says that an abort rests on sites which may have forgotten a decision: one that is
		// remembered stands.
		Old bool
	}

	// applied says that all shards of the sender's site have carried out the decision.
	applied struct{ ID store.TxnID }

	// forget says that all servers which have a part have carried out the decision, but for those
	// of which nothing is heard.
	forget struct {
		ID  store.TxnID
		But []protocol.ID
	}

	// resolve asks the site's coordinator to find out about a transaction that the sender
	// remembers.
	resolve struct {
		ID     store.TxnID
		Shards []uint32
		State  txnState
		Reason store.Reason
	}
)

// What servers of one shard say to each other.
type (
	// fetch asks for what a committed transaction writes.
	fetch struct{ ID store.TxnID }

	// content answers it.
	content struct {
		ID     store.TxnID
		Old    bool // the sender has forgotten it, or never heard of it and never will
		Writes []store.Write
	}

	// hello tells a peer how far the sender's disk is, and asks whether it may take part under the
	// sender's ID.
	hello struct{ Disk, Mark, Start uint64 }

	// welcome answers it with the disk that the peer knows under the ID, the highest mark of that,
	// and the start that it is of.
	welcome struct {
		Asked             uint64 // the start of the Hello
		Disk, Mark, Start uint64
	}
)
