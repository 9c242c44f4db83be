package str

import (
	"math"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// ahead is what a client knows of a transaction after whose local commit its application goes on.
type ahead struct {
	held  bool          // what its application stands on is not known to be right
	told  bool          // of the local commit
	after []store.TxnID // that its application took for committed
	// ended is how it ends once those are known that follow it; nil: that is not known, or need not
	// wait.
	ended *store.Done
	// Of those that follow it one is committed, and so it is; or the outcome of one is not known.
	right, doubt bool
	left         bool // its application does not wait any more
}

// partTimer is when a transaction ends, whatever becomes of those that follow it.
type partTimer struct{ id store.TxnID }

// partTrips is for how many round trips a client finds out, for an application that does not wait
// any more, what has become of transactions that follow one.
const partTrips = 2

// speculate has a transaction's coordinator say when it is committed locally.
func (c *client) speculate(s *submit, m store.Submit) {
	s.held, s.after = m.Held || m.Waits, m.After
	s.Ask = func(r store.CommitRequest) store.Message {
		if (m.Held || m.Waits) && !s.held {
			return r // which confirms it
		}
		return store.SpeculateRequest{CommitRequest: r, Held: m.Held, Waits: m.Waits, After: m.After, Told: s.told}
	}
	s.Ends = func(env *protocol.Env[store.Message], done store.Done) bool { return c.ends(env, s, done) }
}

// onSpeculated takes word of a local commit, and goes on waiting.
func (c *client) onSpeculated(env *protocol.Env[store.Message], from protocol.ID, m store.Speculated) {
	s := c.Submit(m.ID)
	if s == nil || s.Ask == nil || c.cfg.Layout.Coordinator(s.Site, m.ID) != from || m.At >= maxSeen {
		return
	}
	if !s.told {
		s.told, c.seen = true, max(c.seen, m.At)
		env.Send(protocol.App, store.Speculates{Ref: s.Ref(), ID: m.ID})
	}
	s.Begun, s.Tries = env.Now, 1 // its coordinator is at it
	c.Repeat(env, &s.Submit)
}

// settle tells a transaction's coordinator whether the application was right.
func (c *client) settle(env *protocol.Env[store.Message], m store.Settle) {
	s := c.SubmitBy(m.Ref)
	switch {
	case s == nil || s.Ask == nil:
	case m.Refuted:
		c.refute(env, s)
	case s.held:
		s.held = false
		env.Send(c.cfg.Layout.Coordinator(s.Site, s.Txn.ID), s.Request())
	}
}

func (c *client) refute(env *protocol.Env[store.Message], s *submit) {
	env.Send(c.cfg.Layout.Coordinator(s.Site, s.Txn.ID), store.AbandonRequest{ID: s.Txn.ID})
}

// ends reports whether a transaction may end. Of one whose outcome is not known, or that has only
// read and is not known to have read what was right, others may know that it was: if one that
// follows it is committed, it is, too. So those are given up first, and what becomes of them
// counts.
func (c *client) ends(env *protocol.Env[store.Message], s *submit, done store.Done) bool {
	o := &done.Outcome
	sure := o.Verdict == store.Committed || o.Verdict == store.Aborted && !s.Txn.ReadOnly()
	if !sure && !s.right && c.followed(env, s) {
		if s.ended = &done; s.left {
			env.After(partTrips*c.cfg.RoundTrip, partTimer{s.Txn.ID})
		}
		return false
	}
	switch {
	case sure:
	case s.right:
		*o = store.Outcome{Verdict: store.Committed}
	case s.doubt:
		o.Verdict = store.Unknown
	}
	c.end(env, s, done)
	return false
}

// followed reports whether the outcome of some that follow a transaction is not known, and gives
// them up.
func (c *client) followed(env *protocol.Env[store.Message], s *submit) (waits bool) {
	for x := range c.Submits() {
		if slices.Contains(x.after, s.Txn.ID) {
			waits = true
			c.refute(env, x)
		}
	}
	return waits
}

// end ends a transaction, and those that wait for it.
func (c *client) end(env *protocol.Env[store.Message], s *submit, done store.Done) {
	env.Stop(partTimer{s.Txn.ID})
	at := done.Version.Time
	if at == 0 && !s.Txn.ReadOnly() { // only what follows it has said that it is committed
		at = math.MaxUint64
	}
	for _, o := range c.begun.All() {
		if o.local[s.Txn.ID] && done.Outcome.Verdict == store.Committed {
			o.above = max(o.above, at)
		}
	}
	after, v := s.after, done.Outcome.Verdict
	if v != store.Committed {
		c.deny(env.Now, s.Txn.ID)
	}
	s.Ends = nil
	c.EndSubmit(env, s, done)
	for _, id := range after {
		if x := c.Submit(id); x != nil {
			x.right, x.doubt = x.right || v == store.Committed, x.doubt || v == store.Unknown
			if x.ended != nil {
				c.ends(env, x, *x.ended)
			}
		}
	}
}

// deny notes that the application is told that a transaction is not committed, for as long as a
// coordinator may remember otherwise. What it has asked for before that may follow the transaction,
// and not have been sent yet.
func (c *client) deny(now time.Duration, id store.TxnID) {
	for len(c.denied) > 0 && now-c.denied[0].at > pastTrips*c.cfg.RoundTrip {
		c.denied = c.denied[1:]
	}
	c.denied = append(c.denied, pastTxn{id, now})
}

func (c *client) isDenied(id store.TxnID) bool {
	return slices.ContainsFunc(c.denied, func(x pastTxn) bool { return x.id == id })
}

// part ends a transaction although some that follow it are not known.
func (c *client) part(env *protocol.Env[store.Message], id store.TxnID) {
	if s := c.Submit(id); s != nil && s.ended != nil {
		s.ended.Outcome.Verdict = store.Unknown
		c.end(env, s, *s.ended)
	}
}
