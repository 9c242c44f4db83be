package replicatedcommit

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

type (
	// StatusQuery asks a server how it does. It comes from the server's application; ServerStatus
	// answers it, also if the server takes no part.
	StatusQuery struct{ Ref uint64 }

	// ServerStatus is what a server knows of itself.
	ServerStatus struct {
		Ref   uint64
		Site  int // its place in the layout
		Shard int
		Epoch uint64
		// Admitted says that the others know the server's disk. Before that it says nothing to
		// anybody.
		Admitted bool
		// Syncing says that the server takes the place of a lost one and copies what the others
		// have. Until it has, it votes for nothing and answers no reads.
		Syncing bool
		Copied  int    // how many servers it has copied since
		Needed  int    // how many it has to; 0 unless Syncing
		Refused string // why it may not take part; empty: it may

		Txns         int // transactions that it remembers
		TxnBytes     int // what keys and values of those take that are in memory with them
		Undecided    int // of these: it has voted and knows no decision
		Blocked      int // of these: it has asked twice or more, and nobody could say
		Wanting      int // committed, but what they write is not known here yet
		Locks        int // keys that are locked
		Waiting      int // reads that wait for them
		Reservations int // keys that are reserved for transactions that are tried again
		Held         int // requests for a vote that wait until other transactions leave their keys

		OldestUndecided store.TxnID   // zero: none
		OldestBlocked   []store.TxnID // at most maxBlockedShown, the oldest first
		Counts          Counts
		Retired         bool // see Retire
		// if so: transactions that it may have voted for and that others may not have carried out
		Unsettled int
		Old       uint64 // the time up to which transactions are forgotten once they are carried out everywhere
	}
)

// blockedAfter is after how many vain questions a transaction counts as blocked.
const blockedAfter = 2

// maxBlockedShown bounds the blocked transactions that a status names.
const maxBlockedShown = 8

func (s *Server) onStatus(env *protocol.Env[Message], m StatusQuery) {
	st := ServerStatus{
		Ref: m.Ref, Site: s.place.site, Shard: s.place.index, Admitted: s.admission.admitted, Refused: s.admission.refused,
		Epoch: s.cfg.Epoch, Syncing: s.newcomer.syncing, Txns: len(s.txns), Locks: len(s.locks), Waiting: s.waiters, Reservations: s.reserved, Held: len(s.holding.byTxn), Old: s.old, Counts: s.counts,
	}
	if s.newcomer.syncing {
		st.Needed = neededSources(s.cfg.Layout)
		for _, peer := range s.peers {
			if s.newcomer.sources[peer].stage == copied {
				st.Copied++
			}
		}
	}
	if s.retirement.retired {
		st.Retired, st.Unsettled = true, s.unsettled()
	}
	for id, r := range s.txns { //pure:ok sums and the least are the same in any order
		st.TxnBytes += contentBytes(r.reads, r.writes)
		switch {
		case r.now() == Wanting:
			st.Wanting++
		case r.state == Yes || r.state == No:
			st.Undecided++
			if r.waits >= blockedAfter {
				st.Blocked++
				st.OldestBlocked = append(st.OldestBlocked, id)
			}
			if st.OldestUndecided.IsZero() || st.OldestUndecided.After(id) {
				st.OldestUndecided = id
			}
		}
	}
	slices.SortFunc(st.OldestBlocked, func(a, b store.TxnID) int { return a.Compare(b) })
	st.OldestBlocked = st.OldestBlocked[:min(len(st.OldestBlocked), maxBlockedShown)]
	env.Send(protocol.App, st)
}
