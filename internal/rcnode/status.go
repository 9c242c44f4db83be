package rcnode

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/status"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/store/replicatedcommit"
)

// statusDesk knows who waits for a server's status.
type statusDesk struct {
	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan replicatedcommit.ServerStatus
}

func (d *statusDesk) ask() (uint64, chan replicatedcommit.ServerStatus) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting == nil {
		d.waiting = map[uint64]chan replicatedcommit.ServerStatus{}
	}
	d.last++
	answer := make(chan replicatedcommit.ServerStatus, 1)
	d.waiting[d.last] = answer
	return d.last, answer
}

func (d *statusDesk) take(ref uint64) chan replicatedcommit.ServerStatus {
	d.mu.Lock()
	defer d.mu.Unlock()
	answer := d.waiting[ref]
	delete(d.waiting, ref)
	return answer
}

// status asks the server how it is.
func (s *shard) status(ctx context.Context) (replicatedcommit.ServerStatus, error) {
	ref, answer := s.desk.ask()
	defer s.desk.take(ref)
	if err := s.host.Deliver(ctx, replicatedcommit.StatusQuery{Ref: ref}); err != nil {
		return replicatedcommit.ServerStatus{}, err
	}
	select {
	case st := <-answer:
		return st, nil
	case <-ctx.Done():
		return replicatedcommit.ServerStatus{}, status.FromContextError(ctx.Err()).Err()
	}
}

// Status returns how the machine is.
func (n *Node) Status(ctx context.Context) (*pb.StatusResponse, error) {
	out := &pb.StatusResponse{
		Machine: n.cfg.Machine, Site: n.cfg.Topology.Sites[n.site].Name, Epoch: n.cfg.Topology.Epoch, UptimeSeconds: int64(time.Since(n.started) / time.Second),
	}
	for _, s := range n.shards {
		st, err := s.status(ctx)
		if err != nil {
			return nil, err
		}
		row := &pb.ShardStatus{
			Shard: uint32(s.index), Admitted: st.Admitted, Syncing: st.Syncing, Refused: st.Refused, Transactions: uint64(st.Txns), Undecided: uint64(st.Undecided),
			Blocked: uint64(st.Blocked), Wanting: uint64(st.Wanting), Locks: uint64(st.Locks), Waiting: uint64(st.Waiting), Reservations: uint64(st.Reservations),
		}
		if id := st.OldestUndecided; !id.IsZero() {
			row.OldestUndecided = &pb.Version{Time: id.Time, Client: uint64(id.Client)}
		}
		out.Shards = append(out.Shards, row)
	}
	return out, nil
}
