package engine

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/control"
)

// comparing counts comparisons of predictions.
type comparing struct {
	instant
	comparisons int
}

func (f *comparing) Same(a, b any) bool  { f.comparisons++; return a == b }
func (f *comparing) Equal(p, a any) bool { f.comparisons++; return p == a }

// telling has digests besides: some are shared by two values, and some values have none.
type telling struct{ *comparing }

func (f telling) RequestDigest(context.Context) uint64 { return 1 }

func (f telling) ResponseDigest(v any) (digest uint64, ok bool) {
	n := v.(int)
	return uint64(n - n%10%2), n%1000 != 77
}

// TestManyPredictions: what many predictions of a call cost grows as their number, not as its
// square. Of equal ones each is kept once, if digests tell.
func TestManyPredictions(t *testing.T) {
	const n = 10_000
	var many []any
	for i := range n {
		many = append(many, i, i)
	}
	many = append(many, many[n:n+100]...) // some come again, much later
	actual := any(n - 1)
	plain, digested := &comparing{instant: instant{actual}}, &comparing{instant: instant{actual}}
	for name, tt := range map[string]struct {
		transport Transport
		counts    *comparing
		most      int // predictions kept
	}{
		"no digests": {plain, plain, n + 100},
		"digests":    {telling{digested}, digested, n},
	} {
		t.Run(name, func(t *testing.T) {
			site := mustCallSite(t, control.CallSiteConfig{Name: "/s/get", Effect: control.EffectNone})
			op := &Operation{CallSite: site, Identity: "x", CanSpeculate: true, Transport: tt.transport}
			if kept := len(op.collect(Predicting(t.Context(), many...))); kept < n || kept > tt.most {
				t.Errorf("%d predictions are kept, want %d to %d", kept, n, tt.most)
			}
			synctest.Test(t, func(t *testing.T) {
				tt.counts.comparisons = 0
				v, err := Do(t.Context(), func(ctx context.Context) (any, error) {
					return Perform(Predicting(ctx, many...), op)
				})
				if v != actual || err != nil {
					t.Errorf("got %v, %v", v, err)
				}
			})
			if most := 2 * (fewPredictions + 2) * n; tt.counts.comparisons > most {
				t.Errorf("%d comparisons of %d predictions, want at most %d", tt.counts.comparisons, n, most)
			}
		})
	}
}

// keeping counts in all how often operations are kept.
type keeping struct {
	fakeTransport
	kept *atomic.Int32
}

func (k *keeping) Keep() { k.kept.Add(1) }

// counting predicts zero and counts how often it is asked.
type counting struct{ asked atomic.Int32 }

func (c *counting) Predict(context.Context, any) []any { c.asked.Add(1); return []any{0} }
func (c *counting) Learn(context.Context, any, any)    {}

// TestKeep: an operation is kept, and predictors are asked, when a call is first
// made; a replay that finds it in the record needs neither.
func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var guess counting
		var kept, made atomic.Int32
		site := mustCallSite(t, control.CallSiteConfig{Name: "/s/get", Effect: control.EffectNone,
			Predictors: []control.Predictor{&guess}})
		got, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			sum := 0
			for i := range 3 {
				made.Add(1)
				took := time.Duration(10+i) * ms // no two answers come at one moment
				k := &keeping{fakeTransport{took, val(1)}, &kept}
				v, err := Perform(ctx, &Operation{CallSite: site, Identity: fmt.Sprint(i, sum), CanSpeculate: true, Transport: k})
				if err != nil {
					return 0, err
				}
				sum += v.(int)
			}
			return sum, nil
		})
		if got != 3 || err != nil {
			t.Fatal(got, err)
		}
		// Each run that goes on with an actual result finds one more call in the record.
		if want := int32(3 + 2 + 1); kept.Load() != want || guess.asked.Load() != want || made.Load() < 4*3 {
			t.Errorf("of %d operations %d were kept and %d predicted, want %d", made.Load(), kept.Load(), guess.asked.Load(),
				want)
		}
	})
}
