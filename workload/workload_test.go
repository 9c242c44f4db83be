package workload

import (
	"context"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func newRand() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// The frequencies of ranks must be those of the definition, summed up term by term.
func TestZipfAgreesWithItsDefinition(t *testing.T) {
	for _, n := range []uint64{1, 2, 3, 10, 1000} {
		for _, alpha := range []float64{0, 0.5, 0.75, 0.95, 1, 1.2, 2} {
			z, err := NewZipf(n, alpha)
			if err != nil {
				t.Fatal(err)
			}
			const draws = 200_000
			seen := make([]float64, n)
			r := newRand()
			for range draws {
				seen[z.Rank(r)]++
			}
			sum := 0.0
			for k := range n {
				sum += math.Pow(float64(k+1), -alpha)
			}
			got, want := 0.0, 0.0
			for k := range n {
				got += seen[k] / draws
				want += math.Pow(float64(k+1), -alpha) / sum
				if math.Abs(got-want) > 0.005 {
					t.Errorf("n %d, alpha %v: ranks up to %d have %.4f of the draws, want %.4f", n, alpha, k, got, want)
					break
				}
			}
		}
	}
}

func TestZipfOverManyKeys(t *testing.T) {
	z, err := NewZipf(10_000_000, 0.75)
	if err != nil {
		t.Fatal(err)
	}
	// The share of the first k ranks is about (k^(1-alpha) + zeta(alpha)*(1-alpha)) / (n^(1-alpha)
	// + ...): check one by the integral.
	sum, first := 0.0, 0.0
	for k := range 10_000_000 {
		sum += math.Pow(float64(k+1), -0.75)
		if k == 99_999 {
			first = sum
		}
	}
	const draws = 200_000
	hits := 0.0
	r := newRand()
	for range draws {
		if z.Rank(r) < 100_000 {
			hits++
		}
	}
	if got, want := hits/draws, first/sum; math.Abs(got-want) > 0.005 {
		t.Errorf("the first hundredth of the ranks has %.4f of the draws, want %.4f", got, want)
	}
}

func TestBadZipf(t *testing.T) {
	for _, tc := range []struct {
		n     uint64
		alpha float64
	}{{0, 1}, {1 << 60, 1}, {5, -1}, {5, math.NaN()}, {5, math.Inf(1)}} {
		if _, err := NewZipf(tc.n, tc.alpha); err == nil {
			t.Errorf("NewZipf(%d, %v) returned no error", tc.n, tc.alpha)
		}
	}
}

func TestStrewIsAPermutation(t *testing.T) {
	for _, n := range []uint64{1, 2, 3, 5, 64, 100, 4097} {
		seen := make([]bool, n)
		for x := range n {
			y := strew(x, n)
			if y >= n || seen[y] {
				t.Fatalf("of %d: %d goes to %d, which is out of range or taken", n, x, y)
			}
			seen[y] = true
		}
	}
}

func TestDistinctKeys(t *testing.T) {
	keys, err := Zipfian(12, 5) // nearly all draws give the same key
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 5, 12, 20} {
		got := distinct(keys, newRand(), n)
		seen := map[uint64]bool{}
		for _, k := range got {
			seen[k] = true
		}
		if want := min(n, 12); len(seen) != want || len(got) != want {
			t.Errorf("%d keys were asked for: got %v", n, got)
		}
	}
}

func TestRetwisHasItsMix(t *testing.T) {
	keys, err := Zipfian(1000, 0.75)
	if err != nil {
		t.Fatal(err)
	}
	const n = 100_000
	count := map[string]float64{}
	r := newRand()
	for range n {
		txn := Retwis{keys}.Next(r)
		count[txn.Name]++
		reads, writes := 0, 0
		for _, o := range txn.Ops {
			if o.Read {
				reads++
			}
			if o.Write {
				writes++
			}
		}
		want := map[string][2]int{"add-user": {1, 3}, "follow": {2, 2}, "post-tweet": {3, 5}}[txn.Name]
		if txn.ReadOnly() {
			if txn.Name != "load-timeline" || reads < 1 || reads > 10 {
				t.Fatalf("got %v", txn)
			}
		} else if reads != want[0] || writes != want[1] {
			t.Fatalf("%s has %d reads and %d writes, want %v", txn.Name, reads, writes, want)
		}
	}
	for name, want := range map[string]float64{"add-user": 0.05, "follow": 0.15, "post-tweet": 0.30,
		"load-timeline": 0.50} {
		if got := count[name] / n; math.Abs(got-want) > 0.01 {
			t.Errorf("%s has a share of %.3f, want %.2f", name, got, want)
		}
	}
}

func TestYCSBT(t *testing.T) {
	keys := Hotspot{N: 1000, Hot: 10, Chance: 0.9}
	w, err := NewYCSBT(YCSBT{Keys: keys, Ops: 8, ReadPercent: 25})
	if err != nil {
		t.Fatal(err)
	}
	r := newRand()
	reads, ops := 0.0, 0.0
	for range 20_000 {
		for _, o := range w.Next(r).Ops {
			if o.Read == o.Write {
				t.Fatalf("an operation %v reads and writes, or neither", o)
			}
			if o.Read {
				reads++
			}
			ops++
		}
	}
	if got := reads / ops; math.Abs(got-0.25) > 0.01 {
		t.Errorf("%.3f of the operations are reads, want 0.25", got)
	}
	for _, bad := range []YCSBT{{Ops: 1}, {Keys: keys}, {Keys: keys, Ops: 1001}, {Keys: keys, Ops: 1, ReadPercent: 101}} {
		if _, err := NewYCSBT(bad); err == nil {
			t.Errorf("NewYCSBT(%+v) returned no error", bad)
		}
	}
}

// noted is a store that notes what a program reads and writes. It fails when it is asked for a
// certain key.
type noted struct {
	reads, writes []string
	values        map[string]string
	fails         string
}

var errFails = errors.New("failure")

func (n *noted) Get(_ context.Context, key string) ([]byte, bool, error) {
	if key == n.fails {
		return nil, false, errFails
	}
	n.reads = append(n.reads, key)
	v, ok := n.values[key]
	return []byte(v), ok, nil
}

func (n *noted) Put(key string, value []byte) error {
	if key == n.fails {
		return errFails
	}
	n.writes = append(n.writes, key)
	n.values[key] = string(value)
	return nil
}

// TestProgramsUseTheirKeys: a program reads and writes what Keys has foretold, makes new values of
// what it has read, and ends with the error of a read or a write.
func TestProgramsUseTheirKeys(t *testing.T) {
	n := &noted{values: map[string]string{}}
	longer := func(was []byte) []byte { return append(was, 'x') }
	r := newRand()
	w := Mix{{Retwis{Hotspot{N: 20, Hot: 5, Chance: 0.5}}, 1}, {YCSBT{Hotspot{N: 20, Hot: 5, Chance: 0.5}, 4, 50}, 1}}
	for range 200 {
		txn := w.Next(r)
		before := maps.Clone(n.values)
		n.reads, n.writes = nil, nil
		if err := txn.Run(t.Context(), n, longer); err != nil {
			t.Fatal(err)
		}
		reads, writes := txn.Keys()
		if !slices.Equal(n.reads, reads) || !slices.Equal(n.writes, writes) || (len(writes) == 0) != txn.ReadOnly() {
			t.Fatalf("%v reads %v and writes %v, foretold are %v and %v", txn, n.reads, n.writes, reads, writes)
		}
		for _, o := range txn.Ops {
			want := before[Name(o.Key)]
			if o.Write && !o.Read {
				want = ""
			}
			if got := n.values[Name(o.Key)]; o.Write && got != want+"x" {
				t.Fatalf("%v: %d holds %q, and held %q", txn, o.Key, got, before[Name(o.Key)])
			}
		}
		for _, key := range slices.Concat(reads, writes) {
			if err := txn.Run(t.Context(), &noted{values: n.values, fails: key}, longer); !errors.Is(err, errFails) {
				t.Fatalf("%v cannot use %s, and ends with %v", txn, key, err)
			}
		}
	}
}

func TestHotspot(t *testing.T) {
	h := Hotspot{N: 1000, Hot: 10, Chance: 0.9}
	hot := map[uint64]bool{}
	for k := range h.Hot {
		hot[strew(k, h.N)] = true
	}
	hits := 0.0
	r := newRand()
	for range 50_000 {
		if hot[h.Draw(r)] {
			hits++
		}
	}
	if got := hits / 50_000; math.Abs(got-0.9) > 0.01 {
		t.Errorf("%.3f of the draws are hot, want 0.9", got)
	}
}

func BenchmarkZipf(b *testing.B) {
	z, err := NewZipf(10_000_000, 0.75)
	if err != nil {
		b.Fatal(err)
	}
	r := newRand()
	for b.Loop() {
		z.Rank(r)
	}
}
