package randtest

import (
	"slices"
	"time"

	"github.com/foresay/foresay/wan"
)

// A process that stands still for longer than any lease: nothing that is sent to
// it or by it arrives meanwhile. The clocks of a client may have stood still with
// it, so that its leases last. Nothing is lost: the program comes to its end, with
// the results and the effects of the sequential execution.

// pausePercent is how many of the worlds with faults have a pause, and no other fault.
const pausePercent = 15

// pause has a process stand still in place of what else goes wrong.
func (sc *Scenario) pause() {
	if !sc.chance.percent(pausePercent, "pause") {
		return
	}
	if f := sc.standStill(sc.faults[0].server); f.event == eventConfirmLost {
		f.event = eventAnswered
	}
	if sc.chance.percent(50, "clocks stand still") {
		sc.knobs.Lease = time.Minute
	}
}

// standStill has a process stand still, at whatever server it shows.
func (sc *Scenario) standStill(server int) *fault {
	sc.faults = sc.faults[:1]
	f := sc.faults[0]
	f.kind, f.server = faultPause, server
	f.lasts = time.Duration(16_000+sc.chance.below(4_000, "pause lasts")) * time.Millisecond
	sc.knobs.Keepalive = false // else connections end
	return f
}

// onlyPauses reports whether nothing goes wrong but pauses.
func (sc *Scenario) onlyPauses() bool {
	return len(sc.faults) > 0 && !slices.ContainsFunc(sc.faults, func(f *fault) bool { return f.kind != faultPause })
}

// paused is the site of the process that a pause is of.
func (f *fault) paused() wan.Site {
	if f.oneWay {
		return clientSite
	}
	return siteOf(f.server)
}

// standStill has nothing arrive at a site, or from there, or ends that.
func (s *strikes) standStill(site wan.Site, down bool) {
	sites := []wan.Site{clientSite}
	for i := range s.w.sc.knobs.Servers {
		sites = append(sites, siteOf(i))
	}
	for _, other := range sites {
		if other != site {
			s.w.net.SetDown(site, other, down)
			s.w.net.SetDown(other, site, down)
		}
	}
}
