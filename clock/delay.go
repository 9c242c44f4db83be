package clock

import (
	"fmt"
	"time"
)

// A Probe is a measurement of the way to a peer and back: the own clock when a message was sent and
// when its answer came, the peer's when it answered, which it did at once.
type Probe struct {
	Sent     time.Duration // own clock
	Peer     time.Duration // the peer's
	Received time.Duration // own
}

// DelayConfig is what a Delay is made from. A zero value of a field is its default.
type DelayConfig struct {
	Window     time.Duration // 0 is a second
	Percentile float64       // in (0, 1]; 0 is 0.95
	// Step is how far the two clocks move against each other at once, beyond what delays can
	// explain, for the window to be dropped; 0 is 5 ms.
	Step time.Duration
	// MaxSamples bounds the probes in the window; 0 is 1024.
	MaxSamples int
}

// A Delay estimates how long messages to one peer take, in nanoseconds [Thesis §4.3.4]. The one-way
// delay is what the peer's clock shows at the arrival less what the own one shows at the sending:
// whatever the two clocks differ by is part of it, which is right for who asks what the peer's
// clock will show.
type Delay struct {
	config DelayConfig
	oneWay *Window
	trips  *Window
	best   reading // of the shortest trip in the window, or about
}

// A reading is how the clocks differ by one probe.
type reading struct {
	at     time.Duration
	offset time.Duration // of the peer's clock, off by up to half of the trip
	trip   time.Duration
}

// fewTrips is how many trips it takes to know about how long one is without queues.
const fewTrips = 32

// NewDelay returns an estimator without measurements.
func NewDelay(c DelayConfig) (*Delay, error) {
	if c.Window == 0 {
		c.Window = time.Second
	}
	if c.Percentile == 0 {
		c.Percentile = 0.95
	}
	if c.Step == 0 {
		c.Step = 5 * time.Millisecond
	}
	if c.MaxSamples == 0 {
		c.MaxSamples = 1024
	}
	if !(c.Percentile > 0 && c.Percentile <= 1) {
		return nil, fmt.Errorf("clock: a percentile of %v is not in (0, 1]", c.Percentile)
	}
	if c.Step < 0 {
		return nil, fmt.Errorf("clock: a step of %v is negative", c.Step)
	}
	d := &Delay{config: c}
	var err error
	if d.oneWay, err = NewWindow(c.Window, c.MaxSamples); err != nil {
		return nil, err
	}
	d.trips, err = NewWindow(c.Window, c.MaxSamples)
	return d, err
}

// Add takes a probe whose answer has just come. It returns true if a clock has stepped, the own one
// or the peer's, so that the probes before this one tell nothing and are dropped. A probe during
// which the own clock was set back tells nothing itself.
func (d *Delay) Add(p Probe) (stepped bool) {
	trip := p.Received - p.Sent
	if trip < 0 {
		d.oneWay.Drop()
		d.trips.Drop()
		return true
	}
	r := reading{at: p.Received, offset: p.Peer - p.Sent - trip/2, trip: trip}
	if stepped = d.steps(r); stepped {
		d.oneWay.Drop()
	}
	if age := r.at - d.best.at; d.oneWay.Len(r.at) == 0 || r.trip <= d.best.trip || age >= d.config.Window {
		d.best = r
	}
	d.oneWay.Add(r.at, p.Peer-p.Sent)
	d.trips.Add(r.at, trip)
	return stepped
}

// steps reports whether the clocks have moved against each other. By a probe, their offset is known
// up to half of what the way there and the way back differ by. A queue on one of the ways makes the
// trip longer by its length, and moves the offset by half of that. What moves it by more than the
// queues of two probes and Step is a clock. How long a trip is, the peer's clock does not change:
// trips are kept.
//
// How short a trip without queues is, is a guess from the trips of the window. With queues as long
// as the ways, one window in thousands is dropped for nothing.
func (d *Delay) steps(r reading) bool {
	if d.oneWay.Len(r.at) == 0 {
		return false
	}
	var shortest time.Duration // without queues
	if d.trips.Len(r.at) >= fewTrips {
		least, _ := d.trips.Percentile(r.at, 0)
		median, _ := d.trips.Percentile(r.at, 0.5)
		shortest = max(0, least-(median-least)) // no probe need have met no queue
	}
	shortest = min(shortest, r.trip)
	queues := (r.trip - shortest + max(0, d.best.trip-shortest)) / 2
	moved := r.offset - d.best.offset
	return max(moved, -moved) >= d.config.Step+queues
}

// OneWay returns by how much the peer's clock, when a message arrives, will be beyond the own one,
// when it is sent: a message sent now arrives at now plus OneWay by the peer's clock. ok is false
// if there is no measurement in the window.
func (d *Delay) OneWay(now time.Duration) (delay time.Duration, ok bool) {
	return d.oneWay.Percentile(now, d.config.Percentile)
}

// RoundTrip returns how long a message and its answer take.
func (d *Delay) RoundTrip(now time.Duration) (delay time.Duration, ok bool) {
	return d.trips.Percentile(now, d.config.Percentile)
}

// Samples returns how many probes are in the window.
func (d *Delay) Samples(now time.Duration) int { return d.oneWay.Len(now) }
