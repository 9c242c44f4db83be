package fastpaxos

import "fmt"

// Check returns what is wrong with the replica, or nil.
func (r *replica) Check() error {
	if r.Over() {
		return nil
	}
	applied := r.State.Applied()
	switch {
	case r.base > r.journal.Snapshot() || r.journal.Snapshot() > applied:
		return fmt.Errorf("fastpaxos: base %d <= snapshot %d <= applied %d does not hold", r.base, r.journal.Snapshot(),
			applied)
	case r.lead != nil && (r.promised != r.lead.era || r.promised.Owner() != r.Cfg.ID):
		return fmt.Errorf("fastpaxos: leads in the era %v, and has promised %v", r.lead.era, r.promised)
	case r.lead != nil && r.lead.classic && r.open != 0:
		return fmt.Errorf("fastpaxos: slots from %d on are open in a classic era", r.open)
	}
	for i, c := range r.cells {
		if c.vote.Era > r.promised {
			return fmt.Errorf("fastpaxos: the vote in slot %d is of era %v, above the promised %v", uint64(r.base)+1+uint64(i),
				c.vote.Era, r.promised)
		}
	}
	return r.State.Check()
}
