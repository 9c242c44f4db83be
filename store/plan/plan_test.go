package plan_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/store/plan"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/workload"
)

// line is four sites in a row, 10, 20 and 40 ms of round trip apart.
func line() wan.Matrix {
	m := wan.Uniform(10*time.Millisecond, "a", "b", "c", "d")
	for _, l := range []struct {
		a, b wan.Site
		rtt  float64
	}{{"b", "c", 20}, {"c", "d", 40}, {"a", "c", 30}, {"b", "d", 60}, {"a", "d", 70}} {
		m = m.WithRTT(l.a, l.b, ms(l.rtt))
	}
	return m
}

// TestByHand has what each system takes for transactions that are few enough to add up: clients at
// a; partition 0 is at a, b and c, led by b; partition 1 at b, c and d, led by d.
func TestByHand(t *testing.T) {
	s := plan.Setting{WAN: line(), Clients: []plan.Client{{Site: "a"}},
		Placement: [][]wan.Site{{"b", "a", "c"}, {"d", "b", "c"}},
		Load:      plan.Load{Workload: updates{keys(t), 1}}}
	// One trip to b is 10, its majority 10; one to d is 70, its majority 40. Majorities from a: 10 of
	// partition 0, 30 of partition 1, 30 of all four sites (two others).
	for _, c := range []struct {
		system   plan.System
		txn      plan.Txn
		declared bool
		want     float64
	}{
		{plan.Floor, plan.Txn{Reads: []int{0}}, false, 10},                       // a's and b's answer
		{plan.Floor, plan.Txn{Reads: []int{1}}, false, 30},                       // b and c
		{plan.Floor, plan.Txn{Writes: []int{0}}, false, 10},                      // a and b
		{plan.Floor, plan.Txn{Reads: []int{1}, Writes: []int{1}}, false, 30},     // b and c, or read at b and tell b
		{plan.ReplicatedCommit, plan.Txn{Reads: []int{0}}, false, 30},            // settled
		{plan.ReplicatedCommit, plan.Txn{Reads: []int{0, 1}}, false, 90},         // two reads, one vote
		{plan.ReplicatedCommit, plan.Txn{Reads: []int{0, 1}}, true, 60},          // side by side
		{plan.ReplicatedCommit, plan.Txn{Writes: []int{1}}, false, 30},           // one vote
		{plan.Layered, plan.Txn{Writes: []int{0}}, false, 20},                    // to b, and its majority
		{plan.Layered, plan.Txn{Reads: []int{1}, Writes: []int{1}}, false, 180},  // at d; to d, and its majority
		{plan.Layered, plan.Txn{Reads: []int{0, 1}}, false, 190},                 // at b, at d; both still lead
		{plan.Layered, plan.Txn{Writes: []int{0, 1}}, false, 130},                // both prepare, 0 decides
		{plan.CarouselBasic, plan.Txn{Reads: []int{0, 1}}, true, 70},             // d, as of a timestamp
		{plan.CarouselBasic, plan.Txn{Reads: []int{0, 1}}, false, 110},           // 10, 30, and d on both
		{plan.CarouselBasic, plan.Txn{Writes: []int{0}}, true, 20},               // b agrees, and coordinates
		{plan.CarouselBasic, plan.Txn{Writes: []int{1}}, true, 35 + 40 + 30 + 5}, // to d, agreed, to b, to a
		{plan.CarouselFast, plan.Txn{Writes: []int{1}}, true, 35 + 30 + 5},       // d, b and c tell b
		{plan.CarouselFast, plan.Txn{Writes: []int{0}}, true, 20},                // b has to have it on record
		{plan.CarouselDirect, plan.Txn{Writes: []int{0}}, true, 10},              // b, and a that has it from b
		{plan.CarouselDirect, plan.Txn{Writes: []int{1}}, true, 70},              // d, and b that has it from d
		{plan.CarouselDirect, plan.Txn{Reads: []int{0, 1}}, false, 80},           // at a, at b, and d on both
		{plan.TAPIR, plan.Txn{Reads: []int{0}}, true, 30},                        // at a, then a, b and c
		{plan.TAPIR, plan.Txn{Reads: []int{1}, Writes: []int{1}}, true, 80},      // at b, then b, c and d
	} {
		s.Load.Declared = c.declared
		if got, ok := plan.Latency(s, c.system, 0, c.txn); !ok || got != ms(c.want) {
			t.Errorf("%s, %+v, declared %v: %v, %v; want %v ms", c.system, c.txn, c.declared, got, ok, c.want)
		}
	}
}

// TestReaders: with fewer copies that serve reads commits wait for these, and for a majority, and
// reads may go farther.
func TestReaders(t *testing.T) {
	s := plan.Setting{WAN: line(), Clients: []plan.Client{{Site: "a"}},
		Placement: [][]wan.Site{{"a", "d", "b"}, {"d", "b", "c"}}, Load: plan.Load{Workload: updates{keys(t), 1}}}
	for _, c := range []struct {
		readers, partition int
		want               float64
	}{
		{0, 0, 70},  // d tells a
		{2, 0, 10},  // b does, and is the majority with a
		{1, 0, 10},  // the same: a alone is no majority
		{0, 1, 80},  // b is asked, and then all take 70
		{2, 1, 100}, // c is asked, and then c and d take 70
	} {
		s.Readers = c.readers
		txn := plan.Txn{Reads: []int{c.partition}, Writes: []int{c.partition}}
		if got, ok := plan.Latency(s, plan.STR, 0, txn); !ok || got != ms(c.want) {
			t.Errorf("%+v: %v, %v", c, got, ok)
		}
	}
}

// TestStale: what only reads, and may see what is a little old, reads the nearest copies of systems
// that have closed timestamps.
func TestStale(t *testing.T) {
	s := plan.Setting{WAN: line(), Clients: []plan.Client{{Site: "a"}},
		Placement: [][]wan.Site{{"b", "a", "c"}, {"c", "d", "b"}},
		Load:      plan.Load{Workload: updates{keys(t), 1}, Stale: true}}
	near, far, both := plan.Txn{Reads: []int{0}}, plan.Txn{Reads: []int{1}}, plan.Txn{Reads: []int{1, 1}}
	write := plan.Txn{Reads: []int{0}, Writes: []int{0}}
	took := func(system plan.System, t plan.Txn) time.Duration {
		d, _ := plan.Latency(s, system, 0, t)
		return d
	}
	for _, system := range plan.Systems() {
		stale := []time.Duration{took(system, near), took(system, far), took(system, both), took(system, write)}
		s.Load.Stale = false
		toB := s.WAN.RTT("a", "b")
		want := []time.Duration{0, toB, 2 * toB, took(system, write)}
		if !strings.HasPrefix(string(system), "carousel") {
			want = []time.Duration{took(system, near), took(system, far), took(system, both), took(system, write)}
		}
		s.Load.Stale = true
		if !slices.Equal(stale, want) {
			t.Errorf("%s: reads take %v, want %v", system, stale, want)
		}
	}
}

// TestLost: a partition without a majority blocks what needs it, in systems that have it nowhere
// else; another copy leads; and no fast path is left that needs all three.
func TestLost(t *testing.T) {
	s := plan.Setting{WAN: line(), Clients: []plan.Client{{Site: "a"}, {Site: "d"}},
		Placement: [][]wan.Site{{"b", "a", "c"}, {"d"}}, Lost: "d",
		Load: plan.Load{Workload: updates{keys(t), 1}, Declared: true}}
	for system, want := range map[plan.System]bool{plan.Floor: false, plan.ReplicatedCommit: true, plan.Layered: false,
		plan.CarouselFast: false, plan.CarouselDirect: false, plan.TAPIR: false} {
		if got, ok := plan.Latency(s, system, 0, plan.Txn{Writes: []int{1}}); ok != want {
			t.Errorf("%s: a write to a partition that is lost: %v, %v", system, got, ok)
		}
	}
	rows, err := plan.Latencies(s, plan.CarouselFast)
	if err != nil {
		t.Fatal(err)
	}
	all := allOf(t, rows, plan.CarouselFast, plan.All)
	if all.Blocked < 0.4 || all.Blocked > 0.6 {
		t.Errorf("half of the transactions need the lost partition, and %v are blocked", all.Blocked)
	}
	for _, r := range rows {
		if r.Client == "d" {
			t.Errorf("a row for the client of a lost site: %+v", r)
		}
	}
	s.Placement, s.Lost = [][]wan.Site{{"b", "a", "c"}}, "b"
	fast, _ := plan.Latency(s, plan.CarouselFast, 0, plan.Txn{Writes: []int{0}})
	basic, _ := plan.Latency(s, plan.CarouselBasic, 0, plan.Txn{Writes: []int{0}})
	if want := ms(30); fast != want || basic != want { // a leads, c is the majority
		t.Errorf("without b: %v on the fast path, %v without; want %v", fast, basic, want)
	}
	if rows, err = plan.Latencies(s, plan.CarouselFast, plan.TAPIR); err != nil {
		t.Fatal(err)
	}
	for _, system := range []plan.System{plan.CarouselFast, plan.TAPIR} {
		if r := allOf(t, rows, system, plan.All); r.Fast != 0 || r.Blocked != 0 {
			t.Errorf("%s without one of three: %v on the fast path, %v blocked", system, r.Fast, r.Blocked)
		}
	}
}

// TestNothingIsBelowTheFloor in random networks, nor is anything slower whose keys are declared,
// unless it has to ask leaders then.
func TestNothingIsBelowTheFloor(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		s := randomSetting(r, keys(t))
		for _, system := range plan.Systems() {
			of := s
			if system.Whole() {
				of.Placement = make([][]wan.Site, len(s.Placement))
				for k := range of.Placement {
					of.Placement[k] = s.WAN.Sites()
				}
			}
			const rounding = 5 * time.Microsecond // of distances
			for n, txn := range s.Txns(0)[:5] {
				floor, _ := plan.Latency(of, plan.Floor, 0, txn)
				got, ok := plan.Latency(of, system, 0, txn)
				of.Load.Declared = true
				declared, _ := plan.Latency(of, system, 0, txn)
				of.Load.Declared = false
				if system.Level() == "snapshot" && len(txn.Writes) == 0 {
					continue // the floor is that of who sees the latest
				}
				if !ok || got < floor-rounding || declared < floor-rounding || declared > got && system != plan.CarouselBasic {
					t.Fatalf("%s, %v, transaction %d %+v: %v, declared %v, the floor is %v", system, of.Placement, n, txn, got,
						declared, floor)
				}
			}
		}
	}
}

func randomSetting(r *rand.Rand, k workload.Keys) plan.Setting {
	names := []wan.Site{"a", "b", "c", "d", "e", "f"}[:3+r.IntN(4)]
	m := wan.Uniform(ms(10), names...)
	type point struct{ x, y float64 }
	at := map[wan.Site]point{}
	for _, n := range names {
		at[n] = point{r.Float64() * 100, r.Float64() * 100}
	}
	for i, a := range names {
		for _, b := range names[:i] { // distances in the plane: no way round is shorter
			m = m.WithRTT(a, b, ms(math.Abs(at[a].x-at[b].x)+math.Abs(at[a].y-at[b].y)).Round(time.Microsecond))
		}
	}
	s := plan.Setting{WAN: m, Clients: plan.Everywhere(m), Load: plan.Load{Workload: workload.Retwis{Keys: k}, Txns: 5,
		Seed: r.Uint64()}}
	for range 1 + r.IntN(5) {
		var copies []wan.Site
		for _, i := range r.Perm(len(names))[:2+r.IntN(len(names)-1)] {
			copies = append(copies, names[i])
		}
		s.Placement = append(s.Placement, copies)
	}
	return s
}

// TestLocality: so many transactions stay in the partitions that are led at their site.
func TestLocality(t *testing.T) {
	s := ring(wan.Carousel(), updates{keys(t), 4})
	for _, locality := range []int{0, 50, 80, 100} {
		s.Load.Locality = locality
		rows, err := plan.Latencies(s, plan.CarouselFast)
		if err != nil {
			t.Fatal(err)
		}
		local := allOf(t, rows, plan.CarouselFast, plan.LocalReplica).Share * 100
		want := float64(locality) + float64(100-locality)*0.13 // three of five partitions, four times
		if local < want-3 || local > want+3 {
			t.Errorf("%d %% of local transactions: %.1f %% are", locality, local)
		}
	}
}

// TestBadSettings are refused by name.
func TestBadSettings(t *testing.T) {
	good := func() plan.Setting { return ring(wan.Carousel(), updates{keys(t), 1}) }
	for want, change := range map[string]func(s *plan.Setting){
		"Placement has 0 partitions":      func(s *plan.Setting) { s.Placement = nil },
		"partition 1 has 0 copies":        func(s *plan.Setting) { s.Placement[1] = nil },
		"partition 1 has two copies":      func(s *plan.Setting) { s.Placement[1][1] = s.Placement[1][0] },
		`copy's site "mars" is not in`:    func(s *plan.Setting) { s.Placement[1][1] = "mars" },
		"Readers is 9, and partition 0":   func(s *plan.Setting) { s.Readers = 9 },
		"Clients is empty":                func(s *plan.Setting) { s.Clients = nil },
		`client's site "mars" is not in`:  func(s *plan.Setting) { s.Clients[0].Site = "mars" },
		"weight of the client at us-west": func(s *plan.Setting) { s.Clients[0].Weight = -1 },
		`lost site "mars"`:                func(s *plan.Setting) { s.Lost = "mars" },
		"Load.Workload is missing":        func(s *plan.Setting) { s.Load.Workload = nil },
		"Load.Locality is 101":            func(s *plan.Setting) { s.Load.Locality = 101 },
		"Load.Txns is -1":                 func(s *plan.Setting) { s.Load.Txns = -1 },
		"the link": func(s *plan.Setting) {
			s.WAN = s.WAN.WithLink(wan.Path{From: "asia", To: "europe"}, wan.Link{Down: true})
		},
	} {
		s := good()
		change(&s)
		if _, err := plan.Latencies(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	if _, err := plan.Latencies(good(), "paxos"); err == nil || !strings.Contains(err.Error(), `unknown system "paxos"`) {
		t.Error(err)
	}
	for want, q := range map[string]plan.Search{
		"copies cannot be placed": {Setting: good(), Among: []wan.Site{"asia"}, Goal: plan.Goal{System: plan.TAPIR,
			Class: plan.All, Measure: plan.Mean}},
		`no class ""`: {Setting: good(), Goal: plan.Goal{System: plan.TAPIR, Measure: plan.Mean}},
	} {
		if _, err := q.Best(nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
}
