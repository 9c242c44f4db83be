package str

import (
	"cmp"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// course is what a coordinator remembers of how a transaction goes on, for those who ask why it
// took so long.
type course struct {
	explain   bool          // the client wants to know
	submitted time.Duration // when the commit was asked for
	localAt   time.Duration
	built     []store.Built
	wordAt    map[protocol.ID]time.Duration
	lastOn    store.TxnID
	lastOnAt  time.Duration
}

// maxBuilt is how many of a transaction's reads of what was not final are told.
const maxBuilt = 16

func (o *course) reads(key store.Key, by store.TxnID) {
	if len(o.built) < maxBuilt {
		o.built = append(o.built, store.Built{Key: key, By: by})
	}
}

// certifiedBy takes note of when a server's word came. What comes again is no news.
func (o *course) certifiedBy(server protocol.ID, now time.Duration) {
	if _, known := o.wordAt[server]; known {
		return
	}
	if o.wordAt == nil {
		o.wordAt = map[protocol.ID]time.Duration{}
	}
	o.wordAt[server] = now
}

// asAsked is a decision for somebody who may not have asked how the transaction came to its end.
func asAsked(d store.Decided, m store.CommitRequest) store.Decided {
	if !m.Explain {
		d.Course = nil
	}
	return d
}

// course tells how a transaction came to its end.
func (c *coordinator) course(t *txn) *store.Course {
	since := func(at time.Duration) time.Duration { return max(at-t.submitted, 0) }
	out := &store.Course{Snapshot: uint64(t.at), Built: t.built, Local: uint64(t.local)}
	if t.local > 0 {
		out.LocalAt = since(t.localAt)
	}
	for server, at := range t.course.wordAt { //pure:ok they are sorted
		p := c.places[server]
		out.Words = append(out.Words, store.CourseWord{Shard: uint32(p.Index), Site: uint32(p.Site), At: since(at)})
	}
	slices.SortFunc(out.Words, func(a, b store.CourseWord) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.Site, b.Site))
	})
	if !t.lastOn.IsZero() {
		out.LastOn, out.LastOnAt = t.lastOn, since(t.lastOnAt)
	}
	return out
}
