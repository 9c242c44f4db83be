package replicated

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
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

// Load is what real replicas and clients on this machine are put under: all in one process, over TCP on the loopback interface.
type Load struct {
	Protocol smr.Protocol
	Ack      smr.CallKind
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
	Syncs   uint64          // commits of the disks; 0 if not durable
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
	return g.measure()
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
	h, err := host.New(host.Config{Network: transport.Config{Cluster: cluster0, IDs: []protocol.ID{id}, Insecure: true}, Listener: lis})
	if err != nil {
		return err
	}
	n, err := host.Add(h, host.Spec[smr.Message]{ID: id, Node: node, Codec: g.load.Protocol.Codec, Disk: disk, App: func(msg smr.Message) {
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

// measure has the clients call, in a closed loop, and counts what is answered between the warm-up and the end.
func (g *group) measure() (Rate, error) {
	warm, cancel := context.WithTimeout(g.ctx, 30*time.Second)
	defer cancel()
	for i, c := range g.clients {
		if _, err := c.Do(warm, smr.Call{Kind: g.load.Ack, Command: kv.Put([]byte("warm"), nil)}); err != nil {
			return Rate{}, fmt.Errorf("client %d: %w", i, errors.Join(err, context.Cause(g.ctx)))
		}
	}
	var m meter
	var callers sync.WaitGroup
	calling, end := context.WithCancel(g.ctx)
	defer end()
	for i, c := range g.clients {
		for w := range g.load.Window {
			callers.Go(func() { m.call(calling, g, c, uint64(i*g.load.Window+w)) })
		}
	}
	sleep(g.ctx, g.load.For/3)
	began, syncs := time.Now(), g.syncs()
	m.on.Store(true)
	sleep(g.ctx, g.load.For)
	m.on.Store(false)
	r := Rate{Lasting: time.Since(began), Syncs: g.syncs() - syncs}
	end()
	callers.Wait()
	r.Calls, r.All, r.Took = int(m.calls.Load()), int(m.all.Load()), m.took
	return r, errors.Join(m.err, context.Cause(g.ctx))
}

func (g *group) syncs() uint64 {
	var sum uint64
	if g.load.Durable {
		for _, n := range g.nodes {
			sum += n.Stats().Commits
		}
	}
	return sum
}

// meter counts calls.
type meter struct {
	on    atomic.Bool
	calls atomic.Int64 // while on
	all   atomic.Int64

	mu   sync.Mutex
	took []time.Duration
	err  error
}

// sampling is how many calls there are to one whose time is kept.
const sampling = 16

// call makes one call after the other. Each writes a key of its own.
func (m *meter) call(ctx context.Context, g *group, c *client.Client, caller uint64) {
	key := make([]byte, 8)
	value := make([]byte, 8)
	binary.BigEndian.PutUint64(key, caller)
	for n := uint64(0); ctx.Err() == nil; n++ {
		binary.BigEndian.PutUint64(value, n)
		began := time.Now()
		_, err := c.Do(ctx, smr.Call{Kind: g.load.Ack, Command: kv.Put(key, value)})
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			m.fail(err)
			return
		}
		m.all.Add(1)
		if m.on.Load() {
			if m.calls.Add(1)%sampling == 0 {
				m.note(time.Since(began))
			}
		}
	}
}

func (m *meter) note(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.took = append(m.took, d)
}

func (m *meter) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		m.err = err
	}
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
