package clock_test

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/clock"
)

const ms = time.Millisecond

func newSource(t *testing.T, last clock.Stamp) *clock.Source {
	t.Helper()
	s, err := clock.NewSource(last, 100*ms)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStampsRise(t *testing.T) {
	s := newSource(t, clock.Stamp(50*ms))
	for i, step := range []struct {
		now, at time.Duration // at less than 0: Next
		want    time.Duration // 0: refused
	}{
		{10 * ms, -1, 50*ms + 1}, // above the last
		{10 * ms, -1, 50*ms + 2},
		{60 * ms, -1, 60 * ms},
		{60 * ms, 100 * ms, 100 * ms}, // ahead
		{60 * ms, 90 * ms, 100*ms + 1},
		{60 * ms, 160*ms + 1, 0}, // too far
		{60 * ms, 160 * ms, 160 * ms},
		{60 * ms, -1, 0}, // the next one would be too far, too
		{60*ms + 1, -1, 160*ms + 1},
		{0, -1, 0}, // the clock was set back
		{300 * ms, -1, 300 * ms},
	} {
		var got clock.Stamp
		var err error
		if step.at < 0 {
			got, err = s.Next(step.now)
		} else {
			got, err = s.At(step.now, clock.Stamp(step.at))
		}
		var ahead *clock.AheadError
		if got != clock.Stamp(step.want) || (err != nil) != (step.want == 0) || err != nil && !errors.As(err, &ahead) {
			t.Errorf("step %d: %v, %v, want %v", i, got, err, step.want)
		}
	}
}

func TestObservedStampsAreBelow(t *testing.T) {
	s := newSource(t, 0)
	if err := s.Observe(0, clock.Stamp(100*ms)); err != nil {
		t.Error(err)
	}
	if got, err := s.Next(5 * ms); err != nil || got != clock.Stamp(100*ms+1) || s.Last() != got {
		t.Errorf("%v, %v", got, err)
	}
	err := s.Observe(5*ms, clock.Stamp(106*ms))
	if want := "clock: timestamp 106ms is 101ms ahead of the clock, more than 100ms"; err == nil || err.Error() != want {
		t.Errorf("error %v", err)
	}
	if err := s.Observe(5*ms, 3); err != nil || s.Last() != clock.Stamp(100*ms+1) {
		t.Errorf("%v, last %v", err, s.Last())
	}
	if _, err := clock.NewSource(0, 0); err == nil || err.Error() != "clock: look-ahead of 0s is not positive" {
		t.Errorf("error %v", err)
	}
}

// naive is a window that sorts all measurements each time.
type naive struct {
	span  time.Duration
	limit int
	all   [][2]time.Duration // time, value
}

func (n *naive) at(now time.Duration) []time.Duration {
	n.all = slices.DeleteFunc(n.all, func(s [2]time.Duration) bool { return now-s[0] >= n.span })
	var values []time.Duration
	for i, s := range n.all {
		if n.limit == 0 || i >= len(n.all)-n.limit {
			values = append(values, s[1])
		}
	}
	slices.Sort(values)
	return values
}

func TestWindowLikeANaiveOne(t *testing.T) {
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		limit := 1 + rnd.IntN(60)
		w, err := clock.NewWindow(time.Second, limit)
		if err != nil {
			t.Fatal(err)
		}
		n := &naive{span: time.Second, limit: limit}
		now := time.Duration(0)
		for range 1000 {
			switch rnd.IntN(100) {
			case 0:
				now += time.Duration(rnd.IntN(3000)) * ms
			case 1: // the clock is set back
				now -= time.Duration(1+rnd.IntN(3000)) * ms
			default:
				now += time.Duration(rnd.IntN(50)) * ms
			}
			if len(n.all) > 0 && n.all[len(n.all)-1][0] > now {
				n.all = nil
			}
			if rnd.IntN(2) == 0 {
				v := time.Duration(rnd.IntN(20))
				w.Add(now, v)
				n.all = append(n.all, [2]time.Duration{now, v})
			}
			want := n.at(now)
			if got := w.Len(now); got != len(want) {
				t.Fatalf("seed %d: %d measurements, want %d", seed, got, len(want))
			}
			percent := 1 + rnd.IntN(100)
			got, ok := w.Percentile(now, float64(percent)/100)
			if !ok && len(want) == 0 {
				continue
			}
			// In whole numbers: the smallest rank of which 100 times is no less than percent times
			// all.
			rank := (percent*len(want) + 99) / 100
			if !ok || got != want[rank-1] {
				t.Fatalf("seed %d: percentile %d of %v is %v, %v", seed, percent, want, got, ok)
			}
		}
	}
	for span, limit := range map[time.Duration]int{0: 1, time.Second: 0} {
		if _, err := clock.NewWindow(span, limit); err == nil {
			t.Errorf("a window of %v and %d", span, limit)
		}
	}
}

// A line is two ways whose delays, beyond the shortest, are random, between clocks of which the
// peer's is off.
type line struct {
	there, back, queue time.Duration
	offset             time.Duration
	rnd                *rand.Rand
}

func (l *line) probe(now time.Duration) clock.Probe {
	there := l.there + time.Duration(l.rnd.Int64N(int64(l.queue)+1))
	back := l.back + time.Duration(l.rnd.Int64N(int64(l.queue)+1))
	return clock.Probe{Sent: now - there - back, Peer: now - back + l.offset, Received: now}
}

func newDelay(t *testing.T, c clock.DelayConfig) *clock.Delay {
	t.Helper()
	d, err := clock.NewDelay(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestOneWayDelayIsThePercentileOfASecond(t *testing.T) {
	l := &line{there: 30 * ms, back: 80 * ms, queue: 4 * ms, offset: -time.Second, rnd: rand.New(rand.NewPCG(1, 1))}
	d := newDelay(t, clock.DelayConfig{})
	if _, ok := d.OneWay(0); ok {
		t.Error("there is an estimate of nothing")
	}
	n := &naive{span: time.Second}
	trips := &naive{span: time.Second}
	for i := range 1000 {
		now := time.Duration(i) * 10 * ms
		p := l.probe(now)
		if d.Add(p) {
			t.Errorf("at %v a clock is said to have stepped", now)
		}
		n.all = append(n.all, [2]time.Duration{now, p.Peer - p.Sent})
		trips.all = append(trips.all, [2]time.Duration{now, p.Received - p.Sent})
		check := func(what string, got time.Duration, ok bool, all []time.Duration) {
			rank := (95*len(all) + 99) / 100
			if !ok || got != all[rank-1] {
				t.Fatalf("at %v the %s is %v, %v, want %v", now, what, got, ok, all[rank-1])
			}
		}
		got, ok := d.OneWay(now + ms)
		check("one-way delay", got, ok, n.at(now+ms))
		got, ok = d.RoundTrip(now + ms)
		check("round trip", got, ok, trips.at(now+ms))
	}
	if _, ok := d.OneWay(12 * time.Second); ok || d.Samples(12*time.Second) != 0 {
		t.Error("what is older than a second counts")
	}
}

func TestStepsOfClocksDropTheWindow(t *testing.T) {
	for _, queue := range []time.Duration{0, 2 * ms, 30 * ms} {
		for _, step := range []time.Duration{-time.Second, -queue - 6*ms, queue + 6*ms, time.Minute} {
			l := &line{there: 30 * ms, back: 80 * ms, queue: queue, rnd: rand.New(rand.NewPCG(2, 1))}
			d := newDelay(t, clock.DelayConfig{})
			now := time.Minute
			for range 200 {
				now += 10 * ms
				if d.Add(l.probe(now)) {
					t.Fatalf("queues of %v: a clock is said to have stepped", queue)
				}
			}
			l.offset += step
			stepped := 0
			for range 100 { // a short trip shows it, if the first one does not
				now += 10 * ms
				if d.Add(l.probe(now)) {
					stepped++
					if d.Samples(now) != 1 {
						t.Errorf("%d probes are left", d.Samples(now))
					}
				}
			}
			if max(step, -step) >= 5*ms+2*queue && stepped != 1 || stepped > 1 {
				t.Errorf("queues of %v, a step of %v: noticed %d times", queue, step, stepped)
			}
		}
	}
}

func TestOwnClockSetBack(t *testing.T) {
	l := &line{there: 30 * ms, back: 80 * ms, queue: ms, rnd: rand.New(rand.NewPCG(2, 1))}
	d := newDelay(t, clock.DelayConfig{})
	for i := range 50 {
		d.Add(l.probe(time.Minute + time.Duration(i)*10*ms))
	}
	if !d.Add(clock.Probe{Sent: time.Minute, Peer: time.Minute, Received: 30 * time.Second}) {
		t.Error("a negative trip is none")
	}
	if n := d.Samples(30 * time.Second); n != 0 {
		t.Errorf("%d probes are left", n)
	}
	now := 31 * time.Second
	l.offset = 29 * time.Second
	if d.Add(l.probe(now)) {
		t.Error("stepped once more")
	}
	if got, ok := d.OneWay(now); !ok || got < 29*time.Second+30*ms || got > 29*time.Second+31*ms {
		t.Errorf("the estimate is %v, %v", got, ok)
	}
}

func TestDelayConfigsAreChecked(t *testing.T) {
	for want, c := range map[string]clock.DelayConfig{
		"clock: a percentile of 1.5 is not in (0, 1]":                                    {Percentile: 1.5},
		"clock: a percentile of NaN is not in (0, 1]":                                    {Percentile: math.NaN()},
		"clock: a step of -1ns is negative":                                              {Step: -1},
		"clock: a window of -1ns and 1024 measurements has a limit that is not positive": {Window: -1},
		"clock: a window of 1s and -1 measurements has a limit that is not positive":     {MaxSamples: -1},
	} {
		if _, err := clock.NewDelay(c); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func BenchmarkDelay(b *testing.B) {
	l := &line{there: 30 * ms, back: 80 * ms, queue: 4 * ms, rnd: rand.New(rand.NewPCG(1, 1))}
	d, err := clock.NewDelay(clock.DelayConfig{})
	if err != nil {
		b.Fatal(err)
	}
	probes := make([]clock.Probe, 1000)
	for i := range probes {
		probes[i] = l.probe(time.Duration(i) * ms)
	}
	slices.SortFunc(probes, func(a, b clock.Probe) int { return cmp.Compare(a.Received, b.Received) })
	b.ReportAllocs()
	base, i := time.Duration(0), 0
	for b.Loop() {
		p := probes[i]
		d.Add(clock.Probe{Sent: p.Sent + base, Peer: p.Peer + base, Received: p.Received + base})
		if i++; i == len(probes) {
			base, i = base+time.Second, 0
		}
	}
}

// TestQueuesAreNoSteps begins with long queues, when nobody knows yet how short a trip can be.
func TestQueuesAreNoSteps(t *testing.T) {
	for seed := range uint64(300) {
		l := &line{there: 10 * ms, back: 20 * ms, queue: 40 * ms, rnd: rand.New(rand.NewPCG(seed, 5))}
		d := newDelay(t, clock.DelayConfig{})
		for i := range 300 {
			if d.Add(l.probe(time.Minute + time.Duration(i)*10*ms)) {
				t.Fatalf("seed %d: a clock is said to have stepped at probe %d", seed, i)
			}
		}
	}
}
