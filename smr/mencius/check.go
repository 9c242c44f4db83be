package mencius

import (
	"fmt"

	"github.com/foresay/foresay/smr/kit"
)

// Check returns what is wrong with the replica, or nil.
func (r *replica) Check() error {
	if r.Over() {
		return nil
	}
	e := r.epoch
	for _, l := range e.tracks {
		switch {
		case l.base > l.commit || l.commit > l.matched || l.matched > l.end():
			return fmt.Errorf("mencius: track %d: base %d <= commit %d <= matched %d <= end %d does not hold", l.index, l.base,
				l.commit, l.matched, l.end())
		case e.upTo(l, r.State.Applied()) > l.commit:
			return fmt.Errorf("mencius: track %d: slots up to %d are applied, positions up to %d decided", l.index,
				r.State.Applied(), l.commit)
		case e.upTo(l, r.journal.Snapshot()) < l.base:
			return fmt.Errorf("mencius: track %d: positions up to %d are forgotten, the snapshot is of slot %d", l.index, l.base,
				r.journal.Snapshot())
		case l.lead != nil && e.last != 0 && l.end() > e.upTo(l, e.last):
			return fmt.Errorf("mencius: track %d: position %d was proposed, the epoch ends with %d", l.index, l.end(),
				e.upTo(l, e.last))
		case l.lead != nil && l.leader() != r.Cfg.ID:
			return fmt.Errorf("mencius: track %d: led in ballot %v, another's", l.index, l.promised)
		case l.lead != nil && l.matched != l.end():
			return fmt.Errorf("mencius: track %d: led with position %d that is not the leader's", l.index, l.end())
		}
		for i, v := range l.votes {
			if v.Ballot > l.promised {
				return fmt.Errorf("mencius: track %d: position %d was accepted in ballot %v, above the promised %v", l.index,
					l.base+
						1+pos(i), v.Ballot, l.promised)
			}
			if v.Skip && v.Entry.Kind != kit.NoOp {
				return fmt.Errorf("mencius: track %d: position %d was skipped and has the %v", l.index, l.base+1+pos(i), v.Entry)
			}
		}
	}
	if e.last != 0 && r.State.Applied() > e.last {
		return fmt.Errorf("mencius: slot %d is applied, the epoch ended with %d", r.State.Applied(), e.last)
	}
	return r.State.Check()
}
