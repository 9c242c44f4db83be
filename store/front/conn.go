package front

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/internal/callers"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/transport"
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
	client   store.ClientNode
	node     *host.Node[store.Message]
	halt     context.CancelFunc // ends the node
	waiting  callers.Table[store.Message]
	asking   *request // whose call the node is just given; the node's goroutine has it

	mu      sync.Mutex
	flights map[flight]bool
	sending map[requestKey]*request
	reached bool // some machine has been connected to, ever
	// begun are the Refs of what attempts have had prepared that have not ended.
	begun  map[uint64]bool
	parted chan struct{} // has room for one; fewer AbandonRequests may be under way: see line.abandons
	wg     sync.WaitGroup
	closed bool
	ended  chan struct{} // closed when Close has nothing left to do
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

func (m *machine) connected() bool { return m.conn.GetState() == connectivity.Ready }

// waiter is who waits for the answer to what it gave the node.
type waiter struct {
	first   func(client.Answer) // nil: it does not care
	local   func(store.TxnID)   // takes word of a local commit; nil: it does not care
	then    func(store.Message) // takes the answer, or nil; it must not wait
	answer  chan store.Message  // of one that ask returned: gets the answer, or is closed
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
	node, err := cfg.Protocol.NewClient(store.Config{ID: clientID, Epoch: cfg.Topology.Epoch, Layout: layout,
		RoundTrip: cfg.RoundTrip})
	if err != nil {
		return nil, err
	}
	if cfg.RoundTrip == 0 {
		cfg.RoundTrip = defaultRoundTrip
	}
	c := &Conn{
		cfg: cfg, client: node, machines: map[protocol.ID]*machine{},
		sending: map[requestKey]*request{}, flights: map[flight]bool{},
		begun: map[uint64]bool{}, parted: make(chan struct{}, 1), ended: make(chan struct{}),
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
				c.machines[cfg.Topology.ServerID(i, k)] = to
			}
		}
	}
	if err := c.start(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// maxDeliveries is how many calls the node may not have looked at; more wait.
const maxDeliveries = 65536

// start runs the node.
func (c *Conn) start() error {
	h, err := host.New(host.Config{
		// The host's network is nobody's: messages are carried by calls.
		Network: transport.Config{Cluster: "clients of a store", Insecure: true}, Clock: c.cfg.Clock, Seed: c.cfg.Seed,
	})
	if err != nil {
		return err
	}
	c.node, err = host.Add(h, host.Spec[store.Message]{
		ID: clientID, Node: &asker{c.client, c}, Codec: c.cfg.Protocol.Codec, App: c.tell, Carry: c.carry,
		QueueDeliveries: maxDeliveries,
	})
	if err != nil {
		return err
	}
	var ctx context.Context
	ctx, c.halt = context.WithCancel(context.Background())
	c.wg.Go(func() {
		if err := h.Run(ctx); err != nil {
			panic(err) // it has no disk and no listener that could fail: a node has panicked
		}
	})
	return nil
}

// asker is the client node, and notes whose call it is at.
type asker struct {
	store.ClientNode
	c *Conn
}

// asked is a call to the node, with what is sent for it.
type asked struct {
	store.Message
	of *request
}

// seen tells that the node has looked at all that it was given before.
type seen struct{ done chan struct{} }

// Receive implements protocol.Node.
func (a *asker) Receive(env *protocol.Env[store.Message], from protocol.ID, msg store.Message) {
	a.c.asking = nil
	if from == protocol.App {
		switch m := msg.(type) {
		case seen:
			close(m.done)
			return
		case asked:
			a.c.asking, msg = m.of, m.Message
		}
	}
	a.ClientNode.Receive(env, from, msg)
}

// Expire implements protocol.Node.
func (a *asker) Expire(env *protocol.Env[store.Message], t protocol.Timer) {
	a.c.asking = nil
	a.ClientNode.Expire(env, t)
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
			Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2,
				MaxDelay: 2 * time.Second},
			MinConnectTimeout: max(4*c.cfg.RoundTrip, time.Second),
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second,
			Timeout: max(4*c.cfg.RoundTrip, 2*time.Second)}),
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
func (c *Conn) nameUnary(
	ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	return call(c.named(ctx), method, req, reply, conn, opts...)
}

func (c *Conn) nameStream(
	ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer,
	opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	return open(c.named(ctx), desc, conn, method, opts...)
}

func (c *Conn) named(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, clusterKey, c.cfg.Cluster, protocolKey, c.cfg.Protocol.Title(),
		shardsKey, strconv.Itoa(c.cfg.Topology.Shards))
}

// Close ends all calls, whose outcomes are unknown then, and returns when nothing of the connection
// is left. It tells the store to free what was prepared for transactions that go on, and waits for
// the answers for partFor at most, as it does for those of transactions that have just ended.
func (c *Conn) Close() {
	c.mu.Lock()
	first := !c.closed
	c.closed = true
	c.mu.Unlock()
	if first {
		c.end()
		close(c.ended)
	}
	<-c.ended
}

// end is Close, once.
func (c *Conn) end() {
	c.mu.Lock()
	refs, prepared := c.waiting.Refs(), slices.Sorted(maps.Keys(c.begun))
	c.mu.Unlock()
	if c.halt != nil {
		for _, ref := range refs { // who waits for a commit gets its name
			c.deliver(store.Cancel{Ref: ref})
		}
		for _, ref := range prepared {
			c.deliver(store.Abandon{Ref: ref})
		}
		c.awaitNode()
		c.part()
	}
	c.waiting.Close(ErrClosed, func(uint64) store.Message { return nil })
	c.close()
	if c.halt != nil {
		c.halt()
	}
	c.wg.Wait()
	for _, m := range c.machines {
		m.conn.Close() // some nodes share one, which may be closed twice
	}
}

// partFor is how long a connection that is closed waits for machines to hear of what it gives up.
// Those that do not hear of it find out by themselves, later.
const partFor = 250 * time.Millisecond

// part returns when machines have answered all AbandonRequests, those of attempts that ended before
// the connection was closed too, or after partFor. It does not wait for those that nothing answers.
func (c *Conn) part() {
	timer := time.NewTimer(partFor)
	defer timer.Stop()
	for {
		c.mu.Lock()
		left := false
		for _, m := range c.machines {
			left = left || m.line.abandons()
		}
		c.mu.Unlock()
		if !left {
			return
		}
		select {
		case <-c.parted:
		case <-timer.C:
			return
		}
	}
}

// begins notes that something is prepared for an attempt, until ends.
func (c *Conn) begins(ref uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun[ref] = true
}

func (c *Conn) ends(ref uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.begun, ref)
}

// awaitNode returns when the node has looked at all that it was given before, or is not to do so
// any more.
func (c *Conn) awaitNode() {
	s := seen{make(chan struct{})}
	c.deliver(s)
	select {
	case <-s.done:
	case <-c.closing.Done():
	}
}

// deliver hands the node a message of the application. The node takes all until the connection is
// closed.
func (c *Conn) deliver(msg store.Message) {
	_ = c.node.Deliver(context.Background(), msg) // who waits for an answer is told when it is closed
}

// ErrClosed is what waits when a Conn is closed.
var ErrClosed = errors.New("front: the connection is closed")

// tell gives an answer, or a guess, to who waits for it.
func (c *Conn) tell(msg store.Message) {
	switch m := msg.(type) {
	case store.First:
		c.waiting.Tell(m.Ref, m)
	case store.Speculates:
		c.waiting.Tell(m.Ref, m)
	case store.Got:
		c.waiting.Answer(m.Ref, m)
	case store.Done:
		c.waiting.Answer(m.Ref, m)
	case store.Declared:
		c.waiting.Answer(m.Ref, m)
	}
}

// took takes what one is told who waits. Nothing says that the connection is closed.
func (c *Conn) took(w *waiter, msg store.Message) {
	switch m := msg.(type) {
	case nil:
		w.then(nil)
	case store.Speculates:
		if w.local != nil {
			w.local(m.ID)
		}
	case store.First:
		if w.first != nil && !m.Pending {
			w.first(client.Answer{Value: m.Value, Site: c.site(m.Site)})
		}
	default:
		c.mu.Lock()
		c.over(w.request)
		c.mu.Unlock()
		w.then(m)
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

// carry sends a message of the node, unless it is a large one that is on its way already. It panics
// at what the service has no call for: see store.Protocol.NewClient.
func (c *Conn) carry(id protocol.ID, msg store.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	to := c.machines[id]
	m, commit := commitOf(msg)
	_, abandons := msg.(store.AbandonRequest)
	var timeout time.Duration
	switch msg.(type) {
	case store.CommitRequest, store.SpeculateRequest, store.DeclareRequest, store.AbandonRequest:
		timeout = max(4*c.cfg.RoundTrip, 2*c.client.Patience())
	case store.ReadRequest:
		timeout = max(4*c.cfg.RoundTrip, 2*c.client.ReadPatience())
	default:
		panic(fmt.Sprintf("front: a client's node of %s sends a %T, for which the service has no call",
			c.cfg.Protocol.Name, msg))
	}
	switch {
	case to == nil || c.closed && !abandons:
		return
	case !commit || m.Bytes() <= largeBytes:
		to.line.push(c.newCall(to, msg), id, msg, timeout)
		return
	case c.flights[flight{id, m.Txn.ID}]:
		return
	}
	c.flights[flight{id, m.Txn.ID}] = true
	ctx, cancel := context.WithTimeout(c.closing, 2*timeout)
	k := c.newCall(to, msg)
	k.cancel = cancel
	c.wg.Go(func() { c.sendAlone(ctx, k, id, msg) })
}
