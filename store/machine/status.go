package machine

import (
	"context"
	"time"

	"google.golang.org/grpc/status"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/internal/plainerr"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/transport"
)

// status asks the server how it is.
func (s *shard) status(ctx context.Context) (store.ServerStatus, error) {
	if err := s.node.awaiting(); err != nil {
		return store.ServerStatus{}, err
	}
	answer := make(chan store.ServerStatus, 1)
	ref, _ := s.desk.Add(func(st store.ServerStatus) { answer <- st }) // the table has no bound, and is never closed
	defer s.desk.Forget(ref)
	if err := s.host.Deliver(ctx, store.StatusQuery{Ref: ref}); err != nil {
		return store.ServerStatus{}, err
	}
	select {
	case st := <-answer:
		return st, nil
	case <-ctx.Done():
		return store.ServerStatus{}, status.FromContextError(ctx.Err()).Err()
	}
}

// Servers returns how the machine's servers are, in the order of their shards.
func (n *Node) Servers(ctx context.Context) ([]store.ServerStatus, error) {
	var out []store.ServerStatus
	for _, s := range n.shards {
		st, err := s.status(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, st)
	}
	return out, nil
}

// Retire has the machine's servers vote for nothing new, and returns how many transactions that
// they have voted for may not be carried out elsewhere.
func (n *Node) Retire(ctx context.Context) (unsettled int, err error) {
	if err := n.awaiting(); err != nil {
		return 0, err
	}
	for _, s := range n.shards {
		if err := s.host.Deliver(ctx, store.Retire{}); err != nil {
			return 0, err
		}
		st, err := s.status(ctx)
		if err != nil {
			return 0, err
		}
		unsettled += st.Unsettled
	}
	return unsettled, nil
}

// Stats returns what the machine's nodes have done, by their names, and its network.
func (n *Node) Stats() (nodes map[string]host.NodeStats, network transport.Stats) {
	nodes = map[string]host.NodeStats{}
	site := n.cfg.Topology.Sites[n.site]
	stats := n.host.Stats()
	for _, s := range stats.Nodes {
		name := ""
		switch id := s.Addr.ID; id {
		case site.CoordinatorID(n.machine):
			name = "coordinator"
		case site.GateID(n.machine):
			name = "gate"
		default:
			for _, sh := range n.shards {
				if n.cfg.Topology.ServerID(n.site, sh.index) == id {
					name = ShardName(sh.index)
				}
			}
		}
		nodes[name] = s
	}
	return nodes, stats.Network
}

// A Peer is how the machine stands with another one.
type Peer struct {
	Machine, Site string
	Reachable     bool
	Err           error // why it is not, if that is known
	Refused       bool  // the two do not belong together: by certificate, store, epoch or protocol
}

// Peers returns how the machine stands with the others, in the topology's order.
func (n *Node) Peers() []Peer {
	links := map[protocol.ID]transport.PeerStats{}
	for _, p := range n.host.Stats().Network.Peers {
		links[p.ID] = p
	}
	var out []Peer
	for _, s := range n.cfg.Topology.Sites {
		if s.Fenced {
			continue
		}
		for _, m := range s.Machines {
			if m.Name == n.cfg.Machine {
				continue
			}
			p := Peer{Machine: m.Name, Site: s.Name}
			ids, _ := Members(n.cfg.Topology, m.Name) // which is in it
			for _, id := range ids {
				link := links[id]
				p.Reachable = p.Reachable || link.State == transport.Up
				if link.Err != nil && (p.Err == nil || link.Refused) {
					p.Err, p.Refused = link.Err, link.Refused
				}
			}
			if p.Reachable && !p.Refused {
				p.Err = nil
			}
			out = append(out, p)
		}
	}
	return out
}

// Status returns how the machine is.
func (n *Node) Status(ctx context.Context) (*pb.StatusResponse, error) {
	out := &pb.StatusResponse{
		Machine: n.cfg.Machine, Site: n.cfg.Topology.Sites[n.site].Name, Epoch: n.cfg.Topology.Epoch,
		UptimeSeconds: int64(time.Since(n.started) / time.Second), Time: uint64(max(n.host.Now(), 0)),
	}
	for _, p := range n.Peers() {
		row := &pb.PeerStatus{Machine: p.Machine, Site: p.Site, Reachable: p.Reachable, Refused: p.Refused}
		if p.Err != nil {
			row.Error = plainerr.Text(p.Err)
		}
		out.Peers = append(out.Peers, row)
	}
	if what := n.awaits.Load(); what != nil {
		out.Awaits = *what
		return out, nil
	}
	speculation, err := n.Speculation(ctx)
	if err != nil {
		return nil, err
	}
	out.Speculation = speculationToWire(speculation)
	servers, err := n.Servers(ctx)
	if err != nil {
		return nil, err
	}
	for _, st := range servers {
		row := &pb.ShardStatus{
			Shard: uint32(st.Shard), Admitted: st.Admitted, Syncing: st.Syncing, Refused: st.Refused,
			Transactions: uint64(st.Txns), Undecided: uint64(st.Undecided),
			Blocked: uint64(st.Blocked), Wanting: uint64(st.Wanting), Locks: uint64(st.Locks), Waiting: uint64(st.Waiting),
			Reservations: uint64(st.Reservations), Held: uint64(st.Held),
			TransactionBytes: uint64(st.TxnBytes), CopiedValues: st.Counts.CopiedValues, CopiedBytes: st.Counts.CopiedBytes,
			CopiedServers: uint32(st.Copied), NeededServers: uint32(st.Needed),
			Leads: st.Leads, Term: st.Term,
		}
		row.Move = n.move.status(st)
		row.Snapshots = n.snapshotsToWire(st.Snapshots)
		if c := st.Clock; c != nil {
			row.Clock = &pb.ClockStatus{Leads: c.Leads, Ceiling: c.Ceiling, Sites: uint32(c.Sites), Ahead: int64(c.Ahead),
				Within: uint64(c.Within), MaxOffset: uint64(c.MaxOffset), Off: c.Off}
		}
		if o := st.Order; o != nil {
			row.Order = &pb.OrderStatus{Holding: uint64(o.Holding), Held: o.Held, Late: o.Late, Full: o.Full,
				MeanNs: uint64(o.Mean)}
		}
		if id := st.OldestUndecided; !id.IsZero() {
			row.OldestUndecided = &pb.Version{Time: id.Time, Client: uint64(id.Client)}
		}
		for _, id := range st.OldestBlocked {
			row.BlockedTransactions = append(row.BlockedTransactions, &pb.Version{Time: id.Time, Client: uint64(id.Client)})
		}
		out.Shards = append(out.Shards, row)
	}
	return out, nil
}
