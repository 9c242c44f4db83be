package bftcmd

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/client"
	"github.com/foresay/foresay/bft/service"
	"github.com/foresay/foresay/internal/cli/command"
)

// A timed is what became of a call, and when.
type timed struct {
	result           bft.Result
	guess            *bft.Result // the last first reply, nil for none
	first, confirmed time.Duration
}

// right reports whether there was a first reply, and it was the result.
func (t *timed) right() bool { return t.guess != nil && t.guess.Digest() == t.result.Digest() }

// measured makes a call and takes its times.
func measured(ctx context.Context, c *service.Client, call bft.Call) (timed, error) {
	var mu sync.Mutex
	var t timed
	began := time.Now()
	result, err := c.Do(ctx, call, func(r bft.Result) {
		mu.Lock()
		defer mu.Unlock()
		t.guess, t.first = &r, time.Since(began)
	})
	mu.Lock()
	defer mu.Unlock()
	t.result, t.confirmed = result, time.Since(began)
	return t, err
}

// A worker is a client of dev that makes calls all the time.
type worker struct {
	name  string
	place service.Place
	every time.Duration
	call  func() bft.Call

	mu               sync.Mutex
	calls, failed    int
	guesses, right   int
	first, confirmed []time.Duration // of the last calls
}

// recentCalls is how many calls the times are of.
const recentCalls = 50

func (w *worker) run(ctx context.Context, cluster *service.Cluster, cfg *service.ClientConfig) error {
	return service.WithClient(ctx, cfg, cluster.At(w.place.Site), func(ctx context.Context, c *service.Client) error {
		tick := time.NewTicker(w.every)
		defer tick.Stop()
		for {
			w.work(ctx, c)
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
		}
	})
}

func (w *worker) work(ctx context.Context, c *service.Client) {
	within, cancel := context.WithTimeout(ctx, command.DevPatience)
	defer cancel()
	t, err := measured(within, c, w.call())
	if ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.failed++
		return
	}
	w.calls++
	w.confirmed = recent(w.confirmed, t.confirmed)
	if t.guess != nil {
		w.guesses++
		w.first = recent(w.first, t.first)
	}
	if t.right() {
		w.right++
	}
}

func recent(of []time.Duration, next time.Duration) []time.Duration {
	of = append(of, next)
	return of[max(0, len(of)-recentCalls):]
}

// figures returns cells: calls, failures, first replies, how many were right, and the medians of
// the times to the first reply and the confirmation.
func (w *worker) figures() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprintf("%d\t%d\t%d\t%d\t%s\t%s", w.calls, w.failed, w.guesses, w.right, median(w.first),
		median(w.confirmed))
}

const figureColumns = "calls\tfailed\tfirst replies\tright\tfirst p50 ms\tconfirmed p50 ms"

func median(times []time.Duration) string {
	if len(times) == 0 {
		return "-"
	}
	sorted := slices.Sorted(slices.Values(times))
	return fmt.Sprintf("%.1f", float64(sorted[len(sorted)/2].Microseconds())/1000)
}

// explained says of a call's times what they were, for people.
func (t *timed) explained() string {
	round := func(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }
	switch {
	case t.guess == nil:
		return fmt.Sprintf("confirmed after %v", round(t.confirmed))
	case t.right():
		return fmt.Sprintf("first reply after %v, confirmed after %v", round(t.first), round(t.confirmed))
	}
	return fmt.Sprintf("a wrong first reply after %v, confirmed after %v", round(t.first), round(t.confirmed))
}

// call makes a call of the prompt's client, and shows its result and when the client had it.
func (d *dev) call(ctx context.Context, call bft.Call, show func(bft.Result) (string, error)) error {
	ctx, cancel := context.WithTimeout(ctx, command.DevPatience)
	defer cancel()
	t, err := measured(ctx, d.client, call)
	if err != nil {
		if errors.As(err, new(*client.UnknownError)) {
			err = d.client.Explain(err)
		}
		return err
	}
	text, err := show(t.result)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(d.p.Out, "%s (%s)\n", text, t.explained())
	return err
}

// randomly returns calls of a service for a worker.
func (s *served) randomly(seed uint64) func() bft.Call {
	random := rand.New(rand.NewPCG(seed, 1))
	loop := &command.ClosedLoop{ValueBytes: 16, Keys: 10}
	return func() bft.Call { return s.write(loop, random) }
}
