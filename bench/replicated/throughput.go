package replicated

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/host/waldisk"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/client"
	"github.com/foresay/foresay/smr/kv"
	"github.com/foresay/foresay/transport"
	"github.com/foresay/foresay/wal"
)

// Load is what real replicas and clients on this machine are put under: all in one process, over
// TCP on the loopback interface.
type Load struct {
	Protocol smr.Protocol
	Ack      smr.Ack // what calls wait for; AckDefault is AckOrdered
	Replicas int
	Clients  int // each a host and a session of its own
	Window   int // calls of a client at once
	Durable  bool
	Dir      string // for disks; needed if Durable
	MaxBatch int
	For      time.Duration
}

// Rate is what came of a Load.
type Rate struct {
	Calls   int // within Lasting
	All     int // with those of the warm-up
	Lasting time.Duration
	Took    []time.Duration // of some of the calls, evenly chosen
	Commits uint64          // of the disks, many calls in one; 0 if not durable
}

// PerSecond returns the calls per second.
func (r Rate) PerSecond() float64 { return float64(r.Calls) / r.Lasting.Seconds() }

const cluster0 = "bench"

// Throughput runs a load. Writes have a key and a value of 8 bytes each.
func Throughput(ctx context.Context, l Load) (Rate, error) {
	ctx, stop := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	g := &group{load: l, ctx: ctx, stop: stop, wg: &wg}
	defer wg.Wait()
	defer stop(nil)
	if err := g.startReplicas(); err != nil {
		return Rate{}, err
	}
	defer g.closeStores()
	defer wg.Wait()
	defer stop(nil)
	for i := range l.Clients {
		if err := g.startClient(protocol.ID(70000 + i)); err != nil {
			return Rate{}, err
		}
	}
	calls := &callers{load: l, ctx: ctx}
	for _, c := range g.clients {
		calls.put = append(calls.put, func(ctx context.Context, key, value []byte) error {
			call := smr.Call{Kind: smr.Propose, Ack: l.Ack, Command: kv.Put(key, value)}
			if l.Ack == smr.AckExecuted {
				call.Kind = smr.Execute
			}
			_, err := c.Do(ctx, call)
			return err
		})
	}
	if err := calls.warm(30 * time.Second); err != nil {
		return Rate{}, err
	}
	return calls.measure(g.commits)
}

// group is a running Load.
type group struct {
	load    Load
	ctx     context.Context
	stop    context.CancelCauseFunc
	wg      *sync.WaitGroup
	members []smr.Member
	stores  []*wal.Store
	nodes   []*host.Node[smr.Message]
	clients []*client.Client
}

func (g *group) startReplicas() error {
	var listeners []net.Listener
	for i := range g.load.Replicas {
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("replica %d: %w", i+1, err)
		}
		listeners = append(listeners, lis)
		g.members = append(g.members, smr.Member{ID: protocol.ID(i + 1), Address: lis.Addr().String()})
	}
	for i, m := range g.members {
		if err := g.startReplica(m.ID, listeners[i]); err != nil {
			return fmt.Errorf("replica %d: %w", m.ID, err)
		}
	}
	return nil
}

func (g *group) startReplica(id protocol.ID, lis net.Listener) error {
	node, err := g.load.Protocol.NewReplica(smr.ReplicaConfig{
		ID: id, Members: g.members, Machine: kv.New(), Leader: 1, MaxBatch: g.load.MaxBatch, SnapshotEvery: 10_000_000,
	})
	if err != nil {
		return err
	}
	var disk host.Disk = host.NewMemory()
	if g.load.Durable {
		store, err := wal.Open(filepath.Join(g.load.Dir, fmt.Sprint("replica", id)), wal.Options{})
		if err != nil {
			return err
		}
		g.stores = append(g.stores, store)
		if disk, err = waldisk.New(store, "replica"); err != nil {
			return err
		}
	}
	h, err := host.New(host.Config{Network: transport.Config{Cluster: cluster0, IDs: []protocol.ID{id}, Insecure: true},
		Listener: lis})
	if err != nil {
		return err
	}
	n, err := host.Add(h, host.Spec[smr.Message]{ID: id, Node: node, Codec: g.load.Protocol.Codec, Disk: disk,
		App: func(msg smr.Message) {
			if r, ok := msg.(smr.Refused); ok {
				g.stop(fmt.Errorf("replica %d: refused: %s", id, r.Reason))
			}
		}})
	if err != nil {
		return err
	}
	g.nodes = append(g.nodes, n)
	return g.run(h)
}

// run runs a host that knows all members.
func (g *group) run(h *host.Host) error {
	for _, m := range g.members {
		if err := h.SetPeer(m.ID, m.Address); err != nil {
			return err
		}
	}
	g.wg.Go(func() {
		if err := h.Run(g.ctx); err != nil {
			g.stop(err)
		}
	})
	return nil
}

func (g *group) startClient(id protocol.ID) error {
	node, err := g.load.Protocol.NewClient(smr.ClientConfig{ID: id, Members: g.members, Nearest: 1})
	if err != nil {
		return err
	}
	h, err := host.New(host.Config{Network: transport.Config{Cluster: cluster0, Insecure: true}})
	if err != nil {
		return err
	}
	var c *client.Client
	n, err := host.Add(h, host.Spec[smr.Message]{
		ID: id, Node: node, Codec: g.load.Protocol.Codec, App: func(msg smr.Message) { c.Receive(msg) },
	})
	if err != nil {
		return err
	}
	c = client.New(func(ctx context.Context, msg smr.Message) error { return n.Deliver(ctx, msg) })
	g.clients = append(g.clients, c)
	return g.run(h)
}

func (g *group) closeStores() {
	for _, s := range g.stores {
		if err := s.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			g.stop(err)
		}
	}
}

// commits returns how many commits the disks have made.
func (g *group) commits() uint64 {
	var sum uint64
	if g.load.Durable {
		for _, n := range g.nodes {
			sum += n.Stats().Commits
		}
	}
	return sum
}
