package sim

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/protocol"
)

// A Clock is how a node's clock differs from the simulation's time. The zero Clock is right.
type Clock struct {
	Offset   time.Duration // what it is ahead, at the moment when it is set
	DriftPPM int           // how much it is faster, in millionths; from -500,000 to 500,000
}

// maxDriftPPM bounds the drift of clocks: half and one and a half times as fast as they should be.
const maxDriftPPM = 500_000

// localClock is a clock as it runs.
type localClock struct {
	since, base time.Duration // it showed base at since, by the simulation's time
	driftPPM    int64
}

// at returns what the clock shows at a time of the simulation.
func (c *localClock) at(now time.Duration) time.Duration {
	passed := now - c.since
	if c.driftPPM != 0 {
		passed += drifted(passed, c.driftPPM)
	}
	return c.base + passed
}

// drifted returns d millionths times ppm; without overflow for centuries.
func drifted(d time.Duration, ppm int64) time.Duration {
	const million = 1_000_000
	return d/million*time.Duration(ppm) + d%million*time.Duration(ppm)/million
}

// lasts returns how much of the simulation's time passes while this clock counts d.
func (c *localClock) lasts(d time.Duration) time.Duration {
	if c.driftPPM == 0 {
		return d
	}
	const million = 1_000_000
	rate := time.Duration(million + c.driftPPM)
	return d/rate*million + (d%rate*million+rate-1)/rate // rounded up: it never shows less than it should
}

// jump moves the clock at once.
func (c *localClock) jump(by time.Duration) { c.base += by }

// set makes the clock show something else from now on.
func (c *localClock) set(now, shows time.Duration, driftPPM int) {
	*c = localClock{since: now, base: shows, driftPPM: int64(driftPPM)}
}

func (c Clock) validate() error {
	if c.DriftPPM < -maxDriftPPM || c.DriftPPM > maxDriftPPM {
		return fmt.Errorf("a clock's drift of %d millionths is more than %d", c.DriftPPM, maxDriftPPM)
	}
	return nil
}

// SetClock makes a node's clock differ from the simulation's time from now on. Timers that are set
// keep their time.
func (s *Sim[M]) SetClock(id protocol.ID, c Clock) error {
	n := s.lookup(id)
	if n == nil {
		return fmt.Errorf("sim: set clock: there is no node %d", id)
	}
	if err := c.validate(); err != nil {
		return fmt.Errorf("sim: set clock of node %d: %w", id, err)
	}
	s.setClock(n, c)
	return nil
}

func (s *Sim[M]) setClock(n *node[M], c Clock) {
	s.trace.note(s, n, fmt.Sprintf("its clock is now off by %v, and drifts by %d millionths", c.Offset, c.DriftPPM))
	n.clock.set(s.now, s.config.ClockStart+s.now+c.Offset, c.DriftPPM)
}

// Jump moves a node's clock at once, ahead or back. Timers that are set keep their time.
func (s *Sim[M]) Jump(id protocol.ID, by time.Duration) {
	if n := s.lookup(id); n != nil {
		s.trace.note(s, n, fmt.Sprintf("its clock jumps by %v", by))
		n.clock.jump(by)
	}
}
