package service

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/host"
)

// TestClocksAreSet: replicas of Domino see that the machine's time is set while they run. What they
// promised while it was ahead is shown then, and calls go on; a jump ahead is not followed.
func TestClocksAreSet(t *testing.T) {
	const ahead = 8 * time.Second
	inWorld(t, "domino", func(w *world) {
		var off atomic.Int64
		w.clock = func() time.Duration { return host.TimeOfDay() + time.Duration(off.Load()) }
		off.Store(int64(ahead))
		replicas := []*ran{w.start(1), w.start(2), w.start(3)}
		call := func(ctx context.Context, c *Client) {
			began := time.Now()
			if _, err := c.Put(ctx, "k", []byte("v")); err != nil {
				w.Error(err)
			}
			if _, _, err := c.Get(ctx, "k"); err != nil {
				w.Error(err)
			}
			if took := time.Since(began); took > 2*time.Second {
				w.Errorf("a write and a read took %v", took)
			}
		}
		promised := func(ctx context.Context, c *Client, least, most time.Duration) {
			for _, s := range w.equal(ctx, c) {
				got := time.Duration(*s.ClaimsAheadSeconds * float64(time.Second))
				if got < least || got > most {
					w.Errorf("replica %d: promises are %v ahead, want %v to %v", s.Replica, got, least, most)
				}
			}
		}
		w.client(func(ctx context.Context, c *Client) {
			call(ctx, c)
			time.Sleep(time.Second)
			promised(ctx, c, 0, time.Second)
			off.Store(0) // set right
			time.Sleep(time.Second)
			promised(ctx, c, ahead*9/10, ahead)
			call(ctx, c)
			time.Sleep(4 * ahead) // the time of the group goes on more slowly than the clocks
			promised(ctx, c, 0, time.Second)
			call(ctx, c)
			off.Store(int64(ahead)) // all jump
			time.Sleep(time.Second)
			call(ctx, c)
			for _, s := range w.equal(ctx, c) {
				if held := time.Duration(s.ClockHeldSeconds * float64(time.Second)); held < ahead/2 || held > ahead {
					w.Errorf("replica %d holds its clock by %v, want about %v", s.Replica, held, ahead)
				}
			}
			off.Store(0)
			time.Sleep(time.Second)
			promised(ctx, c, 0, 3*time.Second)
			call(ctx, c)
		})
		synctest.Wait()
		for i, r := range replicas {
			if err := r.end(); err != nil {
				w.Error(err)
			}
			for _, want := range []string{"its clock is behind the time of the group", "its clock is right again",
				"its clock has jumped ahead"} {
				if !strings.Contains(r.log.String(), want) {
					w.Errorf("replica %d did not say %q:\n%s", i+1, want, r.log)
				}
			}
		}
	})
}
