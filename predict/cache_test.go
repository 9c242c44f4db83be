package predict

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/foresay/foresay/control"
)

// held returns how many entries a cache has, and what they take.
func held[V sized](c *cache[V]) (entries int, bytes int64) {
	c.c.CleanUp()
	for k, v := range c.c.All() {
		entries++
		bytes += sizeOfEntry(k, v)
	}
	return entries, bytes
}

// TestBounds: however many entries and of whatever sizes, both bounds hold, and
// what there is room for is kept.
func TestBounds(t *testing.T) {
	for _, tt := range []struct {
		name    string
		entries int
		bytes   Bytes
		largest int // response
		filled  float64
	}{
		{"entries", 50, 1 << 20, 10, 0.9},
		{"one entry", 1, 1 << 20, 10, 1},
		{"bytes", 1000, 100_000, 2000, 0.5},
		{"more entries than bytes", math.MaxInt, 100_000, 2000, 0.5},
		{"responses that are too large", 100, 100_000, 200_000, 0.2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			type answer struct {
				n    int
				text string
			}
			rnd, text := rand.New(rand.NewPCG(1, 2)), strings.Repeat("x", tt.largest)
			last, err := NewLast(LastConfig[string]{Key: identity, MaxEntries: tt.entries, MaxBytes: tt.bytes})
			if err != nil {
				t.Fatal(err)
			}
			table := mustTable(t, TableConfig[string]{Key: identity, MaxEntries: tt.entries, MaxBytes: tt.bytes})
			for i := range 3000 {
				key, response := fmt.Sprint("key", rnd.IntN(2000)), answer{i, text[:rnd.IntN(tt.largest)]}
				for _, p := range []Predictor{last, table} {
					p.Learn(t.Context(), key, response)
					p.Predict(t.Context(), key)
				}
			}
			check := func(what string, entries int, bytes int64) {
				if entries > tt.entries || bytes > int64(tt.bytes) {
					t.Errorf("%s: %d entries of %d bytes; want %d of %d at most", what, entries, bytes, tt.entries, int64(tt.bytes))
				}
				if least := tt.filled; float64(entries) < least*float64(tt.entries) && float64(bytes) < least*float64(tt.bytes) {
					t.Errorf("%s: only %d entries of %d bytes, of %d and %d", what, entries, bytes, tt.entries, int64(tt.bytes))
				}
			}
			entries, bytes := held(last.values)
			check("last value", entries, bytes)
			entries, bytes = held(table.entries)
			check("table", entries, bytes)
		})
	}
}

// TestTooLarge: a response for which there is no room makes the key unknown, for
// the one that was known is not the last any more. A table keeps what it has.
func TestTooLarge(t *testing.T) {
	last, err := NewLast(LastConfig[string]{Key: identity, MaxBytes: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	table := mustTable(t, TableConfig[string]{Key: identity, MaxBytes: 10_000, MinShare: 0.1, Guesses: 9})
	large := strings.Repeat("x", 20_000)
	half := strings.Repeat("y", 6000)
	for _, p := range []Predictor{last, table} {
		for _, response := range []string{"small", "small", half, large} {
			p.Learn(t.Context(), "k", response)
		}
	}
	if got := last.Predict(t.Context(), "k"); got != nil {
		t.Errorf("the last value is %.20v", got)
	}
	if got := table.Predict(t.Context(), "k"); len(got) != 2 || got[0] != "small" || got[1] != half {
		t.Errorf("the table predicts %.20v", got)
	}
	table.Learn(t.Context(), "k", half+"z") // both halves do not fit
	if got := table.Predict(t.Context(), "k"); len(got) != 2 || entryOf(t, table, "k").sizeBytes() > 10_000 {
		t.Errorf("the table predicts %.20v, of %d bytes", got, entryOf(t, table, "k").sizeBytes())
	}
}

// TestNoGoroutines: predictors start none, in use and when they are dropped, and
// are the same inside and outside of a bubble.
func TestNoGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	use := func(p Predictor) {
		for i := range 1500 {
			p.Learn(context.Background(), fmt.Sprint(i%700), i)
			p.Predict(context.Background(), fmt.Sprint(i%500))
		}
	}
	outer := []Predictor{LastValue(identity, 100), mustTable(t, TableConfig[string]{Key: identity, MaxEntries: 100})}
	for _, p := range outer {
		use(p)
	}
	synctest.Test(t, func(t *testing.T) {
		inner := []Predictor{LastValue(identity, 100), mustTable(t, TableConfig[string]{Key: identity, MaxEntries: 100})}
		var wg sync.WaitGroup
		for _, p := range append(inner, outer...) {
			wg.Go(func() { use(p) })
			wg.Go(func() { use(p) })
		}
		wg.Wait()
	})
	// The bubble's own goroutine may take a moment to end.
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before && time.Now().Before(end); {
		runtime.Gosched()
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines, %d before", after, before)
	}
}

// TestMemory: a site with a predictor takes at most 16 KB besides what is cached.
func TestMemory(t *testing.T) {
	const n, most = 1000, 16 << 10
	kinds := map[string]func() Predictor{
		"constant":      func() Predictor { return Constant(wrapperspb.String("x")) },
		"last value":    func() Predictor { return LastValue(identity, 0) },
		"large":         func() Predictor { return LastValue(identity, 1_000_000) },
		"table":         func() Predictor { return mustTable(t, TableConfig[string]{Key: identity}) },
		"per principal": func() Predictor { return PerPrincipal(principal, 0, func() Predictor { return Constant(1) }) },
		"chain":         func() Predictor { return Chain(LastValue(identity, 0), Constant(1)) },
	}
	for name, kind := range kinds {
		sites := make([]*control.CallSite, n)
		before := heapBytes()
		for i := range sites {
			site, err := control.NewCallSite(control.CallSiteConfig{Name: "/pkg.Service/Method",
				Predictors: []control.Predictor{kind()}})
			if err != nil {
				t.Fatal(err)
			}
			sites[i] = site
		}
		empty := (heapBytes() - before) / n
		for _, site := range sites {
			for i := range 20 {
				site.Config().Predictors[0].Learn(t.Context(), "k", i%2)
				site.Config().Predictors[0].Predict(t.Context(), "k")
			}
		}
		used := (heapBytes() - before) / n
		t.Logf("%s: %d bytes for each site, %d with a key", name, empty, used)
		if empty > most || used > most {
			t.Errorf("%s: %d bytes for each site, and %d with a key, more than %d", name, empty, used, most)
		}
		runtime.KeepAlive(sites)
	}
}

func heapBytes() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
