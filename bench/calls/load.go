package calls

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/wan/shape"
	"golang.org/x/sync/errgroup"
)

// A load is what the callers of a system do during one round.
type load struct {
	callers int
	// calls is the number of dependent calls of a request.
	calls int
	ask   ask
	// guessing says whether the caller predicts, and percent how many of its predictions are right.
	guessing bool
	percent  int
	// perCaller is the number of requests that each caller has for a round.
	perCaller int
	// period, in an open loop, is the time from one request of a caller to its next,
	// whether or not that is answered. Zero is a closed loop: each request begins when
	// the one before has ended.
	period time.Duration
	// apart, in a closed loop, is how much later each caller begins than the one before.
	apart time.Duration
	// span, in a closed loop, repeats the requests until it has passed. Zero makes each once.
	span time.Duration
}

// requests lays out a round. Equal arguments give equal requests.
func (l load) requests(seed uint64, purpose ...uint64) []request {
	rng := bench.Random(seed, purpose...)
	if !l.guessing {
		return unguessed(l.callers*l.perCaller, l.calls, rng)
	}
	return schedule(l.callers*l.perCaller, l.calls, l.percent, rng)
}

// elapsed returns the time that a round which took so long stands for. An open loop's
// is the time for which it offers requests, unless they are still being answered after
// that; that callers begin one after the other does not count.
func (l load) elapsed(took time.Duration) time.Duration {
	return max(took-l.offset(l.callers-1), time.Duration(l.perCaller)*l.period)
}

// offset is when the i-th caller of an open loop begins: callers begin at distinct
// moments, spread evenly over the period.
func (l load) offset(i int) time.Duration {
	return l.period * time.Duration(i) / time.Duration(l.callers)
}

// play makes the requests through the system's callers, each caller its share, and
// returns the latencies of each caller's requests. A request's latency counts from
// the moment at which its caller begins it.
func play(ctx context.Context, sys *system, l load, requests []request) ([][]time.Duration, error) {
	latencies := make([][]time.Duration, l.callers)
	g, ctx := errgroup.WithContext(ctx)
	start := time.Now()
	for i := range l.callers {
		p := player{sys: sys, load: l, caller: sys.callers[i], requests: requests[i*l.perCaller : (i+1)*l.perCaller]}
		g.Go(func() (err error) {
			if l.period > 0 {
				latencies[i], err = p.openLoop(ctx, start.Add(l.offset(i)))
			} else {
				if err = shape.Pause(ctx, l.apart*time.Duration(i)); err == nil {
					latencies[i], err = p.closedLoop(ctx, start)
				}
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return latencies, nil
}

// A player plays one caller's share of a load.
type player struct {
	sys      *system
	load     load
	caller   caller
	requests []request
}

func (p player) closedLoop(ctx context.Context, start time.Time) ([]time.Duration, error) {
	latencies := make([]time.Duration, 0, max(len(p.requests), int(p.load.span/(50*time.Microsecond))))
	for {
		for _, r := range p.requests {
			d, err := p.request(ctx, r)
			if err != nil {
				return nil, err
			}
			latencies = append(latencies, d)
			if p.load.span > 0 && time.Since(start) >= p.load.span {
				return latencies, nil
			}
		}
		if p.load.span == 0 {
			return latencies, nil
		}
	}
}

func (p player) openLoop(ctx context.Context, start time.Time) ([]time.Duration, error) {
	latencies := make([]time.Duration, len(p.requests))
	g, groupCtx := errgroup.WithContext(ctx)
	for i, r := range p.requests {
		due := start.Add(time.Duration(i) * p.load.period)
		if err := shape.Pause(groupCtx, time.Until(due)); err != nil {
			break // g.Wait tells why, unless ctx itself has ended
		}
		g.Go(func() (err error) {
			latencies[i], err = p.request(groupCtx, r)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return latencies, ctx.Err()
}

// request makes one request, checks its result, and returns how long it took.
func (p player) request(ctx context.Context, r request) (time.Duration, error) {
	begun := time.Now()
	got, err := p.sys.stack.chain(ctx, p.caller, p.load.ask, r)
	took := time.Since(begun)
	if err != nil {
		return 0, fmt.Errorf("bench: %s: request %#x: %w", p.sys.stack.name, r.seed, err)
	}
	if want := lastAnswer(r.seed, len(r.guesses)); !bytes.Equal(got, want) {
		return 0, fmt.Errorf("bench: %s: request %#x: a wrong result: got %x, want %x", p.sys.stack.name, r.seed, got, want)
	}
	return took, nil
}
