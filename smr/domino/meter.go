package domino

import (
	"time"

	"github.com/foresay/foresay/clock"
)

// A meter measures the way to a node by probes and their echoes.
type meter struct {
	delay *clock.Delay
	trips *clock.Window // round trips

	// Of the newest echo, by the own clock.
	sent, received time.Duration
}

// maxTrips bounds the round trips that are kept.
const maxTrips = 1024

func newMeter(o Options) *meter {
	delay, err := clock.NewDelay(clock.DelayConfig{Window: o.Window, Percentile: o.Percentile})
	if err != nil {
		panic(err) // the options were validated
	}
	trips, err := clock.NewWindow(o.Window, maxTrips)
	if err != nil {
		panic(err)
	}
	return &meter{delay: delay, trips: trips}
}

// add takes an echo. One that was held up behind another one says nothing about the way: when a
// segment is lost, all that follows it arrives with it. A loss is one measurement, and not as many
// as there are probes in the time that it takes to notice; else one in fifty thousand decides about
// the whole window.
func (m *meter) add(now time.Duration, e echo) {
	held := m.held(e.Sent, now)
	m.sent, m.received = e.Sent, now
	if held {
		return
	}
	m.delay.Add(clock.Probe{Sent: e.Sent, Peer: e.Now, Received: now})
	if trip := now - e.Sent; trip >= 0 {
		m.trips.Add(now, trip)
	}
}

// held reports whether an echo was held up: it follows the one before much closer than their probes
// did. If a clock was set, it was not.
func (m *meter) held(sent, received time.Duration) bool {
	apart := received - m.received
	return apart >= 0 && apart*4 < sent-m.sent
}

// arrival returns the delay of the way there at the percentile of the options, by the peer's clock.
func (m *meter) arrival(now time.Duration) (time.Duration, bool) { return m.delay.OneWay(now) }

// round returns the round trip at the percentile of the options.
func (m *meter) round(now time.Duration) (time.Duration, bool) { return m.delay.RoundTrip(now) }

// usual returns the median round trip. Ways are compared by it: what the percentiles of several
// links add up to is met by no command, and how much too high it is depends on how many links a way
// has.
func (m *meter) usual(now time.Duration) (time.Duration, bool) { return m.trips.Percentile(now, 0.5) }
