package synthetic_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/foresay/foresay/workload/synthetic"
)

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0)) }

// small is a workload of so few keys that each is drawn often.
func small() synthetic.Client {
	return synthetic.Client{Config: synthetic.Config{Keys: 4, LocalPercent: 80, HotPercent: 90, Population: 40,
		LocalHot: 10, RemoteHot: 5, ValueBytes: 16}, Own: 7, Others: []int{1, 3, 12}}
}

// TestPaper: the numbers of Figure 3 and Table 1, and that they are in bounds.
func TestPaper(t *testing.T) {
	for name, hot := range map[string][2]uint64{"low-low": {30_000, 15_000}, "high-low": {1000, 15_000},
		"low-high": {30_000, 500}, "high-high": {1000, 500}} {
		c, err := synthetic.Named(name)
		if err != nil || c.Check() != nil {
			t.Fatal(name, err, c.Check())
		}
		if got := [2]uint64{c.LocalHot, c.RemoteHot}; got != hot || c.Keys != 10 || c.Population != 1_000_000 {
			t.Errorf("%s is %+v, want hotspots of %v", name, c, hot)
		}
	}
	for keys, hot := range map[int]uint64{10: 1000, 20: 4000, 40: 25_000, 100: 100_000, 200: 400_000} {
		c, err := synthetic.Wide(keys)
		if err != nil || c.Check() != nil {
			t.Fatal(keys, err, c.Check())
		}
		if c.Keys != keys || c.LocalHot != hot || c.RemoteHot != hot {
			t.Errorf("%d keys: %+v, want hotspots of %d", keys, c, hot)
		}
		txn := synthetic.Client{Config: c, Own: 0, Others: []int{1}}.Next(newRand(1))
		if got := len(slices.Compact(slices.Sorted(slices.Values(txn.Keys)))); got != keys {
			t.Errorf("%d distinct keys, want %d", got, keys)
		}
	}
}

// TestDraws: keys are distinct, each of the use of its partition, and their frequencies are those
// of the definition. The numbers of a hotspot are found by their frequency: they are strewn.
func TestDraws(t *testing.T) {
	c := small()
	if err := c.Check(); err != nil {
		t.Fatal(err)
	}
	const txns = 50_000
	r, again := newRand(1), newRand(1)
	count := map[string]int{}
	byPartition := map[int]float64{}
	for range txns {
		txn := c.Next(r)
		if !slices.Equal(txn.Keys, c.Next(again).Keys) {
			t.Fatal("a seed does not repeat the keys")
		}
		if len(slices.Compact(slices.Sorted(slices.Values(txn.Keys)))) != c.Keys {
			t.Fatalf("keys %v, want %d distinct ones", txn.Keys, c.Keys)
		}
		for _, key := range txn.Keys {
			p, ok := synthetic.Home(key)
			if !ok || strings.HasPrefix(key, "l/") != (p == c.Own) {
				t.Fatalf("%s is at home in %d, %v", key, p, ok)
			}
			byPartition[p]++
			count[key]++
		}
	}
	// Partitions are drawn apart from numbers: chi-square, 3 degrees of freedom, one in a thousand.
	chi := 0.0
	for p, share := range map[int]float64{7: 0.8, 1: 0.2 / 3, 3: 0.2 / 3, 12: 0.2 / 3} {
		want := share * txns * float64(c.Keys)
		chi += (byPartition[p] - want) * (byPartition[p] - want) / want
	}
	if chi > 16.27 || len(byPartition) != 4 {
		t.Errorf("partitions %v, chi-square %.1f", byPartition, chi)
	}
	for p, hot := range map[string]uint64{"l/7/": c.LocalHot, "r/3/": c.RemoteHot} {
		var counts []int
		for key, n := range count {
			if strings.HasPrefix(key, p) {
				counts = append(counts, n)
			}
		}
		slices.Sort(counts)
		if uint64(len(counts)) != c.Population {
			t.Errorf("%s: %d keys are drawn, want %d", p, len(counts), c.Population)
		}
		// Drawing without repetition favours cold keys, and a little only as long as transactions are
		// small against the hotspot; the next test has the exact share. All hot keys are alike.
		cold, hots := counts[:c.Population-hot], counts[c.Population-hot:]
		if hots[0] < 10*cold[len(cold)-1] || float64(hots[len(hots)-1]) > 1.2*float64(hots[0]) {
			t.Errorf("%s: the hotspot's keys are drawn %v times, the others %v", p, hots, cold)
		}
	}
}

// TestHotShare: nine of ten keys are of the hotspot, with the paper's numbers.
func TestHotShare(t *testing.T) {
	config := synthetic.Paper(synthetic.High, synthetic.High)
	c := synthetic.Client{Config: config, Own: 0, Others: []int{1}}
	r := newRand(2)
	const txns = 40_000
	count := map[string]int{}
	for range txns {
		for _, key := range c.Next(r).Keys {
			count[key]++
		}
	}
	hot, all := map[byte]float64{}, map[byte]float64{}
	keys := map[byte]uint64{}
	for key, n := range count {
		use := key[0]
		all[use] += float64(n)
		if n > 10 { // a cold key is drawn 0.03 times, a hot one about 300 or 150 times
			hot[use] += float64(n)
			keys[use]++
		}
	}
	for use, want := range map[byte]uint64{'l': config.LocalHot, 'r': config.RemoteHot} {
		// 320,000 and 80,000 draws: five standard deviations, and what distinct keys take.
		got := hot[use] / all[use]
		if bound := 5*math.Sqrt(0.9*0.1/all[use]) + 0.001; math.Abs(got-0.9) > bound || keys[use] != want {
			t.Errorf("%c: %.4f of the draws are of %d hot keys, want 0.9 (+- %.4f) of %d", use, got, keys[use], bound, want)
		}
	}
}

// begun is a transaction of a store: its writes are there for itself only. It fails at a key.
type begun struct {
	memory
	writes memory
	fails  string
}

var errFails = errors.New("failure")

func (b begun) Get(ctx context.Context, key string) ([]byte, bool, error) {
	if key == b.fails {
		return nil, false, errFails
	}
	if v, ok := b.writes[key]; ok {
		return v, true, nil
	}
	return b.memory.Get(ctx, key)
}

func (b begun) Put(key string, value []byte) error {
	if key == b.fails {
		return errFails
	}
	return b.writes.Put(key, value)
}

// TestUpdatesAreCounted: programs update their keys and no others, and a lost update is noticed.
func TestUpdatesAreCounted(t *testing.T) {
	c, store := small(), memory{}
	r := newRand(3)
	const txns = 500
	for range txns {
		txn := c.Next(r)
		tx := begun{store, memory{}, ""}
		if err := txn.Run(t.Context(), tx); err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(maps.Keys(tx.writes)); !slices.Equal(got, slices.Sorted(slices.Values(txn.Keys))) {
			t.Fatalf("%v are written, want %v", got, txn.Keys)
		}
		for key, v := range tx.writes {
			if len(v) != c.ValueBytes {
				t.Fatalf("%s gets %d bytes, want %d", key, len(v), c.ValueBytes)
			}
			store[key] = v
		}
	}
	keys := slices.Collect(maps.Keys(store))
	if err := synthetic.Check(t.Context(), store, keys, txns*uint64(c.Keys)); err != nil {
		t.Error(err)
	}
	txn := c.Next(r)
	first, second := begun{store, memory{}, ""}, begun{store, memory{}, ""}
	if err := errors.Join(txn.Run(t.Context(), first), txn.Run(t.Context(), second)); err != nil {
		t.Fatal(err)
	}
	maps.Copy(store, first.writes)
	maps.Copy(store, second.writes) // has not seen the first
	keys = slices.Collect(maps.Keys(store))
	if err := synthetic.Check(t.Context(), store, keys, (txns+2)*uint64(c.Keys)); err == nil {
		t.Error("nobody noticed that a transaction's updates are lost")
	}
	for _, key := range txn.Keys {
		if err := txn.Run(t.Context(), begun{store, memory{}, key}); !errors.Is(err, errFails) {
			t.Errorf("%s cannot be read, and the transaction ends with %v", key, err)
		}
	}
	store[keys[0]] = []byte("short")
	if err := synthetic.Check(t.Context(), store, keys, 0); err == nil || !strings.Contains(err.Error(), "holds 5 bytes") {
		t.Errorf("a damaged value: %v", err)
	}
}

func TestBadInput(t *testing.T) {
	for _, c := range []struct {
		change func(*synthetic.Client)
		want   string
	}{
		{func(c *synthetic.Client) { c.Keys = 0 }, "Config.Keys is 0 (want 1 to 1000)"},
		{func(c *synthetic.Client) { c.Keys = 1001 }, "Config.Keys is 1001"},
		{func(c *synthetic.Client) { c.Population = 7 }, "Config.Population is 7 (want 8"},
		{func(c *synthetic.Client) { c.Population = 1 << 60 }, "Config.Population is"},
		{func(c *synthetic.Client) { c.LocalHot = 3 }, "Config.LocalHot is 3 (want 4 to 36"},
		{func(c *synthetic.Client) { c.RemoteHot = 37 }, "Config.RemoteHot is 37 (want 4 to 36"},
		{func(c *synthetic.Client) { c.LocalPercent = -1 }, "Config.LocalPercent is -1 (want 0 to 100)"},
		{func(c *synthetic.Client) { c.HotPercent = 101 }, "Config.HotPercent is 101"},
		{func(c *synthetic.Client) { c.ValueBytes = 7 }, "Config.ValueBytes is 7 (want 8"},
		{func(c *synthetic.Client) { c.Own = -1 }, "Client.Own is -1"},
		{func(c *synthetic.Client) { c.Others = nil }, "Client.Others is empty"},
		{func(c *synthetic.Client) { c.Others = []int{7} }, "Client.Others has 7"},
	} {
		x := small()
		c.change(&x)
		if err := x.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	x := small()
	x.LocalPercent, x.Others = 100, nil
	if err := x.Check(); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"", "low", "low-", "middle-low", "low-low-low"} {
		if _, err := synthetic.Named(name); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", name)) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := synthetic.Wide(30); err == nil {
		t.Error("Table 1 has transactions of 30 keys")
	}
	for _, key := range []string{"", "l", "l/", "l/1", "l/-1/2", "l/x/2", "k/1/2", "ll/1/2"} {
		if p, ok := synthetic.Home(key); ok {
			t.Errorf("%q is at home in %d", key, p)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	c := synthetic.Client{Config: synthetic.Paper(synthetic.Low, synthetic.Low), Own: 0, Others: []int{1, 2}}
	r := newRand(1)
	for b.Loop() {
		c.Next(r)
	}
}
