package machine

import (
	"context"
	"fmt"
	"strings"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/internal/plainerr"
)

// setHealth says how the machine's service is, and the machine as a whole, whose name is empty.
func (n *Node) setHealth(s healthpb.HealthCheckResponse_ServingStatus) {
	n.health.SetServingStatus("", s)
	n.health.SetServingStatus(pb.Store_ServiceDesc.ServiceName, s)
}

// How often shards are asked whether they take part: soon at first, then with pauses, as a newcomer
// may copy for long.
const (
	firstPoll = 50 * time.Millisecond
	lastPoll  = time.Second
)

// A machine that does not take part says why in the log: for the first time after complainAfter,
// and again when the reason has changed, but not more often than that, or has lasted for
// complainEvery.
const (
	complainAfter = 3 * time.Second
	complainEvery = time.Minute
)

// serveWhenReady says that the machine serves once all of its shards are admitted and have copied
// what they lack: before that they answer no reads. What takes part once does so until the machine
// stops.
func (n *Node) serveWhenReady(ctx context.Context) {
	began, said, at := time.Now(), "", time.Time{}
	for wait := firstPoll; !n.ready(ctx); wait = min(2*wait, lastPoll) {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		if time.Since(began) < complainAfter {
			continue
		}
		if why := n.obstacles(ctx); why != "" && (why != said && time.Since(at) >= complainAfter ||
			time.Since(at) >= complainEvery) {
			n.cfg.Logger.Warn("store: machine does not take part yet", "machine", n.cfg.Machine, "why", why)
			said, at = why, time.Now()
		}
	}
	n.setHealth(healthpb.HealthCheckResponse_SERVING)
	n.cfg.Logger.Info("store: machine serves", "machine", n.cfg.Machine)
}

// obstacles says what the machine waits for, empty if it is ready or stops.
func (n *Node) obstacles(ctx context.Context) string {
	if what := n.awaits.Load(); what != nil {
		return *what
	}
	servers, err := n.Servers(ctx)
	if err != nil {
		return ""
	}
	var out []string
	for _, st := range servers {
		switch {
		case st.Refused != "", st.Joins, st.Left: // it ends with the first, and does not wait for the others
		case st.Syncing:
			out = append(out, fmt.Sprintf("shard %d has copied %d of %d servers", st.Shard, st.Copied, st.Needed))
		case !st.Admitted:
			out = append(out, fmt.Sprintf("shard %d waits for the other sites to say whether they know its disk", st.Shard))
		}
	}
	if len(out) == 0 {
		return ""
	}
	for _, p := range n.Peers() {
		switch {
		case p.Refused:
			out = append(out, fmt.Sprintf("machine %s does not belong together with this one: %s", p.Machine,
				plainerr.Text(p.Err)))
		case !p.Reachable && p.Err != nil:
			out = append(out, fmt.Sprintf("machine %s cannot be reached: %s", p.Machine, plainerr.Text(p.Err)))
		case !p.Reachable:
			out = append(out, fmt.Sprintf("machine %s does not answer", p.Machine))
		}
	}
	return strings.Join(out, "; ")
}

func (n *Node) ready(ctx context.Context) bool {
	for _, s := range n.shards {
		// What is being moved here, or away, does without the server.
		if st, err := s.status(ctx); err != nil || !st.Joins && !st.Left && (!st.Admitted || st.Syncing || st.Refused != "") {
			return false
		}
	}
	return true
}
