package plan

import (
	"slices"
	"time"

	"github.com/foresay/foresay/internal/delays"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/wan"
)

// A Row is what a system gives to a client's transactions of a class.
type Row struct {
	System System
	Client wan.Site // "" is all clients
	Class  Class
	// Share is that of the client's transactions, from 0 to 1.
	Share float64
	// Mean, Median, P95 and Worst are of the time from the transaction's begin to the word on its
	// outcome. They are 0 if there is no such transaction, or if it is never told as long as Lost is
	// lost: see Blocked.
	Mean, Median, P95, Worst time.Duration
	// Fast is the share of the transactions, of those that write, that the fast path can decide; of
	// systems without one it is 0.
	Fast float64
	// Blocked is the share of the transactions that cannot end while Setting.Lost is lost.
	Blocked float64
}

// Latencies returns a row for each system, client and class, in this order: of all clients first,
// each with all classes. Without systems these are the Floor and all systems.
func Latencies(s Setting, systems ...System) ([]Row, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if len(systems) == 0 {
		systems = append([]System{Floor}, Systems()...)
	}
	for _, system := range systems {
		if err := system.validate(); err != nil {
			return nil, err
		}
	}
	var rows []Row
	for _, system := range systems {
		rows = append(rows, newModel(s, system).rows()...)
	}
	return rows, nil
}

// blocked is the latency of what does not end.
const blocked = time.Duration(-1)

// outcome is what becomes of a transaction.
type outcome struct {
	took time.Duration // or blocked
	fast bool          // decided on the fast path
}

// Latency returns how long a system takes for a transaction of a client, by its number; false if it
// does not end while Setting.Lost is lost. The setting is a valid one.
func Latency(s Setting, system System, client int, t Txn) (time.Duration, bool) {
	o := newModel(s, system).at(client).outcome(t)
	return max(o.took, 0), o.took != blocked
}

// model computes for one system.
type model struct {
	Setting
	system System
	delay  [][]time.Duration // from, to
	sites  []int             // all, by the numbers of delay
	copies [][]int           // by partition, the leader first; of those that are not lost
	of     []int             // how many copies each partition has, lost ones too
	number delays.Network
}

func newModel(s Setting, system System) *model {
	net := delays.Of(s.WAN)
	m := &model{Setting: s, system: system, delay: net.Table(delays.Least), number: net}
	for _, site := range s.WAN.Sites() {
		m.sites = append(m.sites, net.Site(site))
	}
	for _, at := range s.Placement {
		if system.Whole() {
			at = s.WAN.Sites()
		}
		var left []int
		for _, site := range at {
			if site != s.Lost {
				left = append(left, net.Site(site))
			}
		}
		m.copies, m.of = append(m.copies, left), append(m.of, len(at))
	}
	return m
}

// rows returns those of all clients, and of each.
func (m *model) rows() []Row {
	type tally struct {
		sample           delays.Sample
		all, fast, stuck float64 // weights
	}
	classes := Classes()
	add := func(to map[Class]*tally, class Class, o outcome, weight float64) {
		t := to[class]
		if t == nil {
			t = &tally{}
			to[class] = t
		}
		t.all += weight
		if o.fast {
			t.fast += weight
		}
		if o.took == blocked {
			t.stuck += weight
			return
		}
		t.sample = append(t.sample, delays.Weighted{Latency: o.took, Weight: weight})
	}
	row := func(site wan.Site, of map[Class]*tally) (rows []Row) {
		for _, class := range classes {
			r := Row{System: m.system, Client: site, Class: class}
			if t := of[class]; t != nil {
				r.Share, r.Fast, r.Blocked = t.all/of[All].all, t.fast/t.all, t.stuck/t.all
				r.Mean, r.Median, r.P95, r.Worst = t.sample.Mean(), t.sample.Quantile(0.5), t.sample.Quantile(0.95),
					t.sample.Quantile(1)
			}
			rows = append(rows, r)
		}
		return rows
	}
	total := map[Class]*tally{}
	var each []Row
	for i, c := range m.Clients {
		if c.Site == m.Lost {
			continue
		}
		own, from := map[Class]*tally{}, m.at(i)
		for _, t := range m.Txns(i) {
			o := from.outcome(t)
			for _, class := range []Class{All, m.ClassOf(i, t)} {
				add(own, class, o, 1)
				add(total, class, o, c.weight())
			}
		}
		each = append(each, row(c.Site, own)...)
	}
	return append(row("", total), each...)
}

// view is what a client sees of the store.
type view struct {
	*model
	c int // its site
}

func (m *model) at(client int) view { return view{m, m.number.Site(m.Clients[client].Site)} }

// trip is the round trip between two sites.
func (m *model) trip(a, b int) time.Duration { return m.delay[a][b] + m.delay[b][a] }

// up tells whether a partition has a majority.
func (m *model) up(k int) bool { return len(m.copies[k]) >= quorum.Majority(m.of[k]) }

// lead is the site of a partition's leader.
func (m *model) lead(k int) int { return m.copies[k][0] }

// agree is how long a partition's leader waits for its majority.
func (m *model) agree(k int) time.Duration {
	at := m.copies[k]
	return delays.Kth(len(at), quorum.Majority(m.of[k]), func(i int) time.Duration { return m.trip(at[0], at[i]) })
}

// nearest is the client's round trip to the nearest copy of a partition, and majority that to the
// nearest majority of them.
func (v view) nearest(k int) time.Duration { return v.copy(k, 1) }
func (v view) majority(k int) time.Duration {
	return v.copy(k, quorum.Majority(v.of[k]))
}

func (v view) copy(k, nth int) time.Duration {
	at := v.copies[k]
	return delays.Kth(len(at), nth, func(i int) time.Duration { return v.trip(v.c, at[i]) })
}

// reads is how long it takes to read all keys of a transaction, of which each takes so long.
func (v view) reads(t Txn, each func(k int) time.Duration) (d time.Duration) {
	for _, k := range t.Reads {
		if v.Load.Declared {
			d = max(d, each(k))
		} else {
			d += each(k)
		}
	}
	return d
}

// longest is the longest that one of the partitions takes.
func longest(partitions []int, each func(k int) time.Duration) (d time.Duration) {
	for _, k := range partitions {
		d = max(d, each(k))
	}
	return d
}

// outcome returns what becomes of a transaction.
func (v view) outcome(t Txn) outcome {
	parts := t.Partitions()
	if slices.ContainsFunc(parts, func(k int) bool { return !v.up(k) }) {
		return outcome{took: blocked}
	}
	switch v.system {
	case Floor:
		return outcome{took: v.floor(t, parts)}
	case ReplicatedCommit:
		return outcome{took: v.replicatedCommit(t, parts)}
	case Layered:
		return outcome{took: v.layered(t, parts)}
	case CarouselBasic, CarouselFast:
		return v.carousel(t, parts)
	case TAPIR:
		return v.tapir(t, parts)
	}
	panic("plan: " + string(v.system)) // it was validated
}

// floor: a majority of each partition has to learn what conflicts with what; and of a transaction
// that writes, another site has to have what was written, which may depend on what was read.
func (v view) floor(t Txn, parts []int) time.Duration {
	if len(t.Writes) == 0 {
		return longest(parts, func(k int) time.Duration { return min(v.trip(v.c, v.lead(k)), v.majority(k)) })
	}
	var others []time.Duration
	for _, s := range v.sites {
		if s != v.c && v.Lost != v.WAN.Sites()[s] {
			others = append(others, v.trip(v.c, s))
		}
	}
	safe := time.Duration(0)
	if len(others) > 0 {
		safe = slices.Min(others)
	}
	return max(longest(parts, v.majority), longest(t.Reads, v.nearest)+safe)
}

// replicatedCommit reads from a majority and has a majority of all sites vote. A single read is
// settled by the reading [store.Got.Settled].
func (v view) replicatedCommit(t Txn, parts []int) time.Duration {
	d := v.reads(t, v.majority)
	if len(t.Writes) == 0 && len(t.Reads) == 1 {
		return d
	}
	return d + v.majority(parts[0])
}

// layered reads from a majority, has a coordinator at the nearest site ask each partition's leader,
// and then the leader of the first partition for the decision.
func (v view) layered(t Txn, parts []int) time.Duration {
	at := v.home()
	ask := func(k int) time.Duration { return v.trip(at, v.lead(k)) + v.agree(k) }
	d := v.reads(t, v.majority) + v.trip(v.c, at) + longest(parts, ask)
	if len(parts) > 1 {
		d += ask(parts[0])
	}
	return d
}

// home is the nearest site.
func (v view) home() int {
	best := -1
	for _, s := range v.sites {
		if v.Lost != v.WAN.Sites()[s] && (best < 0 || v.trip(v.c, s) < v.trip(v.c, best)) {
			best = s
		}
	}
	return best
}

// carousel reads and prepares at once if it knows the keys, else it prepares when it has read. The
// coordinator is the nearest leader of any group; it decides when its group has what is written,
// and all partitions are prepared.
func (v view) carousel(t Txn, parts []int) outcome {
	read := func(k int) time.Duration {
		if v.system == CarouselFast && v.nearest(k) == 0 {
			return 0
		}
		return v.trip(v.c, v.lead(k))
	}
	got := v.reads(t, read)
	if len(t.Writes) == 0 { // each leader answers for the moment of the reading
		if v.Load.Declared {
			return outcome{took: longest(parts, func(k int) time.Duration { return v.trip(v.c, v.lead(k)) })}
		}
		return outcome{took: got + longest(parts, func(k int) time.Duration { return v.trip(v.c, v.lead(k)) })}
	}
	begin := got
	if v.Load.Declared {
		begin = 0
	}
	group := v.coordinators()
	at := v.lead(group)
	stored := got + v.delay[v.c][at] + v.agree(group)
	voted, fast := time.Duration(0), v.system == CarouselFast
	for _, k := range parts {
		l := v.lead(k)
		slow := v.delay[v.c][l] + v.agree(k) + v.delay[l][at]
		all, ok := v.fastVotes(k, at)
		if ok = ok && v.system == CarouselFast; ok {
			voted = max(voted, min(all, slow))
		} else {
			voted = max(voted, slow)
		}
		fast = fast && ok && all <= slow
	}
	return outcome{took: max(stored, begin+voted) + v.delay[at][v.c], fast: fast}
}

// coordinators is the partition whose group coordinates: the one with the nearest leader.
func (v view) coordinators() int {
	best := -1
	for k := range v.copies {
		if v.up(k) && (best < 0 || v.trip(v.c, v.lead(k)) < v.trip(v.c, v.lead(best))) {
			best = k
		}
	}
	return best
}

// fastVotes is when a supermajority of a partition, its leader in it, has told the coordinator what
// it has prepared; false if there is none.
func (v view) fastVotes(k, at int) (time.Duration, bool) {
	copies, want := v.copies[k], quorum.Fast(v.of[k])
	if len(copies) < want {
		return 0, false
	}
	vote := func(i int) time.Duration { return v.delay[v.c][copies[i]] + v.delay[copies[i]][at] }
	return max(vote(0), delays.Kth(len(copies), want, vote)), true
}

// tapir reads from the nearest copies, and is decided by the same answer of a supermajority of each
// partition, or else by a majority's, which has to be told.
func (v view) tapir(t Txn, parts []int) outcome {
	fast := true
	d := v.reads(t, v.nearest) + longest(parts, func(k int) time.Duration {
		if want := quorum.Fast(v.of[k]); len(v.copies[k]) >= want {
			return v.copy(k, want)
		}
		fast = false
		return 2 * v.majority(k)
	})
	return outcome{took: d, fast: fast && len(t.Writes) > 0}
}
