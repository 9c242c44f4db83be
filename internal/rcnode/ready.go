package rcnode

import (
	"context"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
)

// setHealth says how the machine's service is, and the machine as a whole, whose name is empty.
func (n *Node) setHealth(s healthpb.HealthCheckResponse_ServingStatus) {
	n.health.SetServingStatus("", s)
	n.health.SetServingStatus(pb.Store_ServiceDesc.ServiceName, s)
}

// How often shards are asked whether they take part: soon at first, then with pauses, as a newcomer may copy for long.
const (
	firstPoll = 50 * time.Millisecond
	lastPoll  = time.Second
)

// serveWhenReady says that the machine serves once all of its shards are admitted and have copied what they lack: before that they answer no reads.
// What takes part once does so until the machine stops.
func (n *Node) serveWhenReady(ctx context.Context) {
	for wait := firstPoll; !n.ready(ctx); wait = min(2*wait, lastPoll) {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
	n.setHealth(healthpb.HealthCheckResponse_SERVING)
	n.cfg.Logger.Info("store: machine serves", "machine", n.cfg.Machine)
}

func (n *Node) ready(ctx context.Context) bool {
	for _, s := range n.shards {
		if st, err := s.status(ctx); err != nil || !st.Admitted || st.Syncing || st.Refused != "" {
			return false
		}
	}
	return true
}
