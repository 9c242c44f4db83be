package wan

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Chance says how a schedule is drawn.
type Chance struct {
	Seed uint64
	For  time.Duration // faults begin before
	// Every is the mean time from one fault to the next, Lasting the mean time that one lasts. 0 is
	// a second. Every is a millisecond at least, and neither is exceeded more than tenfold.
	Every, Lasting time.Duration
}

// Random draws a schedule for a network: sites cut off from the others, in both directions or one,
// pairs that do not reach each other though others reach both, links that are slow, thin, jittery
// or lossy. All faults end. It is the same whenever it is drawn from the same chance. A network of
// one site has none.
func Random(m Matrix, c Chance) Schedule {
	rnd := rand.New(rand.NewPCG(c.Seed, mix(c.Seed)))
	every, lasting := max(orSecond(c.Every), time.Millisecond), orSecond(c.Lasting)
	var s Schedule
	if len(m.sites) < 2 {
		return s
	}
	for at := draw(rnd, every); at < c.For; at += draw(rnd, every) {
		f := Fault{From: at, Until: at + draw(rnd, lasting)}
		f.draw(rnd, m)
		s = append(s, f)
	}
	return s
}

func orSecond(d time.Duration) time.Duration {
	if d <= 0 {
		return time.Second
	}
	return d
}

// draw returns a random time with a mean, at least a nanosecond and at most ten times the mean.
func draw(rnd *rand.Rand, mean time.Duration) time.Duration {
	return 1 + time.Duration(min(rnd.ExpFloat64(), 9.9)*float64(mean))
}

// draw chooses what the fault is, and where.
func (f *Fault) draw(rnd *rand.Rand, m Matrix) {
	sites := slices.Clone(m.sites)
	rnd.Shuffle(len(sites), func(i, j int) { sites[i], sites[j] = sites[j], sites[i] })
	few := 1 + rnd.IntN((len(sites)+1)/2)
	one, other := sites[:1], sites[1:2]
	switch rnd.IntN(7) {
	case 0:
		f.Paths, f.Down = Between(sites[:few], sites[few:]), true
	case 1:
		f.Paths, f.Down = Toward(sites[:few], sites[few:]), true
	case 2:
		f.Paths, f.Down = Between(one, other), true
	case 3:
		f.Paths, f.Delay = Toward(one, other), draw(rnd, 100*time.Millisecond)
	case 4:
		f.Paths, f.BytesPerSecond = Between(one, other), 1<<(12+rnd.IntN(8))
	case 5:
		f.Paths, f.Jitter = Between(one, m.sites), draw(rnd, 50*time.Millisecond)
	case 6:
		f.Paths, f.Loss = Between(one, m.sites), 0.3*rnd.Float64()
	}
}
