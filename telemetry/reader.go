package telemetry

import (
	"sync"

	"github.com/foresay/foresay/control"
)

// reader adds up call sites of one name.
type reader struct {
	control     *control.Control
	instruments *instruments

	mu sync.Mutex
	// last is what each call site had counted when it was last read, and gone what those
	// had that are not the Control's any more: counters do not go back when a
	// connection is closed.
	last map[*control.CallSite]control.CallSiteStats
	gone map[string]control.CallSiteStats
}

// counters returns what was counted, by the call site's name.
func (r *reader) counters() map[string]control.CallSiteStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := make(map[*control.CallSite]control.CallSiteStats)
	for _, s := range r.control.CallSites() {
		now[s] = s.Stats()
	}
	for s, stats := range r.last {
		if _, here := now[s]; !here {
			r.gone[s.Config().Name] = plus(r.gone[s.Config().Name], stats)
		}
	}
	r.last = now
	out := make(map[string]control.CallSiteStats, len(now))
	for name, stats := range r.gone {
		out[name] = stats
	}
	for s, stats := range now {
		out[s.Config().Name] = plus(out[s.Config().Name], stats)
	}
	return out
}

// plus adds up what instruments show.
func plus(a, b control.CallSiteStats) control.CallSiteStats {
	return control.CallSiteStats{
		Calls: a.Calls + b.Calls, Plain: a.Plain + b.Plain, Right: a.Right + b.Right, Wrong: a.Wrong + b.Wrong,
		WouldBeRight: a.WouldBeRight + b.WouldBeRight, WouldBeWrong: a.WouldBeWrong + b.WouldBeWrong,
		SavedNanos: a.SavedNanos + b.SavedNanos, Wasted: a.Wasted + b.Wasted, WastedNanos: a.WastedNanos + b.WastedNanos,
		Shadows: a.Shadows + b.Shadows, Trips: a.Trips + b.Trips, Stalls: a.Stalls + b.Stalls,
	}
}

// gauge is what call sites of one name are like at one moment.
type gauge struct {
	judged, hits, breakEven float64 // breakEven is weighted by how many were judged
	extraLoad               float64
	states                  map[control.CallSiteState]int64
	modes                   map[control.Mode]int64
}

func gauges(s *control.Status) map[string]*gauge {
	out := make(map[string]*gauge)
	for i := range s.CallSites {
		site := &s.CallSites[i]
		g := out[site.Name]
		if g == nil {
			g = &gauge{states: make(map[control.CallSiteState]int64), modes: make(map[control.Mode]int64)}
			out[site.Name] = g
		}
		g.judged += site.Judged
		g.hits += site.HitRate * site.Judged
		g.breakEven += site.BreakEven * site.Judged
		g.extraLoad += site.ExtraLoad
		g.states[site.State]++
		g.modes[site.Mode]++
	}
	return out
}
