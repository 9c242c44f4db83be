package specgrpc

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/foresay/foresay/control"
)

func testRoom(most int) *room {
	return &room{most: most, ready: func() bool { return true }, full: func() {}, yield: func(int) {}}
}

// TestRoom: calls of confirmed callers never ask; speculative ones get what they leave, in turn.
func TestRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := testRoom(10)
		for range 6 {
			r.got(r.want(t.Context()), true)
		}
		if p, _ := r.enter(false); !p.admitted {
			t.Fatal("a call waits although no limit is known")
		}
		r.opened(r.opens(), true)
		waits := r.want(t.Context()) // seven streams are open
		time.Sleep(4 * lookEvery)
		synctest.Wait()
		first, _ := r.enter(false)
		second, _ := r.enter(false)
		third, why := r.enter(false)
		if first.admitted || second.admitted || third.admitted || r.streams.most != 7 || !r.tight() || why.most != 7 {
			t.Fatalf("%+v, %+v and %+v enter at a limit of %d: %v", first, second, third, r.streams.most, why)
		}
		r.got(waits, false)
		r.leave(first)
		<-first.done
		r.gone(false, false)
		if first.admitted || second.admitted {
			t.Error("a call that left was admitted, or one where confirmed callers want all")
		}
		time.Sleep(3 * demandSpan)
		synctest.Wait()
		r.gone(false, false)
		<-second.done
		<-third.done
		if !second.admitted || !third.admitted || r.open != 7 {
			t.Errorf("%d streams are open where others have not wanted as many of late", r.open)
		}
		fourth, _ := r.enter(false)
		if fourth.admitted {
			t.Error("a call was admitted beyond the limit")
		}
		time.Sleep(2 * probeEvery)
		synctest.Wait()
		r.gone(true, false)
		if <-fourth.done; !fourth.admitted || r.streams.most != 8 {
			t.Errorf("%+v at a limit of %d: one that was learnt is tried again", fourth, r.streams.most)
		}
		for range 3 {
			r.opened(r.opens(), true)
		}
		r.got(r.want(t.Context()), true)
		r.got(r.want(t.Context()), true)
		time.Sleep(4 * lookEvery)
		synctest.Wait()
		if r.open != 9 || r.streams.most != 9 {
			t.Errorf("the limit is %d although %d streams are open", r.streams.most, r.open)
		}
	})
}

// TestRoomForEffects: streams that stay open until their callers' word take a quarter at most.
func TestRoomForEffects(t *testing.T) {
	r := testRoom(100)
	r.streams.learn(16, time.Now())
	for i := range 5 {
		p, why := r.enter(true)
		if p.admitted != (i < 4) || (why == lack{control.LimitStreams, 16}) != (i == 4) {
			t.Errorf("stream %d: %+v, %q", i, p, why)
		}
	}
}

// TestRoomForLaterAttempts: where streams end for a call that may wait for one, speculative calls
// let it have one first: grpc hands it to anybody. That is so whatever is taken to be the limit.
func TestRoomForLaterAttempts(t *testing.T) {
	for _, known := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			r := testRoom(10)
			if known {
				r.streams.learn(8, time.Now())
			}
			r.relents()
			p, why := r.enter(false)
			r.mu.Lock()
			atOnce := p.admitted
			r.mu.Unlock()
			if atOnce || why.by != control.LimitStreams {
				t.Fatalf("a call gets a stream at once: %v", why)
			}
			if <-p.done; !p.admitted {
				t.Error("it never gets one")
			}
			r.opened(r.opens(), true)
		})
	}
}

// TestNoQueueForNothing: where no half-open call is allowed none waits for one.
func TestNoQueueForNothing(t *testing.T) {
	r := testRoom(0)
	if p, why := r.enter(false); p != nil || why == (lack{}) {
		t.Errorf("%+v, %v", p, why)
	}
}

// TestBound: a bound of which there is no further sign is forgotten in some seconds, whether or
// not anybody asks, and one of which there is stays.
func TestBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, every := range map[string]time.Duration{"often": 50 * time.Millisecond, "rarely": 11 * time.Second} {
			var b bound
			b.learn(7, time.Now())
			begun := time.Now()
			for b.most > 0 && time.Since(begun) < time.Minute {
				time.Sleep(every)
				b.age(time.Now(), 1024)
			}
			if took := time.Since(begun); took < 5*time.Second || took > 12*time.Second {
				t.Errorf("asked %s: forgotten after %v", name, took)
			}
		}
		var b bound
		for range 100 {
			b.learn(7, time.Now())
			for range 9 {
				time.Sleep(probeEvery / 5)
				b.age(time.Now(), 1024)
			}
			if b.most != 8 {
				t.Fatalf("%d, where 7 was learnt not two seconds ago", b.most)
			}
		}
	})
}

// TestLookout: a connection is full if calls wait while as many streams end as are opened, and
// not if calls get their streams, come and go, or wait for a connection.
func TestLookout(t *testing.T) {
	for name, tt := range map[string]struct {
		ready bool
		live  func(r *room, i int) // every millisecond
		want  int
	}{
		"full, and calm": {ready: true, live: func(*room, int) {}, want: 4},
		"full, and lively": {ready: true, live: func(r *room, _ int) {
			r.gone(false, false)
			r.got(r.want(t.Context()), true)
		}, want: 4},
		"not full": {ready: true, live: func(r *room, i int) {
			if i%5 == 0 {
				r.got(r.want(t.Context()), true)
			}
		}},
		"not connected": {live: func(*room, int) {}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := testRoom(10)
				r.ready = func() bool { return tt.ready }
				_, _ = r.enter(false)
				r.opened(r.opens(), true)
				for range 3 {
					r.got(r.want(t.Context()), true)
				}
				waits := r.want(t.Context())
				for i := range 100 {
					time.Sleep(time.Millisecond)
					synctest.Wait()
					tt.live(r, i)
				}
				if r.streams.most != tt.want {
					t.Errorf("it admits %d streams, as it seems, want %d", r.streams.most, tt.want)
				}
				r.got(waits, true)
			})
		})
	}
	t.Run("calls come and go", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := testRoom(10)
			_, _ = r.enter(false)
			waits := r.want(t.Context())
			for range 100 {
				time.Sleep(lookEvery * 3 / 4)
				synctest.Wait()
				next := r.want(t.Context())
				r.got(waits, true)
				r.gone(false, false)
				waits = next
			}
			if r.got(waits, true); r.streams.most != 0 {
				t.Errorf("it admits %d streams, as it seems: no call waited for as long as it takes to look twice", r.streams.most)
			}
		})
	})
}

// TestYieldBeforeTheStreamIsOpened: a stream that is taken back before it has a context of
// its own is ended as soon as it has one.
func TestYieldBeforeTheStreamIsOpened(t *testing.T) {
	c, err := NewClient("passthrough:///x", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s := &specStream{conn: c, method: &method{}}
	c.half.room.enter(true)
	c.half.add(s)
	c.half.yield(0)
	ended := false
	s.ends(func() { ended = true })
	if !ended {
		t.Error("it is opened all the same")
	}
}

// TestResetsAreBounded: peers that mind resets see few within half a minute.
func TestResetsAreBounded(t *testing.T) {
	r := new(room)
	for i := range 2 * mostResets {
		if r.mayReset() != (i < mostResets) {
			t.Errorf("reset %d: may %v", i, i >= mostResets)
		}
	}
	r.resetsSince = r.resetsSince.Add(-2 * resetSpan)
	if !r.mayReset() {
		t.Error("nothing is reset half a minute later")
	}
}
