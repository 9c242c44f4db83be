package plansim

import (
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr/plan"
	"github.com/foresay/foresay/wan"
)

// A Comparison is a row of the model and what was measured.
type Comparison struct {
	plan.Row
	Measured time.Duration // the median of the calls
	// Low and High are between what the model expects. They are Row.Latency, but for the execution
	// by Domino and Mencius, which depends on what others do, and for Domino's timers.
	Low, High time.Duration
	// Claimed is false if the model says nothing: of Fast Paxos when commands collide.
	Claimed bool
}

// Off returns how far the measurement is from what the model expects, as a share of the model's
// latency, or of a millisecond if that is more; 0 if nothing is claimed.
func (c Comparison) Off() float64 {
	d := max(c.Low-c.Measured, c.Measured-c.High, 0)
	if !c.Claimed || d == 0 {
		return 0
	}
	return float64(d) / float64(max(c.Latency, time.Millisecond))
}

// Compare has the model and the simulator say what a protocol gives, in the order of
// plan.Latencies. Of links it takes the delays only.
func Compare(c Config) ([]Comparison, error) {
	c.Setting.WAN = Quiet(c.Setting.WAN)
	system := plan.System(c.Protocol.Name)
	rows, err := plan.Latencies(c.Setting, system)
	if err != nil {
		return nil, err
	}
	others := c.Setting
	others.Busy = true
	busy, err := plan.Latencies(others, system)
	if err != nil {
		return nil, err
	}
	measured, err := Measure(c)
	if err != nil {
		return nil, err
	}
	if len(measured) != len(rows) {
		return nil, fmt.Errorf("plansim: %d results for %d rows", len(measured), len(rows))
	}
	out := make([]Comparison, len(rows))
	for i, row := range rows {
		o := Comparison{Row: row, Measured: measured[i].Median(), Low: row.Latency, High: row.Latency,
			Claimed: !c.Setting.Busy || system != plan.FastPaxos}
		if system == plan.Domino || system == plan.DominoDirect {
			o.High += longest(c.Setting) / 100 // the grain of its replicas' timers
			if row.Until == plan.Durable {
				// if votes of replicas at which commands are late count
				o.Low = min(o.Low, supermajority(c.Setting, row.Client.Site))
			}
		}
		o.High += longest(c.Setting) / 500 // what comes up together waits for each other: kit.Pace
		if row.Until == plan.Executed {
			o.expect(system, c.Setting.Busy, busy[i].Latency, rows[i-1].Latency)
		}
		out[i] = o
	}
	return out, nil
}

// supermajority is the round trip to the nearest supermajority.
func supermajority(s plan.Setting, client wan.Site) time.Duration {
	var trips []time.Duration
	for _, r := range s.Replicas {
		trips = append(trips, s.WAN.RTT(client, r))
	}
	slices.Sort(trips)
	return trips[quorum.Fast(len(trips))-1]
}

// expect widens what the model expects of the execution.
func (c *Comparison) expect(system plan.System, others bool, busy, durable time.Duration) {
	switch {
	case system != plan.Domino && system != plan.DominoDirect && system != plan.Mencius:
	case system == plan.Mencius && others:
		// Sooner if the others propose as much, later if they began just before.
		c.Low, c.High = durable, 2*c.Latency
	case system == plan.Mencius:
		c.Low = durable // if the others have skipped their slots for other reasons
	case others:
		// Owners that propose pass slots ahead of their clocks.
		c.Low = durable
	default:
		// Replicas say of their own accord how far they are, too.
		c.Low = min(c.Low, busy)
	}
}

// Quiet returns a network of which nothing is left but the delays.
func Quiet(m wan.Matrix) wan.Matrix {
	for p, l := range m.Links() {
		if quiet := (wan.Link{Delay: l.Delay}); l != quiet {
			m = m.WithLink(p, quiet) // which copies all of them
		}
	}
	return m
}
