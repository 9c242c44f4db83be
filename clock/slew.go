package clock

import (
	"fmt"
	"time"
)

// A Slewed makes of a machine's two clocks one that never steps: it runs with the steady clock, a
// little faster or slower until it shows what the wall clock does. Runners give nodes this for Now
// where timestamps of different machines are compared.
type Slewed struct {
	maxPPM int64
	begun  bool
	steady time.Duration // at the last reading
	shows  time.Duration
	rest   int64 // of the last correction, in millionths of a nanosecond
}

// NewSlewed returns a clock that is corrected by at most maxPPM millionths of the time that passes,
// in (0, 1,000,000); 500 is what operating systems do.
func NewSlewed(maxPPM int) (*Slewed, error) {
	if maxPPM <= 0 || maxPPM >= 1_000_000 {
		return nil, fmt.Errorf("clock: a correction of %d millionths is not in (0, 1000000)", maxPPM)
	}
	return &Slewed{maxPPM: int64(maxPPM)}, nil
}

// Read returns the time, given what the two clocks show now. The first reading is the wall clock's.
// Later ones do not fall, whatever the wall clock does.
func (s *Slewed) Read(steady, wall time.Duration) time.Duration {
	if !s.begun {
		s.begun, s.steady, s.shows = true, steady, wall
		return wall
	}
	const million = 1_000_000
	passed := max(0, steady-s.steady)
	s.steady = max(s.steady, steady)
	s.shows += passed
	room := int64(passed%million)*s.maxPPM + s.rest
	most := passed/million*time.Duration(s.maxPPM) + time.Duration(room/million)
	s.rest = room % million
	s.shows += min(max(wall-s.shows, -most), most)
	return s.shows
}
