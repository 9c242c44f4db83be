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
