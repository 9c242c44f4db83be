package proof

import (
	"math/rand/v2"
	"time"

	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/wan"
)

// faults are the simulator's that machines and their network have: Partial, a direction between two
// places lets nothing through; OneWay, nor all directions from, or to, a place; Power, all machines
// of a site crash at once, and are away for long.
const faults = sim.Reset | sim.Partial | sim.OneWay | sim.Slow | sim.Loss | sim.Crash | sim.Power | sim.Skew | sim.Jump

// A faulter brings faults about.
type faulter struct {
	w     *world
	rand  *rand.Rand
	until time.Time
	later []due
}

// due is what ends a fault.
type due struct {
	at time.Time
	do func() error
}

// run goes on until it is time.
func (f *faulter) run() {
	if f.w.sc.faults.Has(sim.Skew) {
		for _, m := range f.w.machines {
			m.skew.Store(int64(time.Duration(f.rand.IntN(2000)-1000) * time.Millisecond))
		}
	}
	time.Sleep(5 * roundTrip)
	for time.Now().Before(f.until) && f.w.failure() == nil {
		next := time.Now().Add(time.Duration(20+f.rand.IntN(150)) * time.Millisecond)
		f.fault()
		for {
			i := f.first()
			if i < 0 || f.later[i].at.After(next) {
				break
			}
			time.Sleep(time.Until(f.later[i].at))
			if err := f.end(i); err != nil {
				f.w.fail(err)
			}
		}
		time.Sleep(time.Until(next))
	}
}

// first returns which fault ends first, -1 if there is none.
func (f *faulter) first() int {
	first := -1
	for i, d := range f.later {
		if first < 0 || d.at.Before(f.later[first].at) {
			first = i
		}
	}
	return first
}

func (f *faulter) end(i int) error {
	d := f.later[i]
	f.later = append(f.later[:i], f.later[i+1:]...)
	return d.do()
}

func (f *faulter) after(d time.Duration, do func() error) {
	f.later = append(f.later, due{time.Now().Add(d), do})
}

func (f *faulter) lasting() time.Duration {
	return time.Duration(50+f.rand.IntN(900)) * time.Millisecond
}

// fault does one of the kinds.
func (f *faulter) fault() {
	var kinds []sim.Faults
	for k := sim.Faults(1); k < sim.AllFaults; k <<= 1 {
		if f.w.sc.faults.Has(k) && k != sim.Skew {
			kinds = append(kinds, k)
		}
	}
	if f.w.sc.crowd {
		kinds = append(kinds, sim.NoFaults)
	}
	if len(kinds) == 0 {
		return
	}
	a, b := f.place(), f.place()
	kind := kinds[f.rand.IntN(len(kinds))]
	if kind == sim.NoFaults {
		f.w.faulted["client"]++
		f.endClients(f.clients())
		return
	}
	f.w.faulted[kind.String()]++
	switch kind {
	case sim.Reset:
		if a != b {
			f.w.net.Reset(a, b)
		}
	case sim.Partial:
		if a != b {
			f.down([]wan.Path{{From: a, To: b}})
		}
	case sim.OneWay:
		var paths []wan.Path
		out, in := f.rand.IntN(3) > 0, f.rand.IntN(3) > 0
		for p := range f.w.links {
			if out && p.From == a || in && p.To == a {
				paths = append(paths, p)
			}
		}
		f.down(paths)
	case sim.Slow, sim.Loss:
		p := wan.Path{From: a, To: b}
		l, ok := f.w.links[p]
		if !ok {
			return
		}
		if kind == sim.Slow {
			l.Delay += time.Duration(f.rand.IntN(300)) * time.Millisecond
		} else {
			l.Loss = 0.3
		}
		f.w.net.SetLink(a, b, l)
		f.after(f.lasting(), func() error { f.w.net.SetLink(a, b, f.w.links[p]); return nil })
	case sim.Crash:
		f.crash([]*machine{f.w.machines[f.rand.IntN(len(f.w.machines))]}, f.lasting())
	case sim.Power:
		var all []*machine
		site := f.rand.IntN(len(f.w.topology.Sites))
		for _, m := range f.w.machines {
			if m.site == site {
				all = append(all, m)
			}
		}
		f.crash(all, 2*f.lasting())
	case sim.Jump:
		m := f.w.machines[f.rand.IntN(len(f.w.machines))]
		m.skew.Add(int64(time.Duration(f.rand.IntN(600)-300) * time.Millisecond))
	default:
	}
}

// clients returns the place of a site's clients.
func (f *faulter) clients() wan.Site { return f.w.clientPlace(f.rand.IntN(len(f.w.topology.Sites))) }

// place is any.
func (f *faulter) place() wan.Site {
	if f.rand.IntN(3) == 0 {
		return f.clients()
	}
	return f.w.machines[f.rand.IntN(len(f.w.machines))].place
}

func (f *faulter) down(paths []wan.Path) {
	for _, p := range paths {
		f.w.net.SetDown(p.From, p.To, true)
	}
	f.after(f.lasting(), func() error {
		for _, p := range paths {
			f.w.net.SetDown(p.From, p.To, false)
		}
		return nil
	})
}

func (f *faulter) crash(all []*machine, lasting time.Duration) {
	for _, m := range all {
		if m.life == nil {
			continue // somebody brings it back already
		}
		m.crash(f.rand)
		f.after(lasting, m.up)
	}
}

// endClients ends all clients of a place.
func (f *faulter) endClients(place wan.Site) {
	f.w.net.Crash(place)
	f.w.mu.Lock()
	open := append([]*link(nil), f.w.open...)
	f.w.mu.Unlock()
	for _, l := range open {
		if l.place == place && !l.crashed.Swap(true) {
			f.w.wg.Go(l.close)
		}
	}
}

// heal ends all faults.
func (f *faulter) heal() error {
	for len(f.later) > 0 {
		if err := f.end(0); err != nil {
			return err
		}
	}
	for p, l := range f.w.links {
		f.w.net.SetLink(p.From, p.To, l)
	}
	return nil
}
