package byzantine

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/client"
	"github.com/foresay/foresay/bft/counter"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/host/waldisk"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/transport"
	"github.com/foresay/foresay/wal"
)

// Load is what real replicas and clients on this machine are put under: all in one process, over
// TCP on the loopback interface, with Ed25519 and without TLS.
type Load struct {
	System
	// Variant is what of client speculation is switched on.
	Variant
	// Clients each have a host and a key of their own. Each makes one update after the other, which
	// shows the reply to the one before; with Pipelined, so many at once, which show none.
	Clients   int
	Pipelined int
	Durable   bool
	Dir       string // for disks; needed if Durable
	For       time.Duration
}

// A Variant is how much of client speculation is switched on, each with what those before it have
// [PBFT-CS Table 1].
type Variant string

// The variants.
const (
	Plain      Variant = "plain"         // PBFT
	Firsts     Variant = "first replies" // of which clients take no notice
	Engine     Variant = "client"        // programs are loops of the engine that speculate on nothing
	Unchecked  Variant = "unchecked"     // they speculate, and requests do not say on what: wrong if a guess is
	Speculated Variant = "all"           // PBFT-CS
)

// Rate is what came of a Load.
type Rate struct {
	Calls   int // confirmed within Lasting
	Lasting time.Duration
	// CPU is the processor time of all replicas and clients meanwhile.
	CPU time.Duration
	// Aborted is how many the group refused as a guess was wrong, since the start.
	Aborted int
}

// PerSecond returns the calls per second.
func (r Rate) PerSecond() float64 { return float64(r.Calls) / r.Lasting.Seconds() }

// loadTrip is what nodes are told of the network. Nothing takes that long, but a busy machine may.
const loadTrip = 250 * time.Millisecond

// Calls of each client before anything is measured, and of all then; and how long that may take.
const (
	settled         = 20
	longestSettling = 20 * time.Second
)

// loadClient is the first client's ID, one that no replica can have.
const loadClient = 70000

// Measure runs a load.
func (l Load) Measure(ctx context.Context) (r Rate, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	g := &group{load: l, ctx: ctx, stop: stop, keys: map[protocol.ID]*bft.Signer{}}
	defer func() {
		stop(nil)
		g.wg.Wait()
		for _, s := range g.stores {
			if e := s.Close(); e != nil && !errors.Is(e, os.ErrClosed) {
				err = errors.Join(err, e)
			}
		}
	}()
	if err := g.start(); err != nil {
		return Rate{}, err
	}
	if err := g.warm(); err != nil {
		return Rate{}, err
	}
	var calls sync.WaitGroup
	calling, end := context.WithCancel(ctx)
	for _, c := range g.clients {
		calls.Go(func() {
			if err := g.load.call(calling, c); err != nil && calling.Err() == nil {
				stop(err)
			}
		})
	}
	g.await(settled * int64(l.Clients)) // until all are connected with all
	g.sleep(l.For / 2)
	began, before, used := time.Now(), g.confirmed.Load(), bench.CPUTime()
	g.sleep(l.For)
	g.await(before + settled) // for ratios that mean something on a busy machine
	r = Rate{Calls: int(g.confirmed.Load() - before), Lasting: time.Since(began), CPU: bench.CPUTime() - used,
		Aborted: int(g.aborted.Load())}
	end()
	for _, c := range g.clients {
		c.Close(nil)
	}
	calls.Wait()
	if r.Calls == 0 && context.Cause(ctx) == nil {
		return r, errors.New("nobody was served")
	}
	return r, context.Cause(ctx)
}

// group is a running Load.
type group struct {
	load      Load
	ctx       context.Context
	stop      context.CancelCauseFunc
	wg        sync.WaitGroup
	keys      map[protocol.ID]*bft.Signer
	directory bft.Directory
	addresses map[protocol.ID]string
	stores    []*wal.Store
	clients   []*client.Client

	confirmed, aborted atomic.Int64
}

func (g *group) sleep(d time.Duration) {
	select {
	case <-g.ctx.Done():
	case <-time.After(d):
	}
}

// warm has each client make a call: what is sent before all are connected is lost, and sent again.
func (g *group) warm() error {
	ctx, cancel := context.WithTimeout(g.ctx, 20*time.Second)
	defer cancel()
	calls, ctx := errgroup.WithContext(ctx)
	for _, c := range g.clients {
		calls.Go(func() error {
			_, err := c.Execute(ctx, counter.Query())
			return err
		})
	}
	return calls.Wait()
}

// await waits until so many calls were confirmed, but not for ever.
func (g *group) await(calls int64) {
	for since := time.Now(); g.confirmed.Load() < calls && time.Since(since) < longestSettling && g.ctx.Err() == nil; {
		g.sleep(10 * time.Millisecond)
	}
}

// key makes the key of a node.
func (g *group) key(id protocol.ID) (bft.Key, error) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return bft.Key{}, err
	}
	g.keys[id] = bft.NewSigner(private)
	return g.keys[id].Key(), nil
}

func (g *group) start() error {
	g.directory.Clients, g.addresses = map[protocol.ID]bft.Key{}, map[protocol.ID]string{}
	var listeners []net.Listener
	for id := protocol.ID(1); id <= 4; id++ {
		key, err := g.key(id)
		if err != nil {
			return err
		}
		g.directory.Members = append(g.directory.Members, bft.Party{ID: id, Key: key})
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return fmt.Errorf("replica %d: %w", id, err)
		}
		listeners = append(listeners, l)
		g.addresses[id] = l.Addr().String()
	}
	for i := range g.load.Clients {
		id := protocol.ID(loadClient + i)
		key, err := g.key(id)
		if err != nil {
			return err
		}
		g.directory.Clients[id] = key
	}
	for i, l := range listeners {
		if err := g.startReplica(protocol.ID(i+1), l); err != nil {
			return fmt.Errorf("replica %d: %w", i+1, err)
		}
	}
	for i := range g.load.Clients {
		if err := g.startClient(protocol.ID(loadClient + i)); err != nil {
			return fmt.Errorf("client %d: %w", i, err)
		}
	}
	return nil
}

func (g *group) startReplica(id protocol.ID, l net.Listener) error {
	scheme := bft.NewScheme("bench", bft.Ed25519{}) // each has its own, as it remembers
	c := bft.ReplicaConfig{ID: id, Directory: &g.directory, Scheme: scheme, Signer: g.keys[id],
		Service: counter.Service{}, RoundTrip: loadTrip, NoFirst: g.load.Variant == Plain}
	if g.load.Name == zyz {
		c.MaxUnderway = 4096 // its primary proposes so many batches in half of a round trip, which is very long here
	}
	node, err := g.load.protocol().NewReplica(c)
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
	h, err := host.New(host.Config{Network: transport.Config{Cluster: "bench", IDs: []protocol.ID{id}, Insecure: true},
		Listener: l})
	if err != nil {
		return err
	}
	_, err = host.Add(h, host.Spec[bft.Message]{ID: id, Node: node, Codec: g.load.protocol().Codec(scheme), Disk: disk})
	if err != nil {
		return err
	}
	return g.run(h)
}

// run runs a host that knows all members.
func (g *group) run(h *host.Host) error {
	for _, m := range g.directory.Members {
		if err := h.SetPeer(m.ID, g.addresses[m.ID]); err != nil {
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
	scheme := bft.NewScheme("bench", bft.Ed25519{})
	node, err := g.load.protocol().NewClient(bft.ClientConfig{ID: id, Directory: &g.directory, Scheme: scheme,
		Signer: g.keys[id], RoundTrip: loadTrip})
	if err != nil {
		return err
	}
	h, err := host.New(host.Config{Network: transport.Config{Cluster: "bench", Insecure: true}})
	if err != nil {
		return err
	}
	var c *client.Client
	n, err := host.Add(h, host.Spec[bft.Message]{ID: id, Node: node, Codec: g.load.protocol().Codec(scheme),
		App: func(msg bft.Message) {
			if done, ok := msg.(bft.Done); ok {
				if done.Result.Outcome == bft.Executed {
					g.confirmed.Add(1)
				} else {
					g.aborted.Add(1)
				}
			}
			c.Receive(msg)
		}})
	if err != nil {
		return err
	}
	mode := control.ModeOn
	if g.load.Variant == Engine {
		mode = control.ModeOff
	}
	c, err = client.New(client.Config{Mode: mode, Deliver: func(ctx context.Context, msg bft.Message) error {
		if call, ok := msg.(bft.Call); ok && g.load.Variant == Unchecked {
			call.After, call.Assumes = 0, nil
			msg = call
		}
		return n.Deliver(ctx, msg)
	}})
	if err != nil {
		return err
	}
	g.clients = append(g.clients, c)
	return g.run(h)
}

// call has a client make updates until its context ends.
func (l Load) call(ctx context.Context, c *client.Client) error {
	if l.Pipelined > 0 {
		group, ctx := errgroup.WithContext(ctx)
		for range l.Pipelined {
			group.Go(func() error {
				for ctx.Err() == nil {
					if _, err := c.Execute(ctx, counter.Increment(counter.Reply{})); err != nil {
						return err
					}
				}
				return nil
			})
		}
		return group.Wait()
	}
	typed := counting(c)
	step := func(ctx context.Context, shown counter.Reply) (counter.Reply, bool, error) {
		r, err := typed.Execute(ctx, shown)
		if err == nil && r.Refused {
			err = fmt.Errorf("the counter refuses %+v", shown)
		}
		return r, false, err
	}
	var last counter.Reply
	var err error
	if l.Variant == Plain || l.Variant == Firsts {
		for err == nil {
			last, _, err = step(ctx, last)
		}
		return err
	}
	_, err = foresay.Loop(ctx, last, step, l.limits())
	return err
}
