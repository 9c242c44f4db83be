package specgrpc

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay"
)

// TestRoom: calls of confirmed callers never ask; speculative ones get what they leave, in turn.
func TestRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &room{most: 10}
		for range 6 {
			r.want()
			r.got(true)
		}
		if p, _ := r.enter(false); !p.admitted {
			t.Fatal("a call waits although no limit is known")
		}
		r.opened()
		r.blocked() // seven streams are open
		first, _ := r.enter(false)
		second, _ := r.enter(false)
		third, why := r.enter(false)
		if first.admitted || second.admitted || third.admitted || r.limit != 7 || !r.tight() || why.most != 7 {
			t.Fatalf("%+v, %+v and %+v enter at a limit of %d: %v", first, second, third, r.limit, why)
		}
		r.leave(first)
		<-first.done
		r.gone(false, false)
		if first.admitted || second.admitted {
			t.Error("a call that left was admitted, or one where confirmed callers want all")
		}
		time.Sleep(3 * demandSpan)
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
		r.gone(true, false)
		if <-fourth.done; !fourth.admitted || r.limit != 8 {
			t.Errorf("%+v at a limit of %d: one that was learnt is tried again", fourth, r.limit)
		}
		r.want()
		r.got(true)
		r.want()
		r.got(true)
		if r.open != 9 || r.limit != 9 {
			t.Errorf("the limit is %d although %d streams are open", r.limit, r.open)
		}
	})
}

// TestRoomForEffects: streams that stay open until their callers' word take a quarter at most.
func TestRoomForEffects(t *testing.T) {
	r := &room{most: 100, limit: 16, learnt: time.Now()}
	for i := range 5 {
		p, why := r.enter(true)
		if p.admitted != (i < 4) || (why == lack{foresay.LimitStreams, 16}) != (i == 4) {
			t.Errorf("stream %d: %+v, %q", i, p, why)
		}
	}
}

// TestNoQueueForNothing: where no half-open call is allowed none waits for one.
func TestNoQueueForNothing(t *testing.T) {
	r := &room{}
	if p, why := r.enter(false); p != nil || why == (lack{}) {
		t.Errorf("%+v, %v", p, why)
	}
}
