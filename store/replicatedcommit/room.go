package replicatedcommit

import (
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// keepFor is how many round trips a transaction that is carried out everywhere is remembered at
// least, for clients that ask.
const keepFor = 8

// makeRoom reports whether there is room for one more transaction. If there are as many as may be,
// those that are carried out everywhere are forgotten before their time, the oldest first.
func (s *server) makeRoom(env *protocol.Env[message]) bool {
	if len(s.txns) < s.cfg.MaxTxns {
		return true
	}
	if s.looked != 0 && env.Now-s.looked < s.cfg.RoundTrip && env.Now >= s.looked {
		return false // there was nothing to forget a moment ago
	}
	slices.SortFunc(s.done, store.Version.Compare)
	last := min(len(s.done), 1+s.cfg.MaxTxns/16) - 1
	latest := uint64(max(env.Now-keepFor*s.cfg.RoundTrip, 0))
	for ; last >= 0 && s.done[last].Time > latest; last-- {
	}
	if last >= 0 {
		s.raiseOld(env, s.done[last].Time)
		s.forgetOld(env)
	}
	s.looked = 0
	if len(s.txns) >= s.cfg.MaxTxns {
		s.looked = env.Now
		return false
	}
	return true
}

// forgetOld forgets what is old and done. What others are owed of it is on disk with the same
// write.
func (s *server) forgetOld(env *protocol.Env[message]) {
	owed := map[protocol.ID]bool{}
	s.done = slices.DeleteFunc(s.done, func(id store.TxnID) bool {
		if id.Time > s.old {
			return false
		}
		for _, server := range s.txns[id].but {
			owed[server] = true
		}
		s.remove(env, id)
		return true
	})
	s.keepDebts(env, owed)
}

// turnAway refuses a transaction for which there is no room, for good and without a record: from
// now on it is old, and none that is old and not remembered is ever voted for.
func (s *server) turnAway(env *protocol.Env[message], to protocol.ID, id store.TxnID) {
	if s.fullSaid == 0 || env.Now-s.fullSaid > fullEvery {
		s.fullSaid = env.Now
		env.Send(protocol.App, store.Full{Transactions: len(s.txns)})
	}
	if id.Time > uint64(max(env.Now, 0)+s.cfg.RoundTrip) {
		return // all that others begin until then would be old, too
	}
	s.raiseOld(env, id.Time)
	s.marked(env)
	s.counts.Voted(store.Overloaded)
	env.Send(to, vote{ID: id, State: old, Reason: store.Overloaded, Hint: s.old})
}

// turnAway tells a client that there is no room for its transaction. That is no vote: the site's
// shards may have voted, or may yet.
func (c *coordinator) turnAway(env *protocol.Env[message], client protocol.ID, id store.TxnID) {
	if c.fullSaid == 0 || env.Now-c.fullSaid > fullEvery {
		c.fullSaid = env.Now
		env.Send(protocol.App, store.Full{Transactions: len(c.entries)})
	}
	env.Send(client, store.Busy{ID: id})
}

// fullEvery is how often the application is told that there is no room.
const fullEvery = 10 * time.Second
