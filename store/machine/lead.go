package machine

import (
	"context"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/store"
)

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
