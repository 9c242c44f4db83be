package wan

import (
	"math/rand/v2"
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
