package domino

import (
	"testing"
	"time"
)

// TestLossIsOneMeasurement: echoes that a lost segment has held up, 20 of the hundred of a window,
// do not decide about it; a way that has become longer does, and so do clocks that are set.
func TestLossIsOneMeasurement(t *testing.T) {
	o, err := Options{}.withDefaults(100 * time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	const apart, there, back = 10 * time.Millisecond, 30 * time.Millisecond, 20 * time.Millisecond
	m, arrives := newMeter(o), time.Duration(0)
	now := time.Minute
	probe := func(n int, there, offset time.Duration, until time.Duration) {
		for range n {
			now += apart
			arrives = max(arrives, now+there, until)
			m.add(arrives+back, echo{Sent: now, Now: arrives + offset})
		}
	}
	check := func(when string, arrival, round, usual time.Duration) {
		t.Helper()
		at := arrives + back
		gotArrival, ok := m.arrival(at)
		gotRound, ok2 := m.round(at)
		gotUsual, ok3 := m.usual(at)
		if !ok || !ok2 || !ok3 || gotArrival != arrival || gotRound != round || gotUsual != usual {
			t.Errorf("%s: arrival %v, round trip %v, usually %v, want %v, %v and %v", when, gotArrival, gotRound, gotUsual,
				arrival, round, usual)
		}
	}
	probe(100, there, 0, 0)
	check("before", there, there+back, there+back)
	probe(20, there, 0, now+200*time.Millisecond)
	check("after a loss", there, there+back, there+back)
	probe(20, there, 0, 0)
	check("later", there, there+back, there+back)
	probe(10, there+40*time.Millisecond, 0, 0)
	check("a longer way, at first", there+40*time.Millisecond, there+back+40*time.Millisecond, there+back)
	probe(90, there+40*time.Millisecond, 0, 0)
	check("a longer way", there+40*time.Millisecond, there+back+40*time.Millisecond, there+back+40*time.Millisecond)
	probe(10, there+40*time.Millisecond, -time.Second, 0) // the peer's clock is set back
	check("another clock", there+40*time.Millisecond-time.Second, there+back+40*time.Millisecond, there+back+
		40*time.Millisecond)
}

// TestEarlierEchoesCount: with jitter every second echo comes a little sooner after the one before
// than their probes were apart. It was not held up: the median is that of all.
func TestEarlierEchoesCount(t *testing.T) {
	o, err := Options{}.withDefaults(100 * time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	m, now := newMeter(o), time.Minute
	for i := range 51 {
		now += 10 * time.Millisecond
		trip := 50*time.Millisecond + time.Duration(i%2)*3*time.Millisecond
		m.add(now+trip, echo{Sent: now, Now: now + trip/2})
	}
	if usual, ok := m.usual(now + 50*time.Millisecond); !ok || usual != 50*time.Millisecond {
		t.Errorf("usually %v, want 50ms", usual)
	}
}
