package wan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// A Fault is something wrong with some directions of a network for a while. What it says comes on
// top of what their links are anyway.
type Fault struct {
	// From and Until are since the network began; Until is not part of it, and 0 is for good.
	From, Until time.Duration
	Paths       []Path
	Down        bool
	Delay       time.Duration // more
	Jitter      time.Duration // more
	Loss        float64       // of what the link does not lose itself, in [0, 1)
	// BytesPerSecond is the most that is left of the bandwidth; 0: all of it.
	BytesPerSecond int64
}

// Schedule is what goes wrong with a network, and when. It is a value; faults may overlap.
type Schedule []Fault

// Change returns what a fault makes of a link.
func (f Fault) Change(l Link) Link {
	l.Down = l.Down || f.Down
	l.Delay += f.Delay
	l.Jitter += f.Jitter
	l.Loss += (1 - l.Loss) * f.Loss
	if f.BytesPerSecond > 0 && (l.BytesPerSecond == 0 || f.BytesPerSecond < l.BytesPerSecond) {
		l.BytesPerSecond = f.BytesPerSecond
	}
	return l
}

// at reports whether a fault is there at a time.
func (f Fault) at(t time.Duration) bool { return t >= f.From && (f.Until == 0 || t < f.Until) }

// String returns a line of text, such as "from 1s until 2s: a->b b->a: down".
func (f Fault) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "from %v", f.From)
	if f.Until != 0 {
		fmt.Fprintf(&b, " until %v", f.Until)
	}
	b.WriteByte(':')
	for _, p := range f.Paths {
		b.WriteString(" " + p.String())
	}
	var what []string
	if f.Down {
		what = append(what, "down")
	}
	if f.Delay != 0 {
		what = append(what, fmt.Sprintf("%v later", f.Delay))
	}
	if f.Jitter != 0 {
		what = append(what, fmt.Sprintf("up to %v later", f.Jitter))
	}
	if f.Loss != 0 {
		what = append(what, fmt.Sprintf("%.3g %% lost", 100*f.Loss))
	}
	if f.BytesPerSecond != 0 {
		what = append(what, fmt.Sprintf("%d bytes per second", f.BytesPerSecond))
	}
	if what == nil {
		what = []string{"nothing"}
	}
	return b.String() + ": " + strings.Join(what, ", ")
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

// Link returns what a link is at a time.
func (s Schedule) Link(p Path, l Link, at time.Duration) Link {
	for _, f := range s {
		if f.at(at) && slices.Contains(f.Paths, p) {
			l = f.Change(l)
		}
	}
	return l
}

// Changes returns the times at which something changes, in order, each once.
func (s Schedule) Changes() []time.Duration {
	var times []time.Duration
	for _, f := range s {
		times = append(times, f.From)
		if f.Until != 0 {
			times = append(times, f.Until)
		}
	}
	slices.Sort(times)
	return slices.Compact(times)
}

// Later returns the schedule with all its times so much later.
func (s Schedule) Later(by time.Duration) Schedule {
	var later Schedule
	for _, f := range s {
		f.From += by
		if f.Until != 0 {
			f.Until += by
		}
		later = append(later, f)
	}
	return later
}

// Validate tells which fault does not fit a network, or nil.
func (s Schedule) Validate(m Matrix) error {
	for i, f := range s {
		err := Link{Delay: f.Delay, Jitter: f.Jitter, Loss: f.Loss, BytesPerSecond: f.BytesPerSecond}.Validate()
		if f.From < 0 {
			err = fmt.Errorf("it begins at %v, before the network", f.From)
		}
		if f.Until != 0 && f.Until <= f.From {
			err = fmt.Errorf("it ends at %v, not after its begin at %v", f.Until, f.From)
		}
		for _, p := range f.Paths {
			if _, ok := m.Link(p); !ok {
				err = fmt.Errorf("path %v: not among the sites %q", p, m.sites)
			}
		}
		if err != nil {
			return fmt.Errorf("wan: fault %d of the schedule: %w", i, err)
		}
	}
	return nil
}

// String returns a line for each fault.
func (s Schedule) String() string {
	var b strings.Builder
	for _, f := range s {
		b.WriteString(f.String() + "\n")
	}
	return b.String()
}

// Toward returns the directions from each of some sites to each of others. A site's way to itself
// is not among them.
func Toward(from, to []Site) []Path {
	var paths []Path
	for _, a := range from {
		for _, b := range to {
			if a != b {
				paths = append(paths, Path{a, b})
			}
		}
	}
	return paths
}

// Between returns both directions between each of some sites and each of others: what a partition
// cuts.
func Between(some, others []Site) []Path {
	paths := Toward(some, others)
	for _, p := range Toward(others, some) {
		if !slices.Contains(paths, p) {
			paths = append(paths, p)
		}
	}
	return paths
}
