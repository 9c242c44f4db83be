package control

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestPaysAgain: what the log says of a fuse holds for more than a moment. A site is said to pay
// again only if it does, as surely as it was said not to, and a trip says what the status says.
func TestPaysAgain(t *testing.T) {
	for _, share := range []float64{0.3, 0.45, 0.49, 0.52, 0.6, 0.8} { // right of all; break-even is at 0.5
		t.Run(fmt.Sprint(share), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testPaysAgain(t, share) })
		})
	}
}

func testPaysAgain(t *testing.T, share float64) {
	chance := rand.New(rand.NewPCG(uint64(100*share), 1))
	c := mustControl(t, Config{Budget: 10})
	s, err := c.NewCallSite(CallSiteConfig{Name: "/s/a", Mode: ModeOn}, "")
	if err != nil {
		t.Fatal(err)
	}
	var paid time.Time // when it was said to pay again
	again, soon := 0, 0
	begun, lucky := time.Now(), true
	for time.Since(begun) < 2*time.Hour {
		right := share
		if lucky { // at first it is surely bad, so that it trips
			right = min(share, 0.1)
		}
		for range 5 {
			if s.trip.holds() {
				break
			}
			s.trip.probe()
			s.Engine().Counts().Sent.Add(1)
			if chance.Float64() < right {
				s.Engine().Counts().Right.Add(1)
				s.Engine().Counts().SavedNanos.Add(int64(10 * ms))
			} else {
				s.Engine().Counts().Wrong.Add(1)
				s.Engine().Counts().Wasted.Add(1)
				s.Engine().Counts().WastedNanos.Add(int64(10 * ms))
			}
		}
		now := time.Now()
		for _, e := range c.judgeAll(now, now.Add(-judgeEvery).UnixNano()) {
			lucky = false
			st := c.Status().CallSites[0]
			switch {
			case strings.HasSuffix(e.text, "pays again"):
				again++
				paid = now
				if st.State != StateActive || st.Reason != "" || st.HitRate < st.BreakEven {
					t.Errorf("pays again, and the status says %+v", st)
				}
			case strings.HasSuffix(e.text, "tripped"):
				if !paid.IsZero() && now.Sub(paid) <= time.Second {
					soon++
				}
				if reason := e.args[5]; st.State != StateTripped || st.Reason != reason ||
					!strings.Contains(st.Reason, fmt.Sprintf("break-even of %.0f %%", 100*st.BreakEven)) {
					t.Errorf("the log says %v, the status %q, break-even %v", reason, st.Reason, st.BreakEven)
				}
			}
		}
		time.Sleep(judgeEvery)
	}
	if soon > 0 || share < 0.4 && again > 0 || share > 0.55 && again == 0 {
		t.Errorf("paid again %d times, and tripped within the second %d times", again, soon)
	}
}
