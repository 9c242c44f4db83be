package smrcmd

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/smr/service"
)

// A writer is a client that writes all the time.
type writer struct {
	name  string
	place service.Place
	every time.Duration

	mu      sync.Mutex
	writes  int
	failed  int
	latency []time.Duration // of the last writes
}

// recentWrites is how many writes the figures are of.
const recentWrites = 50

func (w *writer) run(ctx context.Context, cluster *service.Cluster) error {
	return service.WithClient(ctx, cluster.Client(), cluster.At(w.place.Site),
		func(ctx context.Context, c *service.Client) error {
			tick := time.NewTicker(w.every)
			defer tick.Stop()
			for n := 1; ; n++ {
				w.write(ctx, c, n)
				select {
				case <-ctx.Done():
					return nil
				case <-tick.C:
				}
			}
		})
}

func (w *writer) write(ctx context.Context, c *service.Client, n int) {
	call, cancel := context.WithTimeout(ctx, command.DevPatience)
	defer cancel()
	start := time.Now()
	_, err := c.Put(call, w.name, []byte(strconv.Itoa(n)))
	if ctx.Err() != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.failed++
		return
	}
	w.writes++
	w.latency = append(w.latency, time.Since(start))
	w.latency = w.latency[max(0, len(w.latency)-recentWrites):]
}

// figures returns cells: writes, failures, median and longest latency of the last writes.
func (w *writer) figures() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.latency) == 0 {
		return fmt.Sprintf("%d\t%d\t-\t-", w.writes, w.failed)
	}
	sorted := slices.Sorted(slices.Values(w.latency))
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return fmt.Sprintf("%d\t%d\t%.1f\t%.1f", w.writes, w.failed, ms(sorted[len(sorted)/2]), ms(sorted[len(sorted)-1]))
}
