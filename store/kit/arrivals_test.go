package kit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// waits is what a server holds, with a clock. Requests are named.
type waits struct {
	Arrivals[string]
	t     *testing.T
	env   *protocol.Env[store.Message]
	timer time.Duration // when it expires; 0: none is set
}

func newWaits(t *testing.T, most time.Duration, limit int) *waits {
	t.Helper()
	w := &waits{Arrivals: NewArrivals[string](most, limit), t: t,
		env: protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))}
	w.at(time.Hour)
	return w
}

// at sets the clock.
func (w *waits) at(now time.Duration) { w.env.Begin(now) }

// take takes a request that should have arrived so long after an hour.
func (w *waits) take(after time.Duration, client store.ClientID, name string) []string {
	w.t.Helper()
	return w.see(w.Take(w.env, Arrival{At: time.Hour + after, ID: store.TxnID{Time: 1, Client: client}, Step: 1}, name))
}

// see takes note of the timer, and checks.
func (w *waits) see(due []string) []string {
	w.t.Helper()
	for _, e := range w.env.Out {
		if e.Kind == protocol.KindAfter {
			w.timer = w.env.Now + e.Delay
		}
	}
	if err := w.Check(); err != nil {
		w.t.Error(err)
	}
	return due
}

// expire has the timer expire, at its time.
func (w *waits) expire() []string {
	w.t.Helper()
	w.at(w.timer)
	w.timer = 0
	return w.see(w.Due(w.env))
}

func wantNames(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v are handled, want %v", what, got, want)
	}
}

// TestArrivalsAreInOrder: requests are handled at their times, of which they are in order, and
// those of one time in an order that is the same everywhere.
func TestArrivalsAreInOrder(t *testing.T) {
	const msec = time.Millisecond
	w := newWaits(t, 100*msec, 10)
	wantNames(t, "as the last one comes", w.take(30*msec, 1, "last"))
	wantNames(t, "as the second of a time comes", w.take(20*msec, 9, "tie b"))
	wantNames(t, "as the first of a time comes", w.take(20*msec, 8, "tie a"))
	wantNames(t, "as the first one comes", w.take(10*msec, 7, "first"))
	wantNames(t, "at the first time", w.expire(), "first")
	wantNames(t, "at the second time", w.expire(), "tie a", "tie b")
	w.at(time.Hour + 25*msec)
	wantNames(t, "as one comes late", w.take(22*msec, 1, "late"), "late")
	w.at(time.Hour + 31*msec) // the timer is late
	wantNames(t, "as one comes late that is not the first", w.take(30*msec+1, 1, "later"), "last", "later")
	want := store.OrderStatus{Held: 4, Late: 2, Mean: w.status.Mean, Sum: 81 * msec}
	want.Times[4], want.Times[5] = 1, 3 // up to 16 ms, and up to 32 ms
	if got := w.Status(); got != want || got.Mean < 10*msec || got.Mean > 31*msec {
		t.Errorf("its status is %+v, want %+v", got, want)
	}
}

// TestArrivalsAreBounded: nobody waits longer than is allowed, whatever his time is, and whatever
// becomes of the clock. What finds no room does not wait.
func TestArrivalsAreBounded(t *testing.T) {
	const msec = time.Millisecond
	w := newWaits(t, 100*msec, 2)
	w.take(time.Hour, 1, "far")
	if w.timer != time.Hour+100*msec {
		t.Errorf("one whose time is far ahead waits until %v", w.timer-time.Hour)
	}
	w.take(50*msec, 2, "near")
	wantNames(t, "as one comes for which there is no room", w.take(60*msec, 3, "full"), "full")
	wantNames(t, "at the first time", w.expire(), "near")
	w.at(time.Minute)
	wantNames(t, "when the clock was set back", w.see(w.Due(w.env)), "far")
	if s := w.Status(); s.Sum != 50*msec || s.Mean != 25*msec {
		t.Errorf("they were held for %v in all, %v in the mean", s.Sum, s.Mean)
	}
	s := w.Status()
	if got := fmt.Sprint(s.Holding, s.Held, s.Late, s.Full); got != "0 2 0 1" {
		t.Errorf("its status is %s", got)
	}
}

// TestTimesHeldAreCounted: each time is counted at the first bound that is not less.
func TestTimesHeldAreCounted(t *testing.T) {
	const msec = time.Millisecond
	h := NewArrivals[string](time.Hour, 1)
	var want [store.HeldCounts]uint64
	for held, i := range map[time.Duration]int{
		0: 0, msec: 0, msec + 1: 1, 1024 * msec: 10, 1025 * msec: 11, time.Hour: 11,
	} {
		h.count(held)
		want[i]++
	}
	if got := h.Status().Times; got != want {
		t.Errorf("the counts are %v, want %v", got, want)
	}
}
