package clock

import (
	"fmt"
	"time"
)

// A Stamp is a timestamp: what some node's clock showed or will show, or a little more, so that no
// two of one Source are equal. Two nodes can give the same: who needs to tell them apart adds the
// node.
type Stamp time.Duration

func (s Stamp) String() string { return time.Duration(s).String() }

// A Source gives a node's timestamps: strictly rising, whatever its clock does. It is a hybrid
// logical clock in which the logical part are the nanoseconds beyond the clock's: a Stamp is never
// below one that the Source has observed before, so stamps follow causality.
type Source struct {
	maxAhead time.Duration
	last     Stamp // the greatest that was given or observed
}

// NewSource returns a source that gives nothing at or below last, and neither gives nor observes
// what is more than maxAhead beyond the clock. A node that restarts takes as last what it has on
// disk: a ceiling of what it gave before. maxAhead must be positive.
func NewSource(last Stamp, maxAhead time.Duration) (*Source, error) {
	if maxAhead <= 0 {
		return nil, fmt.Errorf("clock: look-ahead of %v is not positive", maxAhead)
	}
	return &Source{maxAhead: maxAhead, last: last}, nil
}

// An AheadError says that a timestamp is too far beyond the clock: its giver's clock is fast, or
// this one was set back. Nothing was given, or observed.
type AheadError struct {
	Stamp Stamp
	Now   time.Duration
	Max   time.Duration
}

func (e *AheadError) Error() string {
	return fmt.Sprintf("clock: timestamp %v is %v ahead of the clock, more than %v", e.Stamp, time.Duration(e.Stamp)-e.Now,
		e.Max)
}

// Next returns a timestamp: the time, unless that would not be above all before it. Its error is an
// *AheadError: the clock was set back by more than the look-ahead.
func (s *Source) Next(now time.Duration) (Stamp, error) { return s.At(now, Stamp(now)) }

// At returns a timestamp of at least at, which may lie in the future: the predicted arrival of a
// request, say [Thesis §4.3.4]. Its error is an *AheadError.
func (s *Source) At(now time.Duration, at Stamp) (Stamp, error) {
	at = max(at, s.last+1)
	if err := s.ahead(now, at); err != nil {
		return 0, err
	}
	s.last = at
	return at, nil
}

// Observe makes later timestamps lie above one that another node gave. Its error is an *AheadError,
// and must keep the node from acting on the timestamp: else one clock that is fast would carry all
// others along.
func (s *Source) Observe(now time.Duration, at Stamp) error {
	if err := s.ahead(now, at); err != nil {
		return err
	}
	s.last = max(s.last, at)
	return nil
}

// Last returns the greatest timestamp that was given or observed. Next is above it.
func (s *Source) Last() Stamp { return s.last }

func (s *Source) ahead(now time.Duration, at Stamp) error {
	if time.Duration(at)-now > s.maxAhead {
		return &AheadError{Stamp: at, Now: now, Max: s.maxAhead}
	}
	return nil
}
