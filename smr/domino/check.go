package domino

import (
	"fmt"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// Check returns what is wrong with the replica, or nil.
func (r *replica) Check() error {
	l, a := &r.learner, &r.acceptor
	switch {
	case r.Over():
		return nil
	case l.broken != nil:
		return l.broken
	case r.State.Applied() > l.executed:
		return fmt.Errorf("domino: applied %d, decided up to %d", r.State.Applied(), l.executed)
	case r.snapshot > l.executed:
		return fmt.Errorf("domino: the snapshot is of slot %d, executed are %d", r.snapshot, l.executed)
	case len(l.decided) > 0 && l.decided[0].Slot <= l.executed:
		return fmt.Errorf("domino: slot %d is executed and is to be", l.decided[0].Slot)
	case uint64(len(a.begun)) > a.count:
		return fmt.Errorf("domino: %d decisions are not learned of %d", len(a.begun), a.count)
	case r.role == member && r.coord.phase == leading && a.promised != r.coord.ballot:
		return fmt.Errorf("domino: coordinates ballot %v, promised %v", r.coord.ballot, a.promised)
	}
	for _, o := range append([]*track{&l.shared, &l.control}, l.owners...) {
		last := o.w
		for _, x := range o.queue {
			if x.Slot <= last {
				return fmt.Errorf("domino: track %d: slot %d is undecided behind %d", o.id, x.Slot, last)
			}
			last = x.Slot
		}
	}
	return checkSlots(l, a)
}

func checkSlots(l *learner, a *acceptor) error {
	for i := 1; i < len(l.contests); i++ {
		if l.contests[i-1].slot >= l.contests[i].slot {
			return fmt.Errorf("domino: contests of slots %d and %d are out of order", l.contests[i-1].slot, l.contests[i].slot)
		}
	}
	for _, track := range a.closedTracks() {
		last := smr.Slot(0)
		for _, s := range a.closes[track].spans {
			if s.low < last || s.high < s.low || s.ballot > a.promised {
				return fmt.Errorf("domino: track %d: slots %d to %d are accepted in ballot %v, behind %d, promised %v", track,
					s.low,
					s.high, s.ballot, last, a.promised)
			}
			last = s.high
		}
		// Whoever accepts a decision about slots votes for nothing more in them in ballot 0.
		switch {
		case track == shared && last > a.closed:
			return fmt.Errorf("domino: slots up to %d of the shared track are accepted from coordinators, and votes are "+
				"closed up to %d", last, a.closed)
		case track.owned() && last > a.track(protocol.ID(track)).revoked:
			return fmt.Errorf("domino: track %d: slots up to %d are accepted from coordinators, and revoked up to %d", track,
				last,
				a.track(protocol.ID(track)).revoked)
		}
	}
	return nil
}
