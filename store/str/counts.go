package str

import (
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// tally is what a coordinator has seen of transactions that build on each other.
type tally struct{ status store.SpeculationStatus }

// tallied is what a transaction is counted as.
type tallied struct {
	builds bool
	// cause is why it is being aborted; causeGiven says that it is known. Else it follows from the
	// reason and from how far the transaction was.
	cause      store.AbortCause
	causeGiven bool
}

// abortAs aborts a transaction for a cause that its reason does not tell.
func (c *coordinator) abortAs(
	env *protocol.Env[store.Message], t *txn, cause store.AbortCause, why store.Reason,
) {
	if t.stage != over {
		t.cause, t.causeGiven = cause, true
	}
	c.abort(env, t, why)
}

// count takes note of what has happened to a transaction.
func (a *tally) count(e event) {
	s := &a.status
	switch e.what {
	case readsFrom, writesOver:
		if !e.t.builds {
			e.t.builds = true
			s.Builders++
		}
	case isLocal:
		n := e.t.chain()
		s.Locals++
		s.ChainSum, s.Longest = s.ChainSum+uint64(n), max(s.Longest, n)
		bounds := store.ChainBounds()
		i, _ := slices.BinarySearch(bounds[:], n)
		s.Chains[i]++
	case isFinal:
		s.Finals++
	case isAborted:
		s.Aborted[e.t.abortCause()]++
		if e.t.local > 0 {
			s.Misspeculated++
		}
	}
}

// chain returns on how many transactions that are not final another one depends.
func (t *txn) chain() int {
	if len(t.on) == 0 {
		return 0
	}
	seen := map[store.TxnID]bool{}
	var walk func(t *txn)
	walk = func(t *txn) {
		for id, on := range t.on { //pure:ok they are counted
			if !seen[id] {
				seen[id] = true
				walk(on)
			}
		}
	}
	walk(t)
	return len(seen)
}

// abortCause returns why a transaction that is aborted was.
func (t *txn) abortCause() store.AbortCause {
	switch {
	case t.causeGiven:
		return t.cause
	case t.reason == store.Old:
		return store.SnapshotTooOld
	case t.reason == store.Lapsed:
		return store.GivenUp
	case t.local > 0:
		return store.RemoteCertification
	case t.reason == store.StaleWrite, t.reason == store.Locked:
		return store.LocalCertification
	}
	return store.GivenUp
}

// onStatus tells what the coordinator has seen.
func (c *coordinator) onStatus(env *protocol.Env[store.Message], m store.StatusQuery) {
	out := c.tally.status
	out.Ref = m.Ref
	for id, t := range c.txns { //pure:ok they are counted, and one is the first
		if t.stage == locally {
			out.Unfinal++
		}
		if at, blocked := t.blockedSince(); blocked {
			out.Blocked++
			if age := env.Now - at; out.OldestBlocked.IsZero() || age > out.BlockedFor ||
				age == out.BlockedFor && id.Compare(out.OldestBlocked) < 0 {
				out.OldestBlocked, out.BlockedFor = id, age
			}
		}
	}
	out.Degree, out.Tuning = c.degree.String(), c.tuning.status()
	env.Send(protocol.App, out)
}

// blockedSince returns since when what a transaction has read is held back; false: it is not.
func (t *txn) blockedSince() (at time.Duration, blocked bool) {
	if t.stage != running || len(t.blocked) == 0 {
		return 0, false
	}
	at = t.blocked[0].came
	for _, r := range t.blocked {
		at = min(at, r.came)
	}
	return at, true
}

// snapshots is what the server goes by that serves snapshots.
func (s *server) snapshots(env *protocol.Env[store.Message]) *store.SnapshotStatus {
	state := s.group.State(env)
	out := &store.SnapshotStatus{Serves: !s.deaf(), Ceiling: uint64(max(s.reads.Ceiling(), 0)),
		Horizon: uint64(s.state.values.Horizon(state))}
	for i, site := range s.cfg.Layout.Sites {
		if len(site.Shards) > s.place.Index && slices.Contains(s.state.books.deaf, site.Shards[s.place.Index]) {
			out.Silent = append(out.Silent, i)
		}
	}
	return out
}
