package rcnode

import (
	"context"
	"time"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
)

// Status returns how the machine is.
func (n *Node) Status(context.Context) (*pb.StatusResponse, error) {
	return &pb.StatusResponse{
		Machine: n.cfg.Machine, Site: n.cfg.Topology.Sites[n.site].Name, Epoch: n.cfg.Topology.Epoch, UptimeSeconds: int64(time.Since(n.started) / time.Second),
	}, nil
}
