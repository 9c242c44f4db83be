package client

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/foresay/foresay/driver"

	"github.com/foresay/foresay/store"
)

// A Speculator is an Attempt of a store whose transactions are committed locally first, and for
// good once all sites have certified them [STR §4].
type Speculator interface {
	// Speculate is Commit for somebody who goes on when the transaction is committed locally.
	Speculate(ctx context.Context, s Submission, how Speculation) Decision
}

// A Speculation is what somebody who goes on at a local commit says and is told.
type Speculation struct {
	// Held says that they stand on guesses of their own: the transaction is not committed for good
	// before Settled says true.
	Held bool
	// Waits says that they stand on After only, and may still give up: it is the same, but for a store
	// that loses whom it has told.
	Waits bool
	// After are transactions that are committed locally, as far as they know: unless they are for
	// good, this one is not.
	After []store.TxnID
	// Local is called at most once, before Speculate returns, with the name of the transaction,
	// when it is committed locally. It must not wait.
	Local func(store.TxnID)
	// Settled says once at most whether those guesses were right. If not, or if nobody wants the
	// transaction any more, it is aborted, unless it is committed for good already.
	Settled <-chan bool
}

// speculating is a commit that the engine predicts when it is committed locally. It may be sent for
// code that stands on guesses: local commits among them are the store's to know, which has it
// depend on them, and for others it is held.
type speculating struct {
	committing
	sites Speculator
	id    atomic.Pointer[store.TxnID] // once it is committed locally
}

// Start implements driver.Transport.
func (s *speculating) Start(ctx context.Context, a *driver.Attempt) {
	client := s.attempt.client
	how := Speculation{Local: func(id store.TxnID) {
		s.id.Store(&id)
		a.Predict(Decision{Txn: store.Txn{ID: id, Priority: s.attempt.priority, Reads: s.reads, Writes: s.writes},
			Outcome: store.Outcome{Verdict: store.Committed}})
	}}
	if a.Speculative() {
		how.Held, how.After = s.standsOn(a)
		how.Waits = !how.Held
		settled := make(chan bool, 1)
		how.Settled = settled
		a.OnResolve(func(confirmed bool) { settled <- confirmed })
	}
	client.stats.attempts.Add(1)
	start := time.Now()
	go func() {
		d := s.sites.Speculate(ctx, Submission{Reads: s.reads, Writes: s.writes}, how)
		took := time.Since(start)
		client.attempted(Attempted{Mode: client.cfg.Mode, Outcome: d.Outcome, Took: took, SinceFirst: took})
		a.Finish(d, nil)
	}()
}

// Ended implements driver.Ender.
func (s *speculating) Ended(err error) error {
	u := &UnknownError{Err: plainEnd{err}}
	if id := s.id.Load(); id != nil {
		u.Txn = store.Txn{ID: *id, Priority: s.attempt.priority, Reads: s.reads, Writes: s.writes}
	}
	return u
}

// standsOn returns the client's transactions that an attempt's caller takes for committed, and
// whether it stands on anything else.
func (s *speculating) standsOn(a *driver.Attempt) (held bool, after []store.TxnID) {
	on, all := a.Assumes()
	for _, on := range on {
		o, ok := on.Operation.Transport.(*speculating)
		if !ok || o.attempt.client != s.attempt.client || o.id.Load() == nil {
			all = false
			continue
		}
		after = append(after, *o.id.Load())
	}
	return !all, after
}

// Equal implements driver.Transport.
func (s *speculating) Equal(prediction, actual any) bool {
	p, ok := prediction.(Decision)
	d, known := actual.(Decision)
	return ok && known && p.Txn.ID == d.Txn.ID && p.Outcome.Verdict == d.Outcome.Verdict
}

// Same implements driver.Transport.
func (s *speculating) Same(a, b any) bool { return s.Equal(a, b) }

// Accept implements driver.Transport.
func (s *speculating) Accept(prediction any) (any, bool) {
	d, ok := prediction.(Decision)
	return d, ok
}
