package dash

import (
	"cmp"
	"slices"
	"time"

	"github.com/foresay/foresay/control"
)

const (
	// pointEvery is how far the points of the charts are apart.
	pointEvery = 2 * time.Second
	// callSiteEvery is after how many points there is one of each call site's chart.
	callSiteEvery = 5
	// maxCallSitePoints bounds the call sites that have charts: those that were busiest.
	maxCallSitePoints = 100
)

// point is what happened since the point before. Numbers are counts, unless they
// say otherwise.
type point struct {
	At         int64   `json:"t"` // Unix milliseconds
	Seconds    float64 `json:"s"` // since the point before
	Calls      int64   `json:"calls"`
	Right      int64   `json:"right"`
	Wrong      int64   `json:"wrong"`
	WouldRight int64   `json:"would_right"`
	WouldWrong int64   `json:"would_wrong"`
	SavedMs    float64 `json:"saved_ms"`
	Wasted     int64   `json:"wasted"`
	WastedMs   float64 `json:"wasted_ms"`
	ExtraLoad  float64 `json:"extra_load"`
	// CallSites comes with every fifth point and is about the time of all five.
	CallSites []callSitePoint `json:"sites,omitempty"`
}

// callSitePoint is how many predictions at a call site were or would have been right.
type callSitePoint struct {
	Name  string `json:"n"`
	Conn  string `json:"c,omitempty"`
	Right int64  `json:"r"`
	Wrong int64  `json:"w"`
}

// history makes points of what counters say.
type history struct {
	at    time.Time
	seen  map[callSiteKey]control.CallSiteStats
	count int
	sites map[callSiteKey]*callSitePoint // since the last points of call sites
}

// callSiteKey tells call sites apart. Those of one name on connections of one name are told
// apart by their order.
type callSiteKey struct {
	name, conn string
	order      int
}

// note returns the point of a status.
func (h *history) note(st control.Status) point {
	p := point{At: st.At.UnixMilli(), Seconds: st.At.Sub(h.at).Seconds(), ExtraLoad: st.ExtraLoad}
	seen := make(map[callSiteKey]control.CallSiteStats, len(st.CallSites))
	if h.sites == nil {
		h.sites = make(map[callSiteKey]*callSitePoint)
	}
	for i := range st.CallSites {
		s := &st.CallSites[i]
		k := callSiteKey{s.Name, s.Conn, 0}
		for _, twice := seen[k]; twice; _, twice = seen[k] {
			k.order++
		}
		seen[k] = s.Stats
		p.add(h.seen[k], s.Stats)
		h.site(k, h.seen[k], s.Stats)
	}
	h.at, h.seen = st.At, seen
	if h.count++; h.count%callSiteEvery == 0 {
		p.CallSites = h.busiest()
		h.sites = nil
	}
	return p
}

// grown returns by how much a counter grew. One that shrank began anew.
func grown(before, now int64) int64 {
	if now < before {
		return now
	}
	return now - before
}

func (p *point) add(a, b control.CallSiteStats) {
	p.Calls += grown(a.Calls, b.Calls) + grown(a.Plain, b.Plain)
	p.Right += grown(a.Right, b.Right)
	p.Wrong += grown(a.Wrong, b.Wrong)
	p.WouldRight += grown(a.WouldBeRight, b.WouldBeRight)
	p.WouldWrong += grown(a.WouldBeWrong, b.WouldBeWrong)
	p.SavedMs += float64(grown(a.SavedNanos, b.SavedNanos)) / 1e6
	p.Wasted += grown(a.Wasted, b.Wasted)
	p.WastedMs += float64(grown(a.WastedNanos, b.WastedNanos)) / 1e6
}

func (h *history) site(k callSiteKey, a, b control.CallSiteStats) {
	right := grown(a.Right, b.Right) + grown(a.WouldBeRight, b.WouldBeRight)
	wrong := grown(a.Wrong, b.Wrong) + grown(a.WouldBeWrong, b.WouldBeWrong)
	if right+wrong == 0 {
		return
	}
	sp := h.sites[k]
	if sp == nil {
		sp = &callSitePoint{Name: k.name, Conn: k.conn}
		h.sites[k] = sp
	}
	sp.Right += right
	sp.Wrong += wrong
}

// busiest returns the call sites with the most predictions.
func (h *history) busiest() []callSitePoint {
	out := make([]callSitePoint, 0, len(h.sites))
	for _, sp := range h.sites {
		out = append(out, *sp)
	}
	slices.SortFunc(out, func(a, b callSitePoint) int {
		return cmp.Or(cmp.Compare(b.Right+b.Wrong, a.Right+a.Wrong), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Conn, b.Conn))
	})
	return out[:min(len(out), maxCallSitePoints)]
}
