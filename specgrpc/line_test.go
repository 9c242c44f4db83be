package specgrpc

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// fullRoom is one whose peer admits so many streams, all of which calls of confirmed callers have.
func fullRoom(t *testing.T, streams int) *room {
	r := testRoom(10)
	for range streams {
		r.got(r.want(t.Context()), true)
	}
	r.streams.learn(streams, time.Now())
	return r
}

// queue has n calls want a stream, a millisecond after each other. The returned function tells
// which of them may open one, in the order in which they were called up.
func queue(ctx context.Context, r *room, n int) (called func() []int) {
	var order []int
	turns := make(chan int, n)
	for i := range n {
		go func() {
			r.want(ctx)
			turns <- i
		}()
		time.Sleep(time.Millisecond)
	}
	return func() []int {
		synctest.Wait()
		for len(turns) > 0 {
			order = append(order, <-turns)
		}
		return order
	}
}

// TestLine: at a full connection two calls wait at grpc's, and the others in line, whoever came
// first in front.
func TestLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := fullRoom(t, 4)
		called := queue(t.Context(), r, 5)
		for i, want := range [][]int{{0, 1}, {0, 1, 2}, {0, 1, 2, 3}, {0, 1, 2, 3, 4}} {
			if got := called(); !slices.Equal(got, want) {
				t.Errorf("after %d streams: %v may open one, want %v", i, got, want)
			}
			r.gone(false, false)
			r.got(r.lookout.now, true)
		}
	})
}

// TestLineOfOldTasks: a call of an older task goes in front of those that came before it.
func TestLineOfOldTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := fullRoom(t, 4)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		called := queue(ctx, r, 4)
		old := &turn{began: time.Now().Add(-time.Hour), come: make(chan struct{})}
		r.mu.Lock()
		r.wanting++
		r.join(old)
		r.mu.Unlock()
		called()
		r.gone(false, false)
		r.got(r.lookout.now, true)
		select {
		case <-old.come:
		case <-time.After(time.Second):
			t.Errorf("%v may open a stream before an older task's call", called())
		}
		if got := called(); len(got) != 2 {
			t.Errorf("%v may open a stream, and an older task's call", got)
		}
		cancel()
		for called(); r.wanting > 0; {
			r.got(r.lookout.now, false)
		}
	})
}

// TestLineKeepsNobodyOut: an old task that goes on calling goes before younger ones, but
// not for ever.
func TestLineKeepsNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := fullRoom(t, 4)
		stand := func(began time.Time) *turn {
			out := &turn{began: inLine(began, fewCalls+1), come: make(chan struct{})}
			r.mu.Lock()
			r.wanting++
			r.join(out)
			r.mu.Unlock()
			return out
		}
		old := time.Now().Add(-time.Hour)
		for range 8 {
			stand(old)
		}
		young := stand(time.Now())
		began := time.Now()
		for called := false; !called; {
			time.Sleep(10 * time.Millisecond) // a stream of the old task's ends, and it makes another call
			synctest.Wait()
			r.gone(false, false)
			stand(old)
			r.got(r.lookout.now, true)
			select {
			case <-young.come:
				called = true
			default:
			}
			if waited := time.Since(began); waited > 2*overtaking {
				t.Fatalf("a younger task's call waits for %v", waited)
			}
		}
		r.mu.Lock()
		r.streams = bound{}
		r.serve()
		r.mu.Unlock()
		for r.wanting > 0 {
			r.got(r.lookout.now, false)
		}
	})
}

// TestNobodyQueuesForNothing: the line ends where the connection does, or the limit, and so does
// the place in it of a call whose context ends.
func TestNobodyQueuesForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := fullRoom(t, 4)
		ctx, cancel := context.WithCancel(t.Context())
		called := queue(ctx, r, 5)
		called()
		cancel()
		if got := called(); len(got) != 5 || len(r.line) != 0 {
			t.Errorf("%v of 5 may go to grpc, which tells that the context has ended", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := fullRoom(t, 4)
		var gone atomic.Bool
		r.ready = func() bool { return !gone.Load() }
		called := queue(t.Context(), r, 50)
		if got := called(); len(got) != 2 {
			t.Errorf("%d may open a stream", len(got))
		}
		gone.Store(true)
		time.Sleep(2 * recheckEvery)
		if got := called(); len(got) != 50 || r.streams.most != 0 {
			t.Errorf("%d of 50 may open a stream, at a limit of %d, although there is no connection", len(got), r.streams.most)
		}
		for range 50 {
			r.got(r.lookout.now, false)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := fullRoom(t, 4) // falsely: whoever asks grpc gets a stream
		begun := time.Now()
		called := queue(t.Context(), r, 50)
		for n := 0; n < 50; n++ {
			if len(called()) <= n {
				t.Fatalf("%d calls have streams, and no other may open one", n)
			}
			r.got(r.lookout.now, true)
		}
		if took := time.Since(begun); took != 50*time.Millisecond || r.open != 54 {
			t.Errorf("%d streams are open after %v", r.open, took)
		}
	})
}
