package proof

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/front"
	storemachine "github.com/foresay/foresay/store/machine"
	"github.com/foresay/foresay/store/storetest"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

const (
	roundTrip = 40 * time.Millisecond // what nodes believe; the network's is below
	retention = time.Minute
	playFor   = 2 * time.Second
)

// A scenario is what a world is made from.
type scenario struct {
	Subject
	seed         uint64
	faults       sim.Faults
	crowd        bool // clients end, in the middle of what they do
	applications int
	mode         client.Mode // of all, if there are no others
	modes        []client.Mode
	blind        bool // nobody objects to commits: the history and the servers have to show what is wrong
}

// world is a store of real machines with real clients, in a bubble.
type world struct {
	sc       scenario
	start    time.Time
	net      *shape.Network
	links    map[wan.Path]wan.Link
	topology store.Topology
	sites    map[wan.Site]int // of all places, by the sites' places in the topology
	machines []*machine
	stopped  atomic.Bool // no more transactions
	wg       sync.WaitGroup

	mu       sync.Mutex
	rand     *rand.Rand // of disks
	err      error      // the first thing that is wrong
	txns     []*txn
	versions storetest.Versions
	open     []*link
	seeds    uint64
	faulted  map[string]int
	unknown  int // transactions whose client was not told the outcome
}

// machine is one of a site's, at a place of the network of its own.
type machine struct {
	w       *world
	site    int
	index   int
	place   wan.Site
	skew    atomic.Int64
	disks   map[string]*disk
	servers map[protocol.ID]protocol.Node[store.Message] // of the last life
	life    *life                                        // nil: it is down
}

type life struct {
	node  *storemachine.Node
	dead  atomic.Bool
	stop  context.CancelFunc
	ended chan error
}

// link is a client with its connection.
type link struct {
	place   wan.Site
	session int
	conn    *front.Conn
	watch   *watch
	client  *client.Client
	crashed atomic.Bool
}

func (l *link) close() { l.conn.Close() }

func (w *world) clientPlace(site int) wan.Site {
	return wan.Site("client-" + w.topology.Sites[site].Name)
}

func newWorld(sc scenario) (*world, error) {
	w := &world{
		sc: sc, start: time.Now(), rand: rand.New(rand.NewPCG(sc.seed, 11)), links: map[wan.Path]wan.Link{},
		sites: map[wan.Site]int{}, versions: storetest.Versions{}, faulted: map[string]int{},
	}
	if err := w.arrange(); err != nil {
		return nil, err
	}
	w.connect()
	for _, m := range w.machines {
		if err := m.up(); err != nil {
			return w, errors.Join(err, w.down())
		}
	}
	return w, nil
}

// arrange makes the topology: three sites with a machine each, now and then two. If shards may be
// at some of the sites only, one world in five has five sites with three copies of each shard.
func (w *world) arrange() (err error) {
	names, perSite := []string{"a", "b", "c"}, 1
	w.topology = store.Topology{Epoch: 1, Shards: 2}
	switch seed := w.sc.seed; {
	case w.sc.Protocol.Partial && seed%5 == 2:
		names = []string{"a", "b", "c", "d", "e"}
		w.topology.Shards = 3
		if w.topology.Placement, err = store.Ring(names, w.topology.Shards, 3, nil); err != nil {
			return err
		}
	case seed%4 == 3:
		perSite = 2
	}
	if w.sc.Protocol.Coordinating {
		w.topology.Coordinating = store.Names(names, store.Coordinating(len(names), nil))
	}
	for i, name := range names {
		site := store.TopologySite{Name: name, Number: i + 1}
		for j := range perSite {
			place := wan.Site(fmt.Sprintf("%s-%d", name, j+1))
			w.sites[place] = i
			w.machines = append(w.machines, &machine{w: w, site: i, index: j, place: place, disks: map[string]*disk{}})
			site.Machines = append(site.Machines, store.Machine{Name: string(place), Peers: string(place) + ":1",
				Client: string(place) + ":2"})
		}
		w.topology.Sites = append(w.topology.Sites, site)
		w.sites[w.clientPlace(i)] = i
	}
	return w.topology.Validate()
}

// connect makes the network.
func (w *world) connect() {
	var places []wan.Site
	for _, m := range w.machines {
		places = append(places, m.place)
	}
	for i := range w.topology.Sites {
		places = append(places, w.clientPlace(i))
	}
	matrix := wan.Uniform(0, places...)
	for i, a := range places {
		for _, b := range places[i+1:] {
			delay := time.Duration(6+w.rand.IntN(10)) * time.Millisecond
			if w.sites[a] == w.sites[b] {
				delay = 200 * time.Microsecond
			}
			for _, p := range []wan.Path{{From: a, To: b}, {From: b, To: a}} {
				w.links[p] = wan.Link{Delay: delay, Jitter: delay / 4}
				matrix = matrix.WithLink(p, w.links[p])
			}
		}
	}
	w.net = shape.NewNetwork(matrix, w.sc.seed)
}

func (w *world) now() time.Duration { return time.Since(w.start) }

// fail notes the first thing that is wrong.
func (w *world) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}

func (w *world) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// applied notes the versions of keys that servers write.
func (w *world) applied(key store.Key, v store.Value) {
	w.mu.Lock()
	err := w.versions.Add(w.sc.Protocol, key, v)
	w.mu.Unlock()
	if err != nil {
		w.fail(err)
	}
}

// disk returns the disk of a shard of a machine.
func (m *machine) disk(name string) *disk {
	w := m.w
	w.mu.Lock()
	defer w.mu.Unlock()
	d := m.disks[name]
	if d == nil {
		d = newDisk(string(m.place)+"/"+name, func() time.Duration {
			w.mu.Lock()
			defer w.mu.Unlock()
			return time.Duration(100+w.rand.IntN(3000)) * time.Microsecond
		})
		m.disks[name] = d
	}
	return d
}

// protocol returns the subject's, whose servers tell the world what they write, and are known to
// it: it looks at them when the machine has stopped.
func (m *machine) protocol() store.Protocol {
	p := m.w.sc.Protocol
	newServer := p.NewServer
	m.servers = map[protocol.ID]protocol.Node[store.Message]{}
	p.NewServer = func(cfg store.Config) (protocol.Node[store.Message], error) {
		cfg.Applied = m.w.applied
		n, err := newServer(cfg)
		m.servers[cfg.ID] = n
		return n, err
	}
	return p
}

// up starts the machine on its disks.
func (m *machine) up() error {
	w := m.w
	l := &life{ended: make(chan error, 1)}
	cfg := storemachine.Config{
		Protocol: m.protocol(), Cluster: "proof", Topology: w.topology, Machine: string(m.place),
		Insecure: true, Check: true, Seed: w.seed(),
		RoundTrip: roundTrip, Retain: retention, StopTimeout: 2 * time.Second,
		Disk: func(name string) (host.Disk, error) { return m.disk(name).open(), nil },
	}
	base := time.Duration(time.Now().UnixNano())
	cfg.Clock = func() time.Duration {
		return base + time.Since(time.Unix(0, int64(base))) + time.Duration(m.skew.Load())
	}
	var err error
	if cfg.PeerListener, err = w.net.Listen(m.place); err != nil {
		return err
	}
	if cfg.ClientListener, err = w.net.Listen(m.place); err != nil {
		return err
	}
	dial := w.net.DialContext(m.place)
	cfg.PeerDial = func(ctx context.Context, address string) (net.Conn, error) {
		if l.dead.Load() {
			return nil, errDead
		}
		c, err := dial(ctx, address)
		if err == nil && l.dead.Load() {
			c.Close()
			return nil, errDead
		}
		return c, err
	}
	if l.node, err = storemachine.Open(cfg); err != nil {
		return err
	}
	var ctx context.Context
	ctx, l.stop = context.WithCancel(context.Background())
	m.life = l
	w.wg.Go(func() {
		err := l.node.Run(ctx)
		if err != nil && !l.dead.Load() {
			w.fail(fmt.Errorf("machine %s ended: %w", m.place, err))
		}
		l.ended <- err
	})
	return nil
}

var errDead = errors.New("the machine is dead")

// crash ends the machine: with its power, so that what was not synced is lost, or only the process.
func (m *machine) crash(r *rand.Rand) {
	l := m.life
	if l == nil {
		return
	}
	m.life = nil
	l.dead.Store(true)
	m.w.net.Crash(m.place) // from now on nobody hears of it
	power := r.IntN(3) > 0
	for _, d := range m.all() {
		d.crash(func(n int) int {
			if !power {
				return n
			}
			return r.IntN(n + 1)
		})
	}
	l.stop()
}

// all returns the machine's disks.
func (m *machine) all() []*disk {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	var all []*disk
	for _, s := range m.w.topology.ShardsOf(m.site, m.index) {
		if d := m.disks[storemachine.ShardName(s)]; d != nil {
			all = append(all, d)
		}
	}
	return all
}

// seed returns a new one.
func (w *world) seed() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seeds++
	return w.sc.seed<<16 + w.seeds
}

// link connects a client.
func (w *world) link(d *application) *link {
	l := &link{place: w.clientPlace(d.site), session: 100*d.n + d.links}
	d.links++
	cfg := front.Config{Protocol: w.sc.Protocol, Topology: w.topology, Insecure: true,
		Dial: w.net.DialContext(l.place), RoundTrip: roundTrip, Seed: w.seed()}
	if w.sc.faults.Has(sim.Skew) {
		skew := time.Duration(d.rand.IntN(2000)-1000) * time.Millisecond
		cfg.Clock = func() time.Duration { return time.Duration(time.Now().UnixNano()) + skew }
	}
	var err error
	if l.conn, err = front.Dial(cfg); err != nil {
		panic(err) // the topology is good
	}
	l.watch = newWatch(w, l.conn, d.mode)
	if l.client, err = client.New(client.Config{Backend: l.watch, Mode: d.mode, MaxAttempts: d.attempts,
		PrepareEarly: true, Backoff: 20 * time.Millisecond,
		QuorumAfter: time.Duration(5+d.rand.IntN(200)) * time.Millisecond}); err != nil {
		panic(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open = append(w.open, l)
	return l
}

// newTxn begins a transaction of an application.
func (w *world) newTxn(session int, on *watch) *txn {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := &txn{n: len(w.txns) + 1, session: session, begin: w.now(), watch: on}
	w.txns = append(w.txns, t)
	return t
}

// note takes what the client said of a transaction.
func (w *world) note(t *txn, err error) {
	v, ok := verdict(err)
	calls := t.watch.attempts(t.n)
	switch {
	case !ok:
		w.fail(fmt.Errorf("transaction %d: %w", t.n, err))
	case v == store.Committed:
		if u, ok := errors.AsType[*userError](err); ok {
			t.run = u.run
		}
		t.watch.readAlone(t)
		calls = t.watch.attempts(t.n)
		if err := t.run.agrees(calls); err != nil && !w.sc.blind {
			w.fail(fmt.Errorf("transaction %d: %w", t.n, err))
		}
	case v == store.Aborted && !w.sc.blind:
		for _, c := range calls {
			if v := c.decision.Outcome.Verdict; !c.ahead && (!c.ended || v != store.Aborted && v != store.Rejected) {
				w.fail(fmt.Errorf("transaction %d is said to be aborted (%w), its commit was %+v", t.n, err, c.decision.Outcome))
			}
		}
	}
	w.end(t, v)
	if v == store.Unknown {
		w.mu.Lock()
		w.unknown++
		w.mu.Unlock()
	}
}

func (w *world) end(t *txn, v store.Verdict) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t.end, t.verdict = w.now(), v
}

// play runs clients under faults, heals everything, and judges. It leaves nothing behind.
func play(ctx context.Context, sc scenario) (w *world, err error) {
	w, err = newWorld(sc)
	if err != nil {
		return w, err
	}
	var applications []*application
	var running sync.WaitGroup
	for i := range sc.applications {
		d := &application{w: w, n: i, site: i % len(w.topology.Sites), mode: sc.mode, attempts: 8,
			rand: rand.New(rand.NewPCG(sc.seed, uint64(100+i)))}
		if len(sc.modes) > 0 {
			d.mode = sc.modes[(i+int(sc.seed))%len(sc.modes)]
		}
		applications = append(applications, d)
		running.Go(func() { d.drive(ctx) })
	}
	f := &faulter{w: w, rand: rand.New(rand.NewPCG(sc.seed, 12)), until: w.start.Add(playFor)}
	f.run()
	if err := f.heal(); err != nil {
		w.fail(err)
	}
	time.Sleep(10 * roundTrip)
	w.stopped.Store(true)
	running.Wait()
	if w.failure() == nil {
		w.judge(ctx, applications[0])
	}
	err = errors.Join(w.failure(), w.down())
	return w, err
}

// down stops all that runs.
func (w *world) down() (err error) {
	w.mu.Lock()
	open := slices.Clone(w.open)
	w.mu.Unlock()
	for _, l := range open {
		l.close()
	}
	for _, m := range w.machines {
		if m.life != nil {
			m.life.stop()
			err = errors.Join(err, <-m.life.ended)
			m.life = nil
		}
	}
	w.wg.Wait()
	w.net.Close()
	return err
}
