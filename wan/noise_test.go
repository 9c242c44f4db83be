package wan_test

import (
	"math"
	"testing"
	"time"

	"github.com/foresay/foresay/wan"
)

// TestTail compares shares above some delays with the distribution that the documentation names.
func TestTail(t *testing.T) {
	l := wan.Link{Delay: 10 * ms, Tail: ms}
	const n = 200_000
	above := map[time.Duration]int{0: 0, ms / 5: 0, ms: 0, 2162 * time.Microsecond: 0, 5 * ms: 0, 9 * ms: 0}
	for i := range n {
		d := wan.Departure{Path: wan.Path{From: "a", To: "b"}, At: time.Duration(i) * ms, SizeBytes: i}
		took := l.Transit(7, d) - l.Delay
		if took < 0 || took != l.Transit(7, d)-l.Delay {
			t.Fatalf("a tail of %v, then %v", took, l.Transit(7, d)-l.Delay)
		}
		for x := range above {
			if took > x {
				above[x]++
			}
		}
	}
	for x, got := range above {
		share := math.Pow(1+x.Seconds()/ms.Seconds(), -4)
		if want := n * share; math.Abs(float64(got)-want) > 4*math.Sqrt(want)+1 {
			t.Errorf("%d of %d are above %v, want about %.0f", got, n, x, want)
		}
	}
}

// TestTailIsIndependent: the tail takes nothing from jitter and losses, which are as they were
// without it.
func TestTailIsIndependent(t *testing.T) {
	plain := wan.Link{Jitter: ms, Loss: 0.2, RTO: time.Second}
	with := plain
	with.Tail = ms
	nothing, lost, sum := 0, 0, time.Duration(0)
	for i := range 20_000 {
		d := wan.Departure{Path: wan.Path{From: "a", To: "b"}, At: time.Duration(i) * ms}
		before := plain.Transit(3, d)
		tail := with.Transit(3, d) - before
		switch {
		case tail < 0:
			t.Fatalf("%d: the tail makes it %v earlier", i, -tail)
		case tail == 0:
			nothing++
		}
		if before >= time.Second {
			lost++
			sum += tail
		}
	}
	if mean := sum / time.Duration(lost); nothing > 5 || mean < ms/4 || mean > ms*5/12 {
		t.Errorf("%d tails of nothing, and a mean of %v where segments were lost, want a third of a millisecond", nothing,
			mean)
	}
}

func TestNoise(t *testing.T) {
	n := wan.InterDatacentre()
	m := wan.NorthAmerica().WithNoise(n)
	for p, l := range m.Links() {
		plain, _ := wan.NorthAmerica().Link(p)
		want := wan.Link{Delay: plain.Delay, Tail: 1050 * time.Microsecond, Loss: 2e-5, RTO: m.RTT(p.From, p.To)*3/2 + 10*ms}
		if p.From == p.To {
			want = plain
		}
		if l != want {
			t.Errorf("%v: %+v, want %+v", p, l, want)
		}
	}
	for want, n := range map[string]wan.Noise{
		"none": {}, "tail 1.05ms, loss 2e-05, rto 1.5 rtt + 10ms": n, "jitter 2ms, loss 0.1": {Jitter: 2 * ms, Loss: 0.1},
	} {
		if got := n.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	for p, l := range m.WithNoise(wan.Noise{}).Links() {
		if plain, _ := wan.NorthAmerica().Link(p); l != plain {
			t.Errorf("%v: %+v is left of the noise", p, l)
		}
	}
}

// TestTheFitOfInterDatacentre derives what the documentation of the noise says about it.
func TestTheFitOfInterDatacentre(t *testing.T) {
	quantile := func(q float64) float64 {
		return (math.Pow(1-q, -0.25) - 1) * wan.InterDatacentre().Tail.Seconds() / ms.Seconds()
	}
	for q, want := range map[float64]float64{0.5: 0.2, 0.95: 1.2, 0.99: 2.3, 0.9994: 5.7} {
		if got := quantile(q); math.Abs(got-want) > 0.05 {
			t.Errorf("the %v-quantile is %.2f ms, want %.1f", q, got, want)
		}
	}
}
