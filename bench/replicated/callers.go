package replicated

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// callers call in a closed loop: as many calls at once as a load says, each followed by another
// one.
type callers struct {
	load Load
	ctx  context.Context
	put  []func(ctx context.Context, key, value []byte) error // of each client

	on    atomic.Bool  // calls count
	calls atomic.Int64 // while on
	all   atomic.Int64

	mu   sync.Mutex
	took []time.Duration
	err  error
}

// warm makes one call by each client, again until it succeeds.
func (c *callers) warm(limit time.Duration) error {
	ctx, cancel := context.WithTimeout(c.ctx, limit)
	defer cancel()
	for i, put := range c.put {
		for {
			try, end := context.WithTimeout(ctx, limit/4)
			err := put(try, []byte("warm"), nil)
			end()
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				return fmt.Errorf("client %d: %w", i, errors.Join(err, context.Cause(c.ctx)))
			}
			sleep(ctx, 100*time.Millisecond)
		}
	}
	return nil
}

// measure has all clients call, and counts what is answered between the warm-up and the end.
func (c *callers) measure(commits func() uint64) (Rate, error) {
	var wg sync.WaitGroup
	calling, end := context.WithCancel(c.ctx)
	defer end()
	for i, put := range c.put {
		for w := range c.load.Window {
			wg.Go(func() { c.loop(calling, put, uint64(i*c.load.Window+w)) })
		}
	}
	sleep(c.ctx, c.load.For/3)
	began, before := time.Now(), commits()
	c.on.Store(true)
	sleep(c.ctx, c.load.For)
	c.on.Store(false)
	r := Rate{Lasting: time.Since(began), Commits: commits() - before}
	end()
	wg.Wait()
	r.Calls, r.All, r.Took = int(c.calls.Load()), int(c.all.Load()), c.took
	return r, errors.Join(c.err, context.Cause(c.ctx))
}

// sampling is how many calls there are to one whose time is kept.
const sampling = 16

// loop makes one call after the other, each to write a key of its own.
func (c *callers) loop(ctx context.Context, put func(context.Context, []byte, []byte) error, caller uint64) {
	key := number(caller)
	for n := uint64(0); ctx.Err() == nil; n++ {
		began := time.Now()
		err := put(ctx, key, number(n))
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			c.fail(err)
			return
		}
		c.all.Add(1)
		if c.on.Load() && c.calls.Add(1)%sampling == 0 {
			c.note(time.Since(began))
		}
	}
}

func (c *callers) note(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took = append(c.took, d)
}

func (c *callers) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
