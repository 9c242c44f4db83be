package geostore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
	"github.com/foresay/foresay/workload"
)

// A Load is what closed-loop clients do: each begins a transaction when its last one has committed.
type Load struct {
	Workload workload.Workload
	// Seed fixes each client's transactions: they are the same whatever else differs.
	Seed uint64
	// Warm is how long the clients run before anything is measured.
	Warm time.Duration
	// Txns and For end what is measured: so many transactions have begun, or so much time has
	// passed. At least one is needed. Clients go on until the last one that is measured has ended,
	// so that none of them sees fewer rivals than another.
	Txns int
	For  time.Duration
	// Every, if not 0, is how long after its last transaction began a client begins the next one, or
	// later, when that one has committed: it is never in a hurry to catch up.
	Every time.Duration
	// Move, if not nil, has a client at a site make another transaction than the workload's.
	Move func(r *rand.Rand, site wan.Site, t workload.Txn) workload.Txn
	// Failures says that transactions may fail. They are counted, and their clients go on.
	Failures bool
}

// An Attempt is one try of a transaction.
type Attempt struct {
	Took      time.Duration
	Committed bool
	// Reads counts those whose first answer was compared with the quorum's, Right those where it
	// was the same version. Where the commit compares, in place of a quorum, only those of attempts
	// that committed are known, and all of these are right: a wrong one is an attempt that did not.
	Reads, Right int
	Fast         bool // it was committed by the protocol's fast path
}

// A Txn is a transaction that was measured. All of them committed, at the last attempt, unless
// clients do not try again.
type Txn struct {
	Site     wan.Site
	Class    string        // the name of its kind, which the client was told
	Ops      []workload.Op // see workload.Txn
	Took     time.Duration // with all attempts and what was waited between them
	Attempts []Attempt
}

// committed reports whether the transaction did.
func (t Txn) committed() bool {
	return len(t.Attempts) == 0 || t.Attempts[len(t.Attempts)-1].Committed
}

// Played is what came of a load.
type Played struct {
	// Txns are those that were measured, in the order in which they ended.
	Txns []Txn
	// Lasting is the time in which they began, and Commits, by site, are the transactions that
	// committed in that time.
	Lasting time.Duration
	Commits map[wan.Site]int
	// All is how many transactions ended in all, measured or not, and Failed how many failed.
	All, Failed int
}

// A player makes one transaction after the other for a client.
type player struct {
	site wan.Site
	// try makes the transaction, as often as it takes, and tells of each attempt.
	try func(context.Context, workload.Txn) ([]Attempt, error)
}

// startSpread is the time over which clients begin, so that they do not move in step.
const startSpread = 250 * time.Millisecond

// play has the players play a load.
func play(ctx context.Context, players []player, l Load) (Played, error) {
	if l.Txns <= 0 && l.For <= 0 {
		return Played{}, fmt.Errorf("geostore: a load without Txns and For has no end")
	}
	s := &score{load: l, began: time.Now(), played: Played{Commits: map[wan.Site]int{}}}
	g, ctx := errgroup.WithContext(ctx)
	for i, p := range players {
		g.Go(func() error {
			r := rand.New(rand.NewPCG(l.Seed, uint64(i)))
			if err := shape.Pause(ctx, time.Duration(r.Int64N(int64(max(startSpread, l.Every))))); err != nil {
				return err
			}
			var began time.Time // of the last transaction
			for {
				if l.Every > 0 {
					if err := shape.Pause(ctx, time.Until(began.Add(l.Every))); err != nil {
						return err
					}
				}
				measured, on := s.begin()
				if !on {
					return nil
				}
				next := l.Workload.Next(r)
				if l.Move != nil {
					next = l.Move(r, p.site, next)
				}
				t := Txn{Site: p.site, Class: next.Name, Ops: next.Ops}
				began = time.Now()
				var err error
				if t.Attempts, err = p.try(ctx, next); err != nil && l.Failures && ctx.Err() == nil {
					s.fail(measured)
					continue
				}
				if err != nil {
					return fmt.Errorf("geostore: client %d at %s: %w", i, p.site, err)
				}
				t.Took = time.Since(began)
				s.end(t, measured)
			}
		})
	}
	err := g.Wait()
	return s.played, err
}

// score keeps what is measured.
type score struct {
	load  Load
	began time.Time

	mu       sync.Mutex
	open     int // measured, not yet ended
	begun    int // measured
	from, to time.Time
	played   Played
}

// begin reports whether the transaction that begins now is measured, and whether it shall begin at
// all.
func (s *score) begin() (measured, on bool) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(now)
	switch {
	case s.from.IsZero():
		return false, true
	case !s.to.IsZero():
		return false, s.open > 0
	}
	s.begun++
	s.open++
	if s.begun == s.load.Txns {
		s.close(now)
	}
	return true, true
}

// advance opens and closes the time in which transactions are measured. s.mu is held.
func (s *score) advance(now time.Time) {
	start := s.began.Add(s.load.Warm)
	if s.from.IsZero() && !now.Before(start) {
		s.from = start
	}
	if end := start.Add(s.load.For); s.to.IsZero() && s.load.For > 0 && !now.Before(end) {
		s.close(end)
	}
}

func (s *score) close(at time.Time) {
	s.to = at
	s.played.Lasting = at.Sub(s.from)
}

func (s *score) fail(measured bool) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(now)
	s.played.Failed++
	if measured {
		s.open--
	}
}

func (s *score) end(t Txn, measured bool) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(now)
	s.played.All++
	if !s.from.IsZero() && s.to.IsZero() && t.committed() {
		s.played.Commits[t.Site]++
	}
	if measured {
		s.open--
		s.played.Txns = append(s.played.Txns, t)
	}
}
