package sim

import (
	"context"
	"sync"
	"time"
)

// A Beside is a simulation that goes on beside goroutines, with their time for its own: in a bubble
// of testing/synctest it is exact, as nothing there takes time but what waits for it. A program
// that runs in goroutines makes calls to simulated nodes, and waits for them as long as it would
// for real ones. That costs what the simulation's steps cost, and one timer for each instant at
// which there is one.
//
// Steps are made by the goroutine of [Beside.Run], or one that calls [Beside.Do], one at a time. So
// Config.App is called by any of them: it hands on what it is told, waits for nobody, and uses the
// Sim but not the Beside. Nodes that set timers go on for ever, so a program that waits for what
// never comes does, too, if no context ends it.
type Beside[M any] struct {
	mu    sync.Mutex
	sim   *Sim[M]
	begun time.Time     // when the simulation's time was 0
	woken chan struct{} // has one if something may be due earlier than Run knows
}

// NewBeside returns a simulation that goes on from now. The Sim is only used by it from then on.
func NewBeside[M any](s *Sim[M]) *Beside[M] {
	return &Beside[M]{sim: s, begun: time.Now().Add(-s.Now()), woken: make(chan struct{}, 1)}
}

// Run has the simulation go on until the context ends, when it returns nil, or the simulation
// fails.
func (b *Beside[M]) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		next, err := b.advance(nil)
		if err != nil {
			return err
		}
		due := timer.C
		if next < 0 {
			due = nil
		} else {
			timer.Reset(time.Until(b.begun.Add(next)))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-b.woken:
		case <-due:
		}
	}
}

// Do calls f at this moment, in which it may use the Sim, but not let time pass. It returns the
// simulation's failure, if it has one: then f is not called.
func (b *Beside[M]) Do(f func(s *Sim[M])) error {
	_, err := b.advance(f)
	select {
	case b.woken <- struct{}{}:
	default: // Run has yet to look
	}
	return err
}

// advance makes the steps that are due, calls f, and returns when the next step is due, -1 if there
// is none.
func (b *Beside[M]) advance(f func(s *Sim[M])) (next time.Duration, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.sim.Run(time.Since(b.begun) - b.sim.Now()); err != nil {
		return 0, err
	}
	if f != nil {
		f(b.sim)
	}
	if len(b.sim.queue.heap) == 0 {
		return -1, nil
	}
	return b.sim.queue.heap[0].at, nil
}
