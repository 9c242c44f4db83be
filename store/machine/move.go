package machine

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/store"
)

// moveEvery is how often a machine asks its server of a shard whose copy is being moved to take the
// next step, if the round trips between sites are not longer.
const moveEvery = 50 * time.Millisecond

// move is what a machine knows of a move that is under way, of one of its shards.
type move struct {
	shard *shard
	said  atomic.Pointer[store.Replacing] // nil: nothing yet
}

// moving returns the machine's part in the move that is under way; nil: it has none.
func (n *Node) moving() *move {
	m, ok := n.cfg.Topology.UnderWay()
	if !ok {
		return nil
	}
	i := slices.IndexFunc(n.shards, func(s *shard) bool { return s.index == m.Shard })
	if i < 0 {
		return nil
	}
	return &move{shard: n.shards[i]}
}

// runMove has a shard's group replace its member, whenever the machine's server leads it, until ctx
// ends: the next epoch ends the move. All machines of the shard do so, and so whoever leads takes
// the next step, whatever became of the one that has taken the last.
func (n *Node) runMove(ctx context.Context, m *move) {
	t := n.cfg.Topology
	now, _ := t.UnderWay()
	place := func(site string) int {
		return slices.IndexFunc(t.Sites, func(s store.TopologySite) bool { return s.Name == site })
	}
	ask := store.Replace{From: place(now.From), To: place(now.To), Back: now.Back}
	every := max(moveEvery, n.cfg.RoundTrip)
	for {
		if n.awaiting() == nil {
			m.step(ctx, ask)
		}
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return
		}
	}
}

// step asks the shard's server for the next step.
func (m *move) step(ctx context.Context, ask store.Replace) {
	answer := make(chan store.Replacing, 1)
	ask.Ref, _ = m.shard.replaces.Add(func(r store.Replacing) { answer <- r }) // the table has no bound
	defer m.shard.replaces.Forget(ask.Ref)
	if err := m.shard.host.Deliver(ctx, ask); err != nil {
		return // the machine stops
	}
	select {
	case said := <-answer:
		m.said.Store(&said)
	case <-ctx.Done():
	}
}

// status returns how far the move is, as far as the shard's server knows; nil: it is not this shard
// that is being moved.
func (m *move) status(st store.ServerStatus) *pb.MoveStatus {
	if m == nil || m.shard.index != st.Shard {
		return nil
	}
	out := &pb.MoveStatus{Joins: st.Joins, Left: st.Left, ArrivedBytes: st.ArrivedBytes}
	if said := m.said.Load(); said != nil && said.Leads {
		out.Leads, out.Done, out.Moved, out.Waits = true, said.Done, said.Moved, said.Reason
	}
	return out
}
