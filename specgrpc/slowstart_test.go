package specgrpc

import (
	"testing"
	"testing/synctest"
	"time"
)

// begin has speculative calls come that open their streams once they may.
func begin(r *room, calls int, keep bool) {
	for range calls {
		p, _ := r.enter(keep)
		go func() {
			if p.done != nil {
				<-p.done
			}
			if p.admitted {
				r.opened(r.opens())
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
				if r.entered != want {
					t.Errorf("%d speculative streams, want %d; they stay open: %t", r.entered, want, keep)
				}
				time.Sleep(growEvery)
			}
		})
	}
}

// TestConfirmedCallersGoFirst: while a call of a confirmed caller waits for its stream no
// speculative one gets any, and some give way if it waits in vain.
func TestConfirmedCallersGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := testRoom(1000)
		yielded := 0
		r.yield = func(n int) { yielded += n }
		begin(r, 2, false)
		since := r.want(t.Context())
		for range 50 {
			r.enter(false) // and gets no stream either
		}
		time.Sleep(growEvery / 2)
		synctest.Wait()
		if n := len(r.queue); n != 50 {
			t.Errorf("%d calls wait, want 50", n)
		}
		time.Sleep(5 * growEvery)
		synctest.Wait()
		if yielded == 0 || r.streams.most == 0 || r.streams.sure {
			t.Errorf("%d streams give way, and the peer admits %+v", yielded, r.streams)
		}
		r.got(since, true)
	})
}
