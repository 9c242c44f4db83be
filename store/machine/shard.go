package machine

import (
	"context"
	"slices"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/internal/callers"
	"github.com/foresay/foresay/store"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// shard is one of the machine's servers.
type shard struct {
	node  *Node
	index int
	host  *host.Node[store.Message]
	desk  callers.Table[store.ServerStatus]
	moves callers.Table[store.HandingOver]
	// replaces are the steps of a move that are asked for.
	replaces callers.Table[store.Replacing]
}

// heard takes what the machine's coordinator says to its application.
func (n *Node) heard(msg store.Message) {
	switch m := msg.(type) {
	case store.SpeculationStatus:
		n.speculation.Answer(m.Ref, m)
	case store.Full:
		n.cfg.Logger.Warn("store: overloaded: the coordinator remembers as many transactions as it may, and takes no new "+
			"ones; is a site away, or max_txns small?", "transactions", m.Transactions)
	}
}

// receive takes what the server says to its application. It is called by the server's goroutine,
// and does not wait.
func (s *shard) receive(msg store.Message) {
	switch m := msg.(type) {
	case store.ServerStatus:
		s.desk.Answer(m.Ref, m)
	case store.HandingOver:
		s.moves.Answer(m.Ref, m)
	case store.Replacing:
		s.replaces.Answer(m.Ref, m)
	case store.Full:
		s.node.cfg.Logger.Warn("store: overloaded: a shard remembers as many transactions as it may, and refuses new "+
			"ones; is a site away, or max_txns small?",
			"shard", s.index, "transactions", m.Transactions)
	case store.Refused:
		select {
		case s.node.refused <- &RefusedError{s.node.cfg.Machine, s.index, m.Reason, m.Forgot}:
		default:
		}
	}
}

// HandOver has another site lead a shard, if this machine leads it.
func (n *Node) HandOver(ctx context.Context, r *pb.HandOverRequest) (*pb.HandOverResponse, error) {
	if err := n.awaiting(); err != nil {
		return nil, err
	}
	site := slices.IndexFunc(n.cfg.Topology.Sites, func(s store.TopologySite) bool { return s.Name == r.GetSite() })
	if site < 0 {
		return nil, status.Errorf(codes.InvalidArgument, "there is no site %q", r.GetSite())
	}
	i := slices.IndexFunc(n.shards, func(s *shard) bool { return s.index == int(r.GetShard()) })
	if i < 0 {
		return nil, status.Errorf(codes.InvalidArgument, "machine %s has no copy of shard %d", n.cfg.Machine, r.GetShard())
	}
	s := n.shards[i]
	answer := make(chan store.HandingOver, 1)
	ref, _ := s.moves.Add(func(m store.HandingOver) { answer <- m }) // the table has no bound, and is never closed
	defer s.moves.Forget(ref)
	if err := s.host.Deliver(ctx, store.HandOver{Ref: ref, Site: site}); err != nil {
		return nil, err
	}
	select {
	case m := <-answer:
		return &pb.HandOverResponse{Leads: m.Leads, Reason: m.Reason}, nil
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}
