package epaxos

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// applyDoubtful executes what is decided, and then what is not, with the dependencies that were
// accepted here. What was executed depends on nothing that was not, so it keeps its order. A change
// of the members and a checkpoint that are not decided are left out: they would make void, or
// forget, what comes after them.
func (r *replica) applyDoubtful(env *protocol.Env[smr.Message]) (doubtful int, err error) {
	r.execute(env)
	r.woken = nil
	for k := range r.rows {
		w := &r.rows[k]
		for x := w.done + 1; x <= w.top(); x++ {
			i := w.at(x)
			switch {
			case i.executed:
				continue
			case i.phase == phaseCommitted:
			case i.cmd == nil || i.nothing || len(i.deps) == 0 || i.cmd.changes() || i.cmd.Kind == checkpoint:
				i.nothing, i.deps = true, make(deps, len(r.rows))
			default:
				doubtful++
			}
			i.phase, i.settling = phaseCommitted, false
			r.woken = append(r.woken, i)
		}
	}
	r.execute(env)
	return doubtful, nil
}
