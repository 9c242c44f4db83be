package traceanalysis_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/otlp"
	"github.com/foresay/foresay/internal/traceanalysis"
)

// Whatever spans say of their parents, kinds and times, a report comes out that says nothing
// impossible.
func TestRandomTraces(t *testing.T) {
	entries := 0
	for seed := range uint64(400) {
		chance := rand.New(rand.NewPCG(seed, 5))
		c, err := traceanalysis.New(traceanalysis.Options{MaxSpans: 1 + chance.IntN(60), Sample: 1 + chance.IntN(5),
			Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		for range 80 {
			s := spanOf(byte(1+chance.IntN(4)), byte(1+chance.IntN(20)), byte(chance.IntN(20)), otlp.Kind(chance.IntN(6)), "s",
				"Do", 0, 0)
			if chance.IntN(2) == 0 {
				s.Name = "Get"
			}
			s.Start += time.Duration(chance.IntN(20))
			s.End += time.Duration(chance.IntN(25))
			c.Add(s)
		}
		r := c.Report(0)
		entries += len(r.Entries)
		for _, e := range r.Entries {
			if e.Sampled < 1 || e.Sampled > e.Requests || e.WaitMS > e.Took.MeanMS+1e-9 || e.Took.P50MS > e.Took.P95MS ||
				len(e.Calls) == 0 && e.CallsPerRequest > 0 {
				t.Fatalf("seed %d: %+v", seed, e)
			}
			for i, rate := range e.Rates {
				if rate.Saved < -1e-9 || rate.Saved > 1 || rate.Extra < 0 || i > 0 && rate.Took.MeanMS > e.Rates[i-1].Took.MeanMS+
					1e-9 {
					t.Fatalf("seed %d: %+v", seed, e.Rates)
				}
			}
			for _, choice := range []*traceanalysis.Choice{e.Single, e.Together} {
				if choice != nil && (choice.Saved <= 0 || choice.MeanMS > e.Took.MeanMS) {
					t.Fatalf("seed %d: %+v", seed, choice)
				}
			}
			var b bytes.Buffer
			if err := e.WriteSVG(&b); err != nil || bytes.Contains(b.Bytes(), []byte("NaN")) {
				t.Fatalf("seed %d: %v: %s", seed, err, &b)
			}
		}
		if err := r.WriteText(io.Discard); err != nil {
			t.Fatal(err)
		}
	}
	if entries < 200 {
		t.Errorf("only %d kinds of request made calls: the spans are too random", entries)
	}
}
