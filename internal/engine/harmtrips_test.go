package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/control"
)

// TestHarmTrips: sites whose requests fail with speculation are tripped although each guess is
// right, in a canary and in mode on, and the log and the status say which requests, how much, and
// the interval.
func TestHarmTrips(t *testing.T) {
	for _, mode := range []control.Mode{control.ModeCanary, control.ModeOn} {
		t.Run(mode.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testHarmTrips(t, mode) })
		})
	}
}

func testHarmTrips(t *testing.T, mode control.Mode) {
	var log bytes.Buffer
	share := 0.0
	cfg := control.Config{Budget: 10, Retry: time.Hour, ControlShare: 0.1,
		Logger: slog.New(slog.NewTextHandler(&log, nil))}
	if mode == control.ModeCanary {
		share = 0.5
	}
	c := mustControl(t, cfg)
	guilty := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/a", Mode: mode, Share: share, Effect: control.EffectNone,
		Predictors: []control.Predictor{constant{"a"}}})
	innocent := callSiteCase(t, c, control.CallSiteConfig{Name: "/s/b", Mode: mode, Share: share,
		Effect:     control.EffectNone,
		Predictors: []control.Predictor{constant{"a"}}})
	calls := new(atomic.Int64)
	page := func(site *control.CallSite, name string, harmed bool) {
		ctx, r := c.Begin(t.Context(), name, "")
		_, err := Do(ctx, func(ctx context.Context) (int, error) {
			_, err := callCase(ctx, site, "u", ms, "a", calls)
			if err == nil && harmed && State(ctx).Speculative {
				err = errors.New("it looked at what it must not")
			}
			time.Sleep(ms / 10) // else a guess saves nothing
			return 0, err
		})
		r.End(err)
	}
	for i := range 4000 {
		page(guilty, "GET /bad", i%5 == 0)
		page(innocent, "GET /good", false)
	}
	status := c.Status()
	bad, good := status.CallSites[0], status.CallSites[1]
	if bad.State != control.StateTripped ||
		!strings.HasPrefix(bad.Reason, "GET /bad fails more often with speculation: ") ||
		!strings.Contains(bad.Reason, "(difference ") {
		t.Errorf("harmful site: %v: %q", bad.State, bad.Reason)
	}
	if good.State != control.StateActive {
		t.Errorf("harmless site: %v: %s", good.State, good.Reason)
	}
	if n := strings.Count(log.String(), fmt.Sprintf("reason=%q", bad.Reason)); n != 1 {
		t.Errorf("the log says the reason %d times:\n%s", n, &log)
	}
}
