package sim

import (
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/wan"
)

// crash takes a node down between two calls or within one, with any number of its writes, and
// brings it back later.
func (in *injector[M]) crash(id protocol.ID) {
	s, n := in.sim, in.sim.lookup(id)
	if n.node == nil || n.diskLost {
		return
	}
	if in.rand.IntN(2) == 0 {
		s.CrashInNextWrite(id, in.keep(len(n.pending)+1))
	} else {
		s.Crash(id, in.keep(len(n.pending)))
	}
	in.later(1, func() {
		n.crashing = crashPlan{}
		in.restart(id)
	})
}

// restart brings a node back, unless its disk was lost meanwhile.
func (in *injector[M]) restart(id protocol.ID) {
	if !in.sim.lookup(id).diskLost {
		in.sim.Restart(id)
	}
}

// keep returns a number from 0 to all, the ends being more likely than what lies between.
func (in *injector[M]) keep(all int) Keep {
	switch in.rand.IntN(4) {
	case 0:
		return KeepNone
	case 1:
		return KeepAll
	}
	return Keep(in.rand.IntN(all + 1))
}

func (in *injector[M]) power() {
	for _, id := range in.profile.Nodes {
		n := in.sim.lookup(id)
		if n.node == nil || n.diskLost {
			continue
		}
		in.sim.Crash(id, in.keep(len(n.pending)))
		in.later(0, func() { in.restart(id) })
	}
}

func (in *injector[M]) loseDisk(id protocol.ID) {
	if in.sim.lookup(id).diskLost {
		return
	}
	in.lost++
	in.sim.LoseDisk(id)
	in.profile.LostDisk(id)
}

func (in *injector[M]) slowDisk(id protocol.ID) {
	n := in.sim.lookup(id)
	by := in.lasting(50 * time.Millisecond)
	in.sim.SetDisk(id, Disk{Latency: n.ownDisk.Latency + by, Jitter: n.ownDisk.Jitter + by})
	in.later(0, func() { in.sim.SetDisk(id, n.ownDisk) })
}

func (in *injector[M]) pause(id protocol.ID) {
	if n := in.sim.lookup(id); n.node == nil || n.paused {
		return
	}
	in.sim.Pause(id, 10*in.profile.Lasting, in.rand.IntN(2) == 0)
	in.later(1, func() { in.sim.Resume(id) })
}

// skew makes a clock wrong by tenths of a second, and by up to a thousandth: more than a clock is
// that is looked after.
func (in *injector[M]) skew(id protocol.ID) {
	const mean = 200 * time.Millisecond
	offset := in.lasting(mean)
	if in.rand.IntN(2) == 0 {
		offset = -offset
	}
	in.sim.setClock(in.sim.lookup(id), Clock{Offset: offset, DriftPPM: in.rand.IntN(2001) - 1000})
}

func (in *injector[M]) jump(id protocol.ID) {
	by := in.lasting(200 * time.Millisecond)
	if in.rand.IntN(2) == 0 {
		by = -by
	}
	in.sim.Jump(id, by)
}

// partition cuts some nodes off the others. Nodes that it does not choose from are on one side or
// the other, or reach both.
func (in *injector[M]) partition() {
	s := in.sim
	nodes := slices.Clone(in.profile.Nodes)
	in.rand.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	size := min(1+in.rand.IntN(in.profile.MaxDown-in.down()), len(nodes))
	few, many := slices.Clone(nodes[:size]), nodes[size:]
	for _, id := range s.IDs() {
		if slices.Contains(nodes, id) {
			continue
		}
		switch in.rand.IntN(3) {
		case 0:
			few = append(few, id)
		case 1:
			many = append(many, id)
		}
	}
	s.Partition(few, many)
	in.later(size, func() { s.Reunite(few, many) })
}

// oneWay cuts what leads to a node from some others, or away from it.
func (in *injector[M]) oneWay(id protocol.ID) {
	s := in.sim
	hears := in.rand.IntN(2) == 0
	for _, other := range s.IDs() {
		if other == id || in.rand.IntN(3) == 0 {
			continue
		}
		from, to := id, other
		if !hears {
			from, to = other, id
		}
		s.Cut(from, to)
		in.later(0, func() { s.Mend(from, to) })
	}
	in.later(1, func() {})
}

func (in *injector[M]) partial(id protocol.ID) {
	s := in.sim
	other := in.other(id)
	s.Cut(id, other)
	s.Cut(other, id)
	in.later(0, func() {
		s.Mend(id, other)
		s.Mend(other, id)
	})
}

func (in *injector[M]) reset(id protocol.ID) {
	other := in.other(id)
	in.sim.Reset(id, other)
	if in.rand.IntN(2) == 0 {
		in.sim.Reset(other, id)
	}
}

// other returns any node, but not this one if there is another.
func (in *injector[M]) other(id protocol.ID) protocol.ID {
	nodes := in.sim.nodes
	i := in.rand.IntN(len(nodes))
	if nodes[i].id == id {
		i = (i + 1) % len(nodes)
	}
	return nodes[i].id
}

// slow makes a direction between two sites slow and thin.
func (in *injector[M]) slow() {
	s, sites := in.sim, in.sim.net.sites
	r := &sites[in.rand.IntN(len(sites))][in.rand.IntN(len(sites))]
	bad := &wan.Schedule{{
		From: s.now, Paths: []wan.Path{r.path},
		Delay: in.lasting(100 * time.Millisecond), BytesPerSecond: 1 << (12 + in.rand.IntN(8)), // from 4 KiB to 512 KiB
	}}
	s.schedules = append(s.schedules, bad)
	s.relink()
	in.later(0, func() {
		s.schedules = slices.DeleteFunc(s.schedules, func(other *wan.Schedule) bool { return other == bad })
		s.relink()
	})
}
