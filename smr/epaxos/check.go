package epaxos

import "fmt"

// Check returns what is wrong with the replica, or nil.
func (r *replica) Check() error {
	if r.removed || r.Over() || r.generation == 0 {
		return nil
	}
	if len(r.rows) != len(r.group) || len(r.stable) != len(r.group) {
		return fmt.Errorf("epaxos: %d rows, stable up to %v, with %d members", len(r.rows), r.stable, len(r.group))
	}
	if c := r.position(r.checkpoint.Row); r.checkpoint.Index > 0 && c >= 0 && (r.index.barrier[c] < r.checkpoint.Index ||
		r.index.top[c] < r.checkpoint.Index) {
		return fmt.Errorf("epaxos: what comes next depends on %v, not on the checkpoint %v", r.index.barrier, r.checkpoint)
	}
	for p := range r.rows {
		w := &r.rows[p]
		if w.base > r.stable[p] || r.stable[p] > w.done || w.done > w.known || w.known > w.top() {
			return fmt.Errorf("epaxos: row %d: base %d <= stable %d <= done %d <= known %d <= top %d does not hold",
				r.group[p].ID, w.base, r.stable[p], w.done, w.known, w.top())
		}
		for k, i := range w.list {
			switch {
			case i.id.Index != w.base+uint64(k)+1 || i.row != p:
				return fmt.Errorf("epaxos: %v is where %d.%d ought to be", i.id, r.group[p].ID, w.base+uint64(k)+1)
			case i.executed && !i.decided():
				return fmt.Errorf("epaxos: %v is executed and %v", i.id, i.phase)
			case i.phase > phaseUnknown && len(i.deps) != len(r.group), i.phase > phaseUnknown && i.cmd == nil && !i.nothing:
				return fmt.Errorf("epaxos: %v is %v with the dependencies %v and the command %v", i.id, i.phase, i.deps, i.cmd)
			case i.cmd != nil && i.cmd.Stamp > r.stamp:
				return fmt.Errorf("epaxos: %v has the stamp %d, the highest that was heard of is %d", i.id, i.cmd.Stamp, r.stamp)
			case i.voted > i.ballot:
				return fmt.Errorf("epaxos: %v was accepted in ballot %v, above the promised %v", i.id, i.voted, i.ballot)
			case i.try != nil && i.phase == phaseCommitted:
				return fmt.Errorf("epaxos: %v is decided and still tried", i.id)
			case i.number != 0 || i.onStack:
				return fmt.Errorf("epaxos: a search has left its marks on %v", i.id)
			}
		}
	}
	return r.State.Check()
}
