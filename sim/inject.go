package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
)

// A Profile says how faults strike by chance.
type Profile struct {
	Faults Faults
	// Seed is that of their chance; 0 is the simulation's.
	Seed uint64
	// Nodes are those that crash, pause, have bad clocks and disks, and are on one side of each
	// cut; nil: all. Clients are often left out.
	Nodes []protocol.ID
	// MaxDown bounds how many of Nodes are down, stand still or are cut off at once, but for Power;
	// 0 is a minority. Lost disks count for good.
	MaxDown int
	// Every is the mean time between two faults; 0 is a second.
	Every time.Duration
	// Lasting is the mean time that a fault lasts; 0 is Every.
	Lasting time.Duration
	// LostDisk is told that a node's disk is gone and the node with it: a test may add another one.
	// nil: LostDisk of Faults does not strike.
	LostDisk func(id protocol.ID)
}

// An injector makes faults happen by chance.
type injector[M any] struct {
	sim     *Sim[M]
	profile Profile
	rand    *rand.Rand
	kinds   []Faults
	repairs []*repair
	index   uint64 // among the simulation's
	stopped bool
	lost    int // disks
}

// A repair ends a fault.
type repair struct {
	do      func()
	limping int // how many nodes the fault keeps from taking part
}

// Inject makes faults strike by chance from now on, until Heal. Faults of Jitter, Loss, Duplicate
// and Reorder hold all the time.
func (s *Sim[M]) Inject(p Profile) error {
	if p.MaxDown < 0 || p.Every < 0 || p.Lasting < 0 {
		return fmt.Errorf("sim: inject: MaxDown, Every or Lasting of %d, %v, %v is negative", p.MaxDown, p.Every, p.Lasting)
	}
	if unknown := p.Faults &^ AllFaults; unknown != 0 {
		return fmt.Errorf("sim: inject: unknown faults %#x", uint32(unknown))
	}
	if p.Nodes == nil {
		p.Nodes = s.IDs()
	}
	for _, id := range p.Nodes {
		if s.lookup(id) == nil {
			return fmt.Errorf("sim: inject: there is no node %d", id)
		}
	}
	if p.MaxDown == 0 {
		p.MaxDown = (len(p.Nodes) - 1) / 2
	}
	if p.Every == 0 {
		p.Every = time.Second
	}
	if p.Lasting == 0 {
		p.Lasting = p.Every
	}
	if p.LostDisk == nil {
		p.Faults &^= LostDisk
	}
	if p.Seed == 0 {
		p.Seed = s.config.Seed
	}
	seed := mix(p.Seed ^ mix(uint64(len(s.injectors))+0x666175))
	in := &injector[M]{sim: s, profile: p, rand: rand.New(rand.NewPCG(seed, mix(seed))), index: uint64(len(s.injectors))}
	s.injectors = append(s.injectors, in)
	in.always()
	for k := Crash; k <= Slow; k <<= 1 {
		if p.Faults.Has(k) {
			in.kinds = append(in.kinds, k)
		}
	}
	if len(in.kinds) > 0 && len(p.Nodes) > 0 {
		in.schedule()
	}
	return nil
}

// always begins the faults that last.
func (in *injector[M]) always() {
	s, f := in.sim, in.profile.Faults
	if f.Has(Jitter) || f.Has(Loss) {
		jitter, loss := in.lasting(20*time.Millisecond), in.rand.Float64()*0.1
		if !f.Has(Jitter) {
			jitter = 0
		}
		if !f.Has(Loss) {
			loss = 0
		}
		s.trace.note(s, nil, fmt.Sprintf("all links have a jitter of %v more, and a loss of %.3f", jitter, loss))
		for i := range s.net.sites {
			for j := range s.net.sites[i] {
				r := &s.net.sites[i][j]
				l := r.set
				l.Jitter += jitter
				l.Loss += (1 - l.Loss) * loss
				s.setLink(r, l)
			}
		}
	}
	if f.Has(Duplicate) || f.Has(Reorder) {
		d := Datagrams{ReorderBy: 100 * time.Millisecond}
		if s.datagrams != nil {
			d = *s.datagrams
		}
		if f.Has(Duplicate) {
			d.Duplicate = max(d.Duplicate, in.rand.Float64()*0.2)
		}
		if f.Has(Reorder) {
			d.Reorder = max(d.Reorder, in.rand.Float64()*0.3)
		}
		s.datagrams = &d
		s.trace.note(s, nil, fmt.Sprintf("links carry datagrams, of which %.3f arrive twice and %.3f up to %v late",
			d.Duplicate, d.Reorder, d.ReorderBy))
	}
}

func (in *injector[M]) schedule() {
	in.sim.add(in.lasting(in.profile.Every), event[M]{kind: evFault, node: -1, n: in.index})
}

// lasting returns a random time with a mean, at most ten times that.
func (in *injector[M]) lasting(mean time.Duration) time.Duration {
	return time.Duration(min(in.rand.ExpFloat64(), 10) * float64(mean))
}

// next makes a fault strike, and sets the time of the next one.
func (in *injector[M]) next() {
	if in.stopped {
		return
	}
	in.strike(in.kinds[in.rand.IntN(len(in.kinds))])
	in.schedule()
}

// strike makes a fault of a kind happen, if there are not too many.
func (in *injector[M]) strike(kind Faults) {
	id := in.profile.Nodes[in.rand.IntN(len(in.profile.Nodes))]
	switch kind {
	case Crash, LostDisk, Pause, Partition, OneWay:
		if in.down() >= in.profile.MaxDown {
			return
		}
	}
	switch kind {
	case Crash:
		in.crash(id)
	case Power:
		in.power()
	case LostDisk:
		in.loseDisk(id)
	case SlowDisk:
		in.slowDisk(id)
	case Pause:
		in.pause(id)
	case Skew:
		in.skew(id)
	case Jump:
		in.jump(id)
	case Partition:
		in.partition()
	case OneWay:
		in.oneWay(id)
	case Partial:
		in.partial(id)
	case Reset:
		in.reset(id)
	case Slow:
		in.slow()
	}
}

// down counts the nodes that do not take part.
func (in *injector[M]) down() int {
	n := in.lost
	for _, r := range in.repairs {
		n += r.limping
	}
	return n
}

// later ends a fault in a while, or when all is healed. It keeps so many nodes from taking part
// until then.
func (in *injector[M]) later(limping int, do func()) {
	r := &repair{do, limping}
	in.repairs = append(in.repairs, r)
	in.sim.After(in.lasting(in.profile.Lasting), func() {
		if i := slices.Index(in.repairs, r); i >= 0 {
			in.repairs = slices.Delete(in.repairs, i, i+1)
			r.do()
		}
	})
}

// stop ends all faults.
func (in *injector[M]) stop() {
	in.stopped = true
	for _, r := range in.repairs {
		r.do()
	}
	in.repairs = nil
}

// Heal ends all faults: no more strike, nodes that are down come back (but for those whose disks
// are gone), and so do links, disks and clocks that are as configured; a node that had another
// clock sees it jump. Datagrams stay datagrams, of which none is lost that Config.Datagrams does
// not lose. A test of liveness heals, and waits with RunUntil.
func (s *Sim[M]) Heal() {
	s.trace.note(s, nil, "all is healed")
	for _, in := range s.injectors {
		in.stop()
	}
	s.schedules = nil
	for i := range s.net.sites {
		for j := range s.net.sites[i] {
			r := &s.net.sites[i][j]
			s.setLink(r, r.base)
			r.free = min(r.free, s.now)
		}
	}
	if s.datagrams != nil {
		s.datagrams = &Datagrams{ReorderBy: time.Millisecond}
		if s.config.Datagrams != nil {
			*s.datagrams = *s.config.Datagrams
		}
	}
	for _, n := range s.nodes {
		for _, peer := range s.nodes {
			s.link(n, peer).cuts = 0
		}
		n.crashing = crashPlan{}
		s.SetDisk(n.id, n.ownDisk)
		s.setClock(n, n.ownClock)
		s.Resume(n.id)
		if !n.diskLost {
			s.Restart(n.id)
		}
	}
	s.tellGaps()
}
