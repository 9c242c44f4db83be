package store

import (
	"time"

	"github.com/foresay/foresay/internal/wirefmt"
)

type (
	// A Course is how a transaction that reads a snapshot came to its end, as its coordinator tells
	// it. Times are since that was asked for the commit.
	Course struct {
		Snapshot uint64  // of which it has read
		Built    []Built // what it has read that was not final
		// Local is the timestamp of its local commit, and LocalAt when that was; 0: there was none.
		Local   uint64
		LocalAt time.Duration
		Words   []CourseWord // of the servers that have certified it, the first one first
		// LastOn is what it depended on that was final last, and LastOnAt when that was; zero: nothing.
		// The last word or this is what the final commit waited for.
		LastOn   TxnID
		LastOnAt time.Duration
	}

	// Built is a read of what another transaction has written and that was not final.
	Built struct {
		Key Key
		By  TxnID
	}

	// A CourseWord is when a shard's server at a site has certified a transaction.
	CourseWord struct {
		Shard, Site uint32
		At          time.Duration
	}
)

func courseFields(c *wirefmt.Coder, m *Course) {
	wirefmt.Uint(c, &m.Snapshot)
	wirefmt.List(c, &m.Built, 3, func(c *wirefmt.Coder, b *Built) {
		wirefmt.String(c, &b.Key)
		VersionFields(c, &b.By)
	})
	wirefmt.Uint(c, &m.Local)
	wirefmt.Uint(c, &m.LocalAt)
	wirefmt.List(c, &m.Words, 3, func(c *wirefmt.Coder, w *CourseWord) {
		wirefmt.Uint32(c, &w.Shard)
		wirefmt.Uint32(c, &w.Site)
		wirefmt.Uint(c, &w.At)
	})
	VersionFields(c, &m.LastOn)
	wirefmt.Uint(c, &m.LastOnAt)
}
