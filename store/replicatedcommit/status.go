package replicatedcommit

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// blockedAfter is after how many vain questions a transaction counts as blocked.
const blockedAfter = 2

// maxBlockedShown bounds the blocked transactions that a status names.
const maxBlockedShown = 8

func (s *server) onStatus(env *protocol.Env[message], m store.StatusQuery) {
	st := store.ServerStatus{
		Ref: m.Ref, Site: s.place.Site, Shard: s.place.Index, Admitted: s.admission.admitted, Refused: s.admission.refused,
		Epoch: s.cfg.Epoch, Syncing: s.newcomer.syncing, Txns: len(s.txns), Open: len(s.txns) - len(s.done),
		Locks: len(s.locks), Waiting: s.waiters, Reservations: s.reservations.Len(), Held: len(s.holding.byTxn), Old: s.old,
		Counts: s.counts,
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
		st.TxnBytes += store.ContentBytes(r.reads, r.writes)
		switch {
		case r.now() == wanting:
			st.Wanting++
		case r.state == yes || r.state == no:
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
