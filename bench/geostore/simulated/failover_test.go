package simulated

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/storesim"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/plan"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/workload"
)

// TestFailover: whatever is killed, clients elsewhere go on, nothing that they were told is lost,
// and what needs all three copies of a partition is not on the fast path any more. They go on when
// a site comes back, too.
func TestFailover(t *testing.T) {
	for _, s := range plan.Systems() {
		if _, ok := storesim.ProtocolOf(s); !ok {
			continue
		}
		all := victims(s)
		if s == plan.STR {
			all = append(all, returning)
		}
		for _, v := range all {
			t.Run(string(s)+"/"+string(v), func(t *testing.T) {
				t.Parallel()
				f, err := failover{system: s, victim: v, in: fiveSites(), seed: 2, alpha: 0.5, warm: time.Second,
					turn: 6 * time.Second, lasting: 2 * time.Second, clients: 2}.run()
				if err != nil {
					t.Fatal(err)
				}
				if f.lost+f.blocked+f.locked > 0 || f.acknowledged < 50 || len(f.up.took) < 10 || len(f.gone.took) < 10 {
					t.Errorf("%+v", f)
				}
				most := 3 * time.Second
				if s == plan.STR || s == plan.ClockSIRep {
					most = 2500 * time.Millisecond // a leader is elected, which does without the one before
				}
				if f.none > f.one || f.one > most {
					t.Errorf("nobody commits for %v, somebody does not for %v", f.none, f.one)
				}
				if again := len(f.back.took); (v == returning) != (again >= 10) {
					t.Errorf("%d are committed since the site is back", again)
				}
				if v == wholeSite && (f.gone.hit.committed == 0 || f.gone.hit.fast > 0) {
					t.Errorf("of transactions about partitions with a lost copy %+v are on the fast path", f.gone.hit)
				}
			})
		}
	}
}

// TestSiteLost: when a whole site of STR's is lost, with leaders of partitions, no client elsewhere
// waits for much longer than an election takes. What was on its way then waits for a decision of
// its first shard beside that.
func TestSiteLost(t *testing.T) {
	const seeds = 12
	var gaps []time.Duration
	for seed := range uint64(seeds) {
		f, err := failover{system: plan.STR, victim: wholeSite, in: fiveSites(), seed: seed + 1, alpha: 0.5,
			warm: time.Second, turn: 6 * time.Second, lasting: 2 * time.Second, clients: 2}.run()
		if err != nil {
			t.Fatal(err)
		}
		if f.lost+f.blocked+f.locked > 0 || f.acknowledged < 50 {
			t.Errorf("seed %d: %+v", seed+1, f)
		}
		gaps = append(gaps, f.one)
	}
	slices.Sort(gaps)
	if gaps[seeds*3/4] > 1600*time.Millisecond || gaps[seeds-1] > 1900*time.Millisecond {
		t.Errorf("the gaps of the clients that wait longest are %v", gaps)
	}
}

// TestSiteLostOfNine: with nine sites, leaders at sites late in the layout's order and keys that
// many want, somebody waits for a transaction of the lost site's. It is finished soon.
func TestSiteLostOfNine(t *testing.T) {
	for _, s := range []plan.System{plan.STR, plan.ClockSIRep} {
		f, err := failover{system: s, victim: wholeSite, in: nineSites(), seed: 1, alpha: zipfAlpha,
			warm: 3 * time.Second, turn: 10 * time.Second, lasting: time.Second, clients: 6}.run()
		if err != nil {
			t.Fatal(err)
		}
		if f.lost+f.blocked+f.locked > 0 || f.acknowledged < 5000 || f.one > 2500*time.Millisecond {
			t.Errorf("%s: of %d, %d are lost and %d blocked; a client elsewhere waits for %v", s, f.acknowledged, f.lost,
				f.blocked, f.one)
		}
	}
}

// TestGapOfMany: with many clients one of them meets all that adds up. It has waited in vain for a
// partition without a leader, and is to go on at once when there is one.
func TestGapOfMany(t *testing.T) {
	f, err := failover{system: plan.CarouselFast, victim: wholeSite, in: fiveSites(), seed: 3, alpha: zipfAlpha,
		warm: 3 * time.Second, turn: 6 * time.Second, lasting: 5 * time.Second, clients: 20}.run()
	if err != nil {
		t.Fatal(err)
	}
	if f.one > 3*time.Second || f.lost+f.blocked > 0 {
		t.Errorf("one of 80 clients commits nothing for %v, %d are lost, %d blocked", f.one, f.lost, f.blocked)
	}
}

// TestLossIsSeen: a key that holds less than its writers were told is a loss, and one that holds
// more than they can have written is an error.
func TestLossIsSeen(t *testing.T) {
	k := &killing{population: &population{Nodes: &storesim.Nodes{}}, fell: &fell{}, told: map[uint64]int{7: 3},
		doubt: map[uint64]int{7: 1}}
	holds := func(n uint64) result {
		v := store.Value{}
		for range n {
			v.Bytes = counted(v.Bytes)
		}
		return result{read: map[store.Key]store.Value{store.Key(workload.Name(7)): v}}
	}
	for n, lost := range []int{3, 5, 6, 6, 6} { // in all, when it holds 0, 1 and so on
		if k.judge(holds(uint64(n)), []uint64{7}); k.lost != lost {
			t.Errorf("when it holds %d, %d are lost in all, want %d", n, k.lost, lost)
		}
	}
}

// TestTooManyWritesAreAnError, of a key that was written more often than anybody can have.
func TestTooManyWritesAreAnError(t *testing.T) {
	nodes, err := storesim.NewNodes(storesim.NodesConfig{System: plan.TAPIR, Placement: [][]wan.Site{{"a", "b", "c"}},
		Sim: sim.Config[store.Message]{WAN: wan.Uniform(time.Millisecond, "a", "b", "c")}})
	if err != nil {
		t.Fatal(err)
	}
	k := &killing{population: &population{Nodes: nodes}, fell: &fell{}, told: map[uint64]int{7: 1}}
	twice := store.Value{Bytes: counted(counted(nil))}
	k.judge(result{read: map[store.Key]store.Value{"k7": twice}}, []uint64{7})
	if err := k.Err(); err == nil || !strings.Contains(err.Error(), "key 7 was written 2 times") {
		t.Error(err)
	}
}
