package engine

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/foresay/foresay/control"
)

// TestStatsOfDoomedRuns: what was asked on a wrong guess, and answered before
// that showed, tells nothing about how good a site's predictions are.
func TestStatsOfDoomedRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := mustCallSite(t, control.CallSiteConfig{Name: "/s/first", Effect: control.EffectNone})
		then := mustCallSite(t, control.CallSiteConfig{Name: "/s/then", Effect: control.EffectNone})
		got, err := Do(t.Context(), func(ctx context.Context) (int, error) {
			v, err := Perform(Predicting(ctx, 9), read(first, "a", 20*ms, val(1)))
			if err != nil {
				return 0, err
			}
			u, err := Perform(Predicting(ctx, 5), read(then, "of "+string(rune('0'+v.(int))), 5*ms, val(5+v.(int)/9)))
			if err != nil {
				return 0, err
			}
			return v.(int) + u.(int), nil
		})
		if err != nil || got != 6 {
			t.Fatal(got, err)
		}
		if st := first.Stats(); st.Right != 0 || st.Wrong != 1 {
			t.Errorf("the site of the wrong guess: %+v", st)
		}
		if st := then.Stats(); st.Calls != 2 || st.Right != 1 || st.Wrong != 0 {
			t.Errorf("the site of the call that was made twice, once on the wrong guess: %+v", st)
		}
	})
}
