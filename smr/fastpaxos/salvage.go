package fastpaxos

import (
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
)

// applyDoubtful executes what the disk has for the slots behind the snapshot, in their order: what
// is written down as decided, and otherwise the replica's own vote. A slot of which the disk has
// neither was not executed with a command in it.
func (r *replica) applyDoubtful(*protocol.Env[smr.Message]) (n int, err error) {
	if err := r.disk.Check(); err != nil {
		return 0, err
	}
	for i, c := range r.cells {
		s := r.base + 1 + smr.Slot(i)
		e := c.vote.Entry
		if c.decided {
			e = c.value
		}
		if e.Kind == 0 || e.Kind == kit.NoOp {
			r.State.Skip(s)
			continue
		}
		r.State.Apply(s, e)
		if !c.decided {
			n++
		}
	}
	return n, nil
}
