package specgrpc

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/control"
)

// begin has speculative calls come that open their streams once they may.
func begin(r *room, calls int, keep bool) {
	for range calls {
		p, _ := r.enter(keep)
		go func() {
			if p.done != nil {
				<-p.done
			}
			r.mu.Lock()
			admitted := p.admitted
			r.mu.Unlock()
			if admitted {
				r.opened(r.opens(), true)
			}
		}()
	}
	time.Sleep(growEvery / 2)
}

// TestSlowStart: a connection of whose peer nothing is known has few speculative streams at first
// and twice as many each millisecond, and a quarter of those if they stay open until the word.
func TestSlowStart(t *testing.T) {
	for keep, counts := range map[bool][]int{false: {4, 8, 16, 32, 64, 100}, true: {1, 2, 4, 8, 16, 32, 64, 100}} {
		synctest.Test(t, func(t *testing.T) {
			r := testRoom(1000)
			begin(r, 100, keep)
			for _, want := range counts {
				synctest.Wait()
				r.mu.Lock()
				entered := r.entered
				r.mu.Unlock()
				if entered != want {
					t.Errorf("%d speculative streams, want %d; they stay open: %t", entered, want, keep)
				}
				time.Sleep(growEvery)
			}
		})
	}
}

// TestSlowStartAfterReconnect: calls that wait for a stream when the connection is lost go on
// to get more each millisecond once there is another one, though the streams of the first one
// last and no call comes.
func TestSlowStartAfterReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := testRoom(1000)
		var lost atomic.Bool
		r.ready = func() bool { return !lost.Load() }
		begin(r, 100, false)
		time.Sleep(2 * growEvery)
		lost.Store(true)
		time.Sleep(4 * growEvery)
		lost.Store(false)
		time.Sleep(100 * growEvery)
		synctest.Wait()
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.entered != 100 {
			t.Errorf("%d of 100 calls have streams", r.entered)
		}
	})
}

// TestConfirmedCallersGoFirst: while a call of a confirmed caller waits for its stream no
// speculative one gets any, and some give way if it waits in vain.
func TestConfirmedCallersGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := testRoom(1000)
		var yielded atomic.Int64
		r.yield = func(n int) { yielded.Add(int64(n)) }
		begin(r, 2, false)
		since := r.want(t.Context())
		for range 50 {
			r.enter(false) // and gets no stream either
		}
		time.Sleep(growEvery / 2)
		synctest.Wait()
		r.mu.Lock()
		waiting := len(r.queue)
		r.mu.Unlock()
		if waiting != 50 {
			t.Errorf("%d calls wait, want 50", waiting)
		}
		time.Sleep(5 * growEvery)
		synctest.Wait()
		r.mu.Lock()
		streams := r.streams
		r.mu.Unlock()
		if yielded.Load() == 0 || streams.most == 0 || streams.sure {
			t.Errorf("%d streams give way, and the peer admits %+v", yielded.Load(), streams)
		}
		r.got(since, true)
	})
}

// TestCallsThatHaveYetToAsk: while a call of a confirmed caller that was not to wait is on its way
// to its stream no speculative one gets any: it would take the last one before that, and may wait
// for that call's answer. A call of which nobody knows whether it has its stream is not waited for,
// and none is for longer than until the next look.
func TestCallsThatHaveYetToAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := testRoom(1000)
		if !r.asksLater() {
			t.Fatal("the call is to be watched though nobody speculates")
		}
		p, _ := r.enter(false)
		since := r.asksNow()
		if p.admitted {
			t.Fatal("a speculative call gets a stream before one that asks for its own")
		}
		r.got(since, true)
		<-p.done
		if r.gone(false, false); !p.admitted || r.unasked != 0 || r.open != 1 {
			t.Errorf("the speculative call has its stream: %t, and %d have yet to ask", p.admitted, r.unasked)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := testRoom(1000)
		if !r.ample() {
			t.Fatal("the call is to be watched though nobody speculates")
		}
		if p, _ := r.enter(false); !p.admitted {
			t.Error("a speculative call waits for one that does not tell when it has its stream")
		}
		r.done()
	})
	synctest.Test(t, func(t *testing.T) {
		r := testRoom(1000)
		r.asksLater()
		p, _ := r.enter(false)
		time.Sleep(5 * growEvery)
		if synctest.Wait(); !p.admitted {
			t.Error("a speculative call waits for one that does not ask")
		}
		r.got(r.asksNow(), false)
	})
}

// TestWhatCallsWaitFor: calls that come while nothing is known of the peer are told once they
// wait for a limit that is known.
func TestWhatCallsWaitFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := testRoom(2)
		since := r.want(t.Context()) // until it has its stream no speculative call gets one
		var places []*place
		for range 3 {
			p, why := r.enter(false)
			if p.done == nil || why.most != 0 {
				t.Fatalf("a call waits for %v at first", why)
			}
			places = append(places, p)
		}
		r.got(since, true)
		for i, p := range places {
			if i < 2 {
				<-p.done
			} else if p.why != (lack{control.LimitHalfOpen, 2}) {
				t.Errorf("the third call waits for %v", p.why)
			}
		}
		r.leave(places[2])
	})
}
