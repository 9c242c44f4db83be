package machine

import (
	"context"

	"google.golang.org/grpc/status"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/store"
)

// Speculation returns what the machine's coordinator has seen of transactions that build on each
// other; nil: the protocol has none.
func (n *Node) Speculation(ctx context.Context) (*store.SpeculationStatus, error) {
	if !n.cfg.Protocol.CoordinatorStatus {
		return nil, nil
	}
	if err := n.awaiting(); err != nil {
		return nil, err
	}
	answer := make(chan store.SpeculationStatus, 1)
	// The table has no bound, and is never closed.
	ref, _ := n.speculation.Add(func(st store.SpeculationStatus) { answer <- st })
	defer n.speculation.Forget(ref)
	if err := n.coordinator.Deliver(ctx, store.StatusQuery{Ref: ref}); err != nil {
		return nil, err
	}
	select {
	case st := <-answer:
		return &st, nil
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

func speculationToWire(st *store.SpeculationStatus) *pb.SpeculationStatus {
	if st == nil {
		return nil
	}
	out := &pb.SpeculationStatus{Locals: st.Locals, Misspeculated: st.Misspeculated, Finals: st.Finals,
		Builders: st.Builders, ChainSum: st.ChainSum, Longest: uint64(st.Longest), Unfinal: uint64(st.Unfinal),
		Blocked: uint64(st.Blocked), BlockedNs: uint64(max(st.BlockedFor, 0)), Degree: st.Degree}
	if t := st.Tuning; t != nil {
		out.Tuning = &pb.SpeculationStatus_Tuning{Settled: t.Settled, Windows: t.Windows}
		for _, w := range t.Last {
			out.Tuning.Last = append(out.Tuning.Last, &pb.SpeculationStatus_Window{Degree: w.Degree,
				LengthNs: uint64(w.Length), Committed: w.Committed, Aborted: w.Aborted, LatencyNs: uint64(w.Latency)})
		}
	}
	for i, n := range st.Aborted {
		out.Aborted = append(out.Aborted, &pb.SpeculationStatus_Aborted{Cause: store.AbortCause(i).String(), Transactions: n})
	}
	bounds := store.ChainBounds()
	for i, n := range st.Chains {
		chains := &pb.SpeculationStatus_Chains{Transactions: n}
		if i < len(bounds) {
			most := uint64(bounds[i])
			chains.AtMost = &most
		}
		out.Chains = append(out.Chains, chains)
	}
	if id := st.OldestBlocked; !id.IsZero() {
		out.OldestBlocked = &pb.Version{Time: id.Time, Client: uint64(id.Client)}
	}
	return out
}

func (n *Node) snapshotsToWire(st *store.SnapshotStatus) *pb.SnapshotStatus {
	if st == nil {
		return nil
	}
	out := &pb.SnapshotStatus{Serves: st.Serves, Ceiling: st.Ceiling, Horizon: st.Horizon}
	for _, i := range st.Silent {
		out.Silent = append(out.Silent, n.cfg.Topology.Sites[i].Name)
	}
	return out
}
