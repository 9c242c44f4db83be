package multipaxos

import "fmt"

// Check returns what is wrong with the replica, or nil.
func (r *replica) Check() error {
	l := &r.log
	switch {
	case r.Over():
		return nil
	case l.base > r.commit || r.commit > r.matched || r.matched > l.last():
		return fmt.Errorf("multipaxos: base %d <= commit %d <= matched %d <= last %d does not hold", l.base, r.commit,
			r.matched, l.last())
	case r.State.Applied() != r.commit:
		return fmt.Errorf("multipaxos: applied %d, decided %d", r.State.Applied(), r.commit)
	case l.journal.Snapshot() > r.commit || l.base > l.journal.Snapshot():
		return fmt.Errorf("multipaxos: base %d <= snapshot %d <= commit %d does not hold", l.base, l.journal.Snapshot(),
			r.commit)
	case l.slots.Len() > 0 && l.at(l.last()).Ballot > r.promised:
		return fmt.Errorf("multipaxos: slot %d was accepted in ballot %v, above the promised %v", l.last(),
			l.at(l.last()).Ballot, r.promised)
	case r.role == leader && !owns(r.Cfg.ID, r.promised):
		return fmt.Errorf("multipaxos: leads with the promised ballot %v, another's", r.promised)
	case r.role == leader && r.lead.end < r.commit:
		return fmt.Errorf("multipaxos: proposed %d, decided %d", r.lead.end, r.commit)
	}
	for _, p := range r.lead.peers {
		arrived, next := p.flow.Arrived(), p.flow.Next()
		if p.match > arrived || arrived >= next || p.match > r.lead.end {
			return fmt.Errorf("multipaxos: follower %d: match %d <= arrived %d < next %d does not hold, or match is beyond "+
				"the end %d", p.id, p.match, arrived, next, r.lead.end)
		}
	}
	return r.State.Check()
}
