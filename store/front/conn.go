package front

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
)

// Config says which store a Conn goes to. Zero fields have the defaults that they name.
type Config struct {
	Protocol store.Protocol // required
	Topology store.Topology
	// Cluster is the store's name: machines of another store refuse calls. Empty: they do not know.
	Cluster string
	// TLS is for the machines' client addresses. Without it Insecure must be set.
	TLS      *tls.Config
	Insecure bool
	// Dial connects to an address of the topology; nil is TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Options are for all connections: credentials per call, say, or interceptors.
	Options []grpc.DialOption
	// RoundTrip is between the sites that are farthest from each other; 0 is 250 ms. Timeouts are
	// multiples of it.
	RoundTrip time.Duration
	// Outdated is called when a machine refuses a call because it is of another epoch, before that
	// call ends. It must not wait. nil: nobody is told.
	Outdated func(machine string)
	// Clock is the client's clock, since 1970. nil is the machine's.
	Clock func() time.Duration
	// Seed is for the client's name and its chances: no two clients may have the same. 0 is a new
	// one.
	Seed uint64
}

// Conn is a client's connection to all sites of a store. Its methods may be called concurrently.
type Conn struct {
	cfg      Config
	sites    []string
	machines map[protocol.ID]*machine
	closing  context.Context
	close    context.CancelFunc

	mu      sync.Mutex
	node    store.ClientNode
	env     *protocol.Env[store.Message]
	timers  map[protocol.Timer]*time.Timer
	last    uint64
	waiting map[uint64]*waiter
	flights map[flight]bool
	asking  *request // whose call the node is just given
	sending map[requestKey]*request
	reached bool // some machine has been connected to, ever
	wg      sync.WaitGroup
	closed  bool
}

// machine is where calls to some nodes go.
type machine struct {
	name string
	site string
	conn *grpc.ClientConn
	stub pb.StoreClient
	line line
	// waited says that a commit has waited for a connection that did not come. It is guarded by
	// Conn.mu.
	waited bool
}

// waiter is who waits for the answer to what it gave the node.
type waiter struct {
	first   func(client.Answer) // nil: it does not care
	answer  chan store.Message  // has room for one
	request *request
}

// clientID is that of the node, which nobody else sees.
const clientID = protocol.ID(1 << 16)

// Dial returns a connection; machines are connected to when they are needed. The error names the
// field of the configuration that is wrong.
func Dial(cfg Config) (*Conn, error) {
	layout, err := cfg.Topology.Layout()
	if err != nil {
		return nil, err
	}
	if cfg.Protocol.NewClient == nil {
		return nil, errors.New("front: Config.Protocol is missing")
	}
	if (cfg.TLS == nil) != cfg.Insecure {
		return nil, errors.New("front: set either Config.TLS or Config.Insecure")
	}
	node, err := cfg.Protocol.NewClient(store.Config{ID: clientID, Epoch: cfg.Topology.Epoch, Layout: layout, RoundTrip: cfg.RoundTrip})
	if err != nil {
		return nil, err
	}
	if cfg.RoundTrip == 0 {
		cfg.RoundTrip = defaultRoundTrip
	}
	if cfg.Clock == nil {
		start, at := time.Now(), time.Duration(time.Now().UnixNano())
		// does not jump when the machine's time is set
		cfg.Clock = func() time.Duration { return at + time.Since(start) }
	}
	if cfg.Seed == 0 {
		cfg.Seed = rand.Uint64()
	}
	c := &Conn{
		cfg: cfg, node: node, machines: map[protocol.ID]*machine{}, timers: map[protocol.Timer]*time.Timer{}, waiting: map[uint64]*waiter{},
		sending: map[requestKey]*request{}, flights: map[flight]bool{}, env: protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(cfg.Seed, 0))),
	}
	c.closing, c.close = context.WithCancel(context.Background())
	for i, site := range cfg.Topology.Sites {
		c.sites = append(c.sites, site.Name)
		if site.Fenced {
			continue
		}
		for j, m := range site.Machines {
			to, err := c.connect(site.Name, m)
			if err != nil {
				c.Close()
				return nil, fmt.Errorf("front: machine %q: %w", m.Name, err)
			}
			c.machines[site.CoordinatorID(j)] = to
			for _, k := range cfg.Topology.ShardsOf(i, j) {
				c.machines[site.ShardID(k)] = to
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.env.Begin(c.cfg.Clock())
	c.node.Start(c.env, nil)
	return c, nil
}

const defaultRoundTrip = 250 * time.Millisecond

func (c *Conn) connect(site string, m store.Machine) (*machine, error) {
	creds := insecure.NewCredentials()
	if c.cfg.TLS != nil {
		creds = credentials.NewTLS(c.cfg.TLS)
	}
	opts := []grpc.DialOption{
		grpc.WithTransportCredentials(creds),
		// A machine that comes back is found soon.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: max(4*c.cfg.RoundTrip, time.Second),
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: max(4*c.cfg.RoundTrip, 2*time.Second)}),
		grpc.WithDisableServiceConfig(),
		grpc.WithInitialWindowSize(store.MaxTxnBytes), grpc.WithInitialConnWindowSize(4 * store.MaxTxnBytes),
	}
	if c.cfg.Cluster != "" {
		opts = append(opts, grpc.WithChainUnaryInterceptor(c.nameUnary), grpc.WithChainStreamInterceptor(c.nameStream))
	}
	address := m.Client
	if c.cfg.Dial != nil {
		opts = append(opts, grpc.WithContextDialer(c.cfg.Dial))
		address = "passthrough:///" + address
	}
	conn, err := grpc.NewClient(address, append(opts, c.cfg.Options...)...)
	if err != nil {
		return nil, err
	}
	to := &machine{name: m.Name, site: site, conn: conn, stub: pb.NewStoreClient(conn)}
	to.line = line{c: c, to: to, wake: make(chan struct{}, 1)}
	return to, nil
}

// nameUnary and nameStream have calls name the store that they are for.
func (c *Conn) nameUnary(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	return call(metadata.AppendToOutgoingContext(ctx, clusterKey, c.cfg.Cluster), method, req, reply, conn, opts...)
}

func (c *Conn) nameStream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return open(metadata.AppendToOutgoingContext(ctx, clusterKey, c.cfg.Cluster), desc, conn, method, opts...)
}

// Close ends all calls, whose outcomes are unknown then, and returns when nothing of the connection
// is left.
func (c *Conn) Close() {
	c.mu.Lock()
	var guesses []func()
	for _, ref := range slices.Collect(maps.Keys(c.waiting)) { // who waits for a commit gets its name
		guesses = append(guesses, c.step(func(env *protocol.Env[store.Message]) { c.node.Receive(env, protocol.App, store.Cancel{Ref: ref}) })...)
	}
	c.closed = true
	waiting := c.waiting
	c.waiting = map[uint64]*waiter{}
	for t, timer := range c.timers {
		timer.Stop()
		delete(c.timers, t)
	}
	c.mu.Unlock()
	for _, guess := range guesses {
		guess()
	}
	for _, w := range waiting {
		close(w.answer)
	}
	c.close()
	c.wg.Wait()
	for _, m := range c.machines {
		m.conn.Close() // some nodes share one, which may be closed twice
	}
}

// ErrClosed is what waits when a Conn is closed.
var ErrClosed = errors.New("front: the connection is closed")

// run calls the node and carries out what it wants done.
func (c *Conn) run(call func(env *protocol.Env[store.Message])) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	guesses := c.step(call)
	c.mu.Unlock()
	for _, guess := range guesses {
		guess()
	}
}

// step is run with mu held, of a Conn that is not closed. It returns what is to be called without
// mu.
func (c *Conn) step(call func(env *protocol.Env[store.Message])) (guesses []func()) {
	c.env.Begin(c.cfg.Clock())
	call(c.env)
	for _, e := range c.env.Out {
		switch e.Kind {
		case protocol.KindSend, protocol.KindSendAhead:
			if e.To == protocol.App {
				if guess := c.tell(e.Msg); guess != nil {
					guesses = append(guesses, guess)
				}
				continue
			}
			if m := c.machines[e.To]; m != nil {
				c.begin(m, e.To, e.Msg)
			}
		case protocol.KindAfter:
			c.after(e.Timer, e.Delay)
		case protocol.KindStop:
			c.stop(e.Timer)
		}
	}
	c.asking = nil
	return guesses
}

func (c *Conn) after(t protocol.Timer, d time.Duration) {
	c.stop(t)
	var self *time.Timer
	self = time.AfterFunc(d, func() {
		c.run(func(env *protocol.Env[store.Message]) {
			if c.timers[t] == self { // it was not replaced while this waited for the lock
				delete(c.timers, t)
				c.node.Expire(env, t)
			}
		})
	})
	c.timers[t] = self
}

func (c *Conn) stop(t protocol.Timer) {
	if timer := c.timers[t]; timer != nil {
		timer.Stop()
		delete(c.timers, t)
	}
}

// tell gives an answer to who waits for it, and returns what is to be called if it is only a guess.
// It is called with mu held.
func (c *Conn) tell(msg store.Message) (guess func()) {
	var ref uint64
	switch m := msg.(type) {
	case store.First:
		w := c.waiting[m.Ref]
		if w == nil || w.first == nil || m.Pending {
			return nil
		}
		return func() { w.first(client.Answer{Value: m.Value, Site: c.site(m.Site)}) }
	case store.Got:
		ref = m.Ref
	case store.Done:
		ref = m.Ref
	default:
		return nil
	}
	c.answer(ref, msg)
	return nil
}

// answer ends the wait for an answer. It is called with mu held.
func (c *Conn) answer(ref uint64, msg store.Message) {
	if w := c.waiting[ref]; w != nil {
		delete(c.waiting, ref)
		c.over(w.request)
		w.answer <- msg
	}
}

func (c *Conn) site(i int) string {
	if i < 0 || i >= len(c.sites) {
		return ""
	}
	return c.sites[i]
}

// largeBytes is above how much a request has a stream of its own, lest others wait behind it, and
// is not sent again while it is on its way: the connection loses nothing, and a second one would
// only be in the way of the first.
const largeBytes = 32 << 10

// flight is a large request that is on its way to a node.
type flight struct {
	to  protocol.ID
	txn store.TxnID
}

// begin sends a message, unless it is a large one that is on its way already. It is called with mu
// held.
func (c *Conn) begin(to *machine, id protocol.ID, msg store.Message) {
	m, commit := msg.(store.CommitRequest)
	switch {
	case !commit:
		to.line.push(c.newCall(to, msg), id, msg, max(4*c.cfg.RoundTrip, 2*c.node.ReadPatience()))
		return
	case m.Bytes() <= largeBytes:
		to.line.push(c.newCall(to, msg), id, msg, max(4*c.cfg.RoundTrip, 2*c.node.Patience()))
		return
	case c.flights[flight{id, m.Txn.ID}]:
		return
	}
	c.flights[flight{id, m.Txn.ID}] = true
	ctx, cancel := context.WithTimeout(c.closing, 2*max(4*c.cfg.RoundTrip, 2*c.node.Patience()))
	k := c.newCall(to, msg)
	k.cancel = cancel
	c.wg.Go(func() { c.sendAlone(ctx, k, id, m) })
}
