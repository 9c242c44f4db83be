package plan

import (
	"slices"
	"time"

	"github.com/foresay/foresay/internal/delays"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/wan"
)

// model computes for one system.
type model struct {
	Setting
	system System
	net    delays.Network
	delay  [][]time.Duration // from, to
	up     []int             // the sites that are not lost, by their numbers
	copies [][]int           // by partition, the leader first; of those that are not lost
	of     []int             // how many copies each partition has, lost ones too
}

func newModel(s Setting, system System) *model {
	net := delays.Of(s.WAN)
	m := &model{Setting: s, system: system, net: net, delay: net.Table(delays.Least)}
	all := s.WAN.Sites()
	m.up = m.left(all)
	for _, at := range s.Placement {
		if system.Whole() {
			at = all
		}
		m.copies, m.of = append(m.copies, m.left(at)), append(m.of, len(at))
	}
	return m
}

// left returns the numbers of sites, without the lost one.
func (m *model) left(sites []wan.Site) (numbers []int) {
	for _, s := range sites {
		if s != m.Lost {
			numbers = append(numbers, m.net.Number(s))
		}
	}
	return numbers
}

// trip is the round trip between two sites.
func (m *model) trip(a, b int) time.Duration { return m.delay[a][b] + m.delay[b][a] }

// agree is how long a partition's leader waits for its majority.
func (m *model) agree(k int) time.Duration {
	at := m.copies[k]
	return delays.Kth(len(at), quorum.Majority(m.of[k]), func(i int) time.Duration { return m.trip(at[0], at[i]) })
}

// A view is what one client sees of the store.
type view struct {
	*model
	c     int // its site
	near  int // the nearest site, which is its own unless that is lost
	parts []part
	// coordinator is the site of the leader whose group coordinates and takes so long to agree: the
	// nearest one or, if groups coordinate that have no partition, that of the nearest site. It is -1
	// if none can.
	coordinator int
	records     time.Duration
}

// A part is what a client sees of a partition.
type part struct {
	up                bool          // it has a majority
	leader            time.Duration // the round trip to its leader
	nearest, majority time.Duration // and to its nearest copies
	quick             time.Duration // and to a supermajority
	hasQuick          bool          // there is one
	// led is the round trip from the nearest site to the leader, ask how long the group takes to
	// agree on what that site asks for.
	led, ask time.Duration
	// voted is when the coordinator knows that the group has agreed on what the client has sent, from
	// the leader or from a majority that has the leader's word; and quickly when it knows so from a
	// supermajority, the leader in it.
	voted, quickly time.Duration
	// here is the round trip from the nearest site to the copy that is nearest to it and serves reads,
	// and certified when that site knows that all of these, and a majority of all, have what it has
	// sent to the leader.
	here, certified time.Duration
}

func (m *model) at(client int) *view {
	v := &view{model: m, c: m.net.Number(m.Clients[client].Site), coordinator: -1}
	v.near = slices.MinFunc(m.up, func(a, b int) int { return int(m.trip(v.c, a) - m.trip(v.c, b)) })
	for k, at := range m.copies {
		p := part{up: len(at) >= quorum.Majority(m.of[k])}
		if p.up {
			p.leader, p.nearest, p.majority = v.trip(v.c, at[0]), v.copy(k, 1), v.copy(k, quorum.Majority(m.of[k]))
			if p.hasQuick = len(at) >= quorum.Fast(m.of[k]); p.hasQuick {
				p.quick = v.copy(k, quorum.Fast(m.of[k]))
			}
			p.led = m.trip(v.near, at[0])
			by := m.readers(at)
			p.here = delays.Kth(len(by), 1, func(i int) time.Duration { return m.trip(v.near, by[i]) })
			word := func(of []int) func(int) time.Duration {
				return func(i int) time.Duration {
					return m.delay[v.near][at[0]] + m.delay[at[0]][of[i]] + m.delay[of[i]][v.near]
				}
			}
			p.certified = max(delays.Kth(len(by), len(by), word(by)),
				delays.Kth(len(at), quorum.Majority(m.of[k]), word(at)))
			p.ask = p.led + m.agree(k)
			if v.coordinator < 0 || p.leader < v.trip(v.c, v.coordinator) {
				v.coordinator, v.records = at[0], m.agree(k)
			}
		}
		v.parts = append(v.parts, p)
	}
	if m.system == CarouselDirect {
		v.coordinator, v.records = m.coordinating(v.near)
	}
	for k, at := range m.copies {
		if p := &v.parts[k]; p.up && v.coordinator >= 0 {
			vote := func(i int) time.Duration { return m.delay[v.c][at[i]] + m.delay[at[i]][v.coordinator] }
			p.voted = vote(0) + m.agree(k)
			if m.system == CarouselDirect {
				p.voted = delays.Kth(len(at), quorum.Majority(m.of[k]), func(i int) time.Duration {
					return m.delay[v.c][at[0]] + m.delay[at[0]][at[i]] + m.delay[at[i]][v.coordinator]
				})
			}
			if p.hasQuick {
				p.quickly = max(vote(0), delays.Kth(len(at), quorum.Fast(m.of[k]), vote))
			}
		}
	}
	return v
}

// readers returns those of a partition's copies that serve reads.
func (m *model) readers(at []int) []int {
	if m.Readers == 0 || m.Readers >= len(at) {
		return at
	}
	all := slices.Clone(at)
	slices.SortStableFunc(all[1:], func(a, b int) int { return int(m.trip(at[0], a) - m.trip(at[0], b)) })
	return all[:m.Readers]
}

// coordinating returns the group that coordinates for clients of a site, which is not lost: where
// it is led, and how long it takes to agree.
func (m *model) coordinating(site int) (leader int, records time.Duration) {
	group := store.Coordinating(len(m.delay), m.trip)[site]
	up := slices.DeleteFunc(slices.Clone(group), func(i int) bool { return !slices.Contains(m.up, i) })
	if n := quorum.Majority(len(group)); len(up) >= n {
		return site, delays.Kth(len(up), n, func(i int) time.Duration { return m.trip(site, up[i]) })
	}
	return -1, 0
}

// copy is the round trip to the nth nearest copy of a partition.
func (v *view) copy(k, nth int) time.Duration {
	at := v.copies[k]
	return delays.Kth(len(at), nth, func(i int) time.Duration { return v.trip(v.c, at[i]) })
}

// reads is how long it takes to read all keys of a transaction, of which each takes so long.
func (v *view) reads(t Txn, each func(p part) time.Duration) (d time.Duration) {
	for _, k := range t.Reads {
		if v.Load.Declared {
			d = max(d, each(v.parts[k]))
		} else {
			d += each(v.parts[k])
		}
	}
	return d
}

// longest is the longest that one of the partitions takes.
func (v *view) longest(partitions []int, each func(p part) time.Duration) (d time.Duration) {
	for _, k := range partitions {
		d = max(d, each(v.parts[k]))
	}
	return d
}

// What a part takes.
func toNearest(p part) time.Duration  { return p.nearest }
func toMajority(p part) time.Duration { return p.majority }
func atLeader(p part) time.Duration   { return p.leader }
func toAsk(p part) time.Duration      { return p.ask }
func toLeader(p part) time.Duration   { return p.led }

// blocked is the latency of what does not end.
const blocked = time.Duration(-1)

// outcome is what becomes of a transaction.
type outcome struct {
	took time.Duration // or blocked
	fast bool          // decided on the fast path
}

// outcome returns what becomes of a transaction.
func (v *view) outcome(t Txn) outcome {
	for _, ks := range [][]int{t.Reads, t.Writes} {
		for _, k := range ks {
			if !v.parts[k].up {
				return outcome{took: blocked}
			}
		}
	}
	switch v.system {
	case Floor:
		return outcome{took: v.floor(t)}
	case ReplicatedCommit:
		return outcome{took: v.replicatedCommit(t)}
	case Layered:
		return outcome{took: v.layered(t)}
	case CarouselBasic, CarouselFast, CarouselDirect:
		return v.carousel(t)
	case TAPIR:
		return v.tapir(t)
	case STR, ClockSIRep:
		return outcome{took: v.str(t)}
	}
	panic("plan: " + string(v.system)) // it was validated
}

// floor is of a client whose site's word is not enough: see floorOf.
func (v *view) floor(t Txn) time.Duration {
	safe := time.Duration(0)
	for i, s := range v.up {
		if d := v.trip(v.c, s); s != v.c && (i == 0 || safe == 0 || d < safe) {
			safe = d
		}
	}
	return floorOf(t, func(k int) part { return v.parts[k] }, safe)
}

// replicatedCommit reads from a majority and has a majority of all sites vote. A single read is
// settled by the reading [store.Got.Settled].
func (v *view) replicatedCommit(t Txn) time.Duration {
	d := v.reads(t, toMajority)
	if len(t.Writes) == 0 && len(t.Reads) == 1 {
		return d
	}
	return d + v.parts[0].majority // all sites have all partitions
}

// layered reads at the leaders, and has a coordinator at the nearest site ask each partition's
// leader: to have its group prepare, or, if the transaction only reads, whether what it has read is
// still so, of which a majority confirms that it leads. What several partitions have prepared, the
// group of the first one decides.
func (v *view) layered(t Txn) time.Duration {
	all := t.Partitions()
	d := v.reads(t, atLeader) + v.trip(v.c, v.near) + v.longest(all, toAsk)
	if len(all) > 1 && len(t.Writes) > 0 {
		d += v.parts[all[0]].ask
	}
	return d
}

// carousel reads and prepares at once if it knows the keys, else it prepares when it has read. The
// coordinator decides when its group has what is written, and all partitions are prepared. A
// transaction that only reads asks the leaders of its keys once, as of a timestamp: for what they
// have, if its keys are declared, and else whether they have what it has read. One that may be
// stale reads the nearest copies.
func (v *view) carousel(t Txn) outcome {
	if len(t.Writes) == 0 && v.Load.Stale {
		return outcome{took: v.reads(t, toNearest)}
	}
	fast := v.system != CarouselBasic
	got := v.reads(t, func(p part) time.Duration {
		switch {
		case !v.Load.Declared && v.Load.General: // on average
			return p.nearest * time.Duration(100-v.Load.Predicted) / 100
		case !v.Load.Declared && v.system == CarouselDirect:
			return p.nearest
		case !v.Load.Declared || len(t.Writes) == 0:
			return min(p.leader, p.majority)
		case fast:
			return p.nearest // which are asked to prepare anyhow
		}
		return p.leader // likewise
	})
	begin := got
	if v.Load.Declared {
		begin = 0
	}
	if len(t.Writes) == 0 {
		if v.Load.Declared {
			got = 0
		}
		return outcome{took: got + v.longest(t.Reads, toLeader)}
	}
	if v.coordinator < 0 {
		return outcome{took: blocked}
	}
	vote := func(p part) time.Duration {
		if v.system == CarouselBasic || !p.hasQuick {
			fast = false
			return p.voted
		}
		fast = fast && p.quickly <= p.voted
		return min(p.quickly, p.voted)
	}
	voted := max(v.longest(t.Reads, vote), v.longest(t.Writes, vote))
	stored := got + v.delay[v.c][v.coordinator] + v.records
	return outcome{took: max(stored, begin+voted) + v.delay[v.coordinator][v.c], fast: fast}
}

// tapir reads from the nearest copies, and is decided by the same answer of a supermajority of each
// partition, or else by a majority's, which has to be told.
func (v *view) tapir(t Txn) outcome {
	fast := len(t.Writes) > 0
	vote := func(p part) time.Duration {
		if p.hasQuick {
			return p.quick
		}
		fast = false
		return 2 * p.majority
	}
	d := v.reads(t, toNearest) + max(v.longest(t.Reads, vote), v.longest(t.Writes, vote))
	return outcome{took: d, fast: fast}
}

// str has the coordinator of the nearest site read the nearest copies, and then each partition's
// leader certify what is written. Copies tell the coordinator themselves, and it waits for all
// that may have served a snapshot. A transaction that only reads has nothing to wait for.
func (v *view) str(t Txn) time.Duration {
	here := v.trip(v.c, v.near)
	d := v.reads(t, func(p part) time.Duration { return here + p.here }) + here
	if len(t.Reads) == 0 {
		d += here + v.longest(t.Writes[:1], func(p part) time.Duration { return p.here }) // it begins by a read
	}
	return d + v.longest(t.Writes, func(p part) time.Duration { return p.certified })
}
