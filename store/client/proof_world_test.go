package client_test

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
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/front"
	"github.com/foresay/foresay/store/machine"
	"github.com/foresay/foresay/store/replicatedcommit"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

const (
	proofTrip   = 40 * time.Millisecond // what nodes believe; the network's is below
	proofRetain = time.Minute
	proofFor    = 2 * time.Second
)

var proofSites = []string{"a", "b", "c"}

// A proofScenario is what a world is made from.
type proofScenario struct {
	seed    uint64
	faults  proofFaults
	drivers int
	mode    client.Mode // of all, if there are no others
	modes   []client.Mode
	bug     bugKind
	blind   bool // nobody objects to commits: the history and the disks have to show what is wrong
}

// proofWorld is a store of real machines with real clients, in a bubble.
type proofWorld struct {
	sc       proofScenario
	start    time.Time
	net      *shape.Network
	links    map[wan.Path]wan.Link
	topology store.Topology
	machines []*proofMachine
	stopped  atomic.Bool // no more transactions
	done     chan struct{}
	wg       sync.WaitGroup

	mu       sync.Mutex
	rand     *rand.Rand // of disks
	err      error      // the first thing that is wrong
	txns     []*proofTxn
	versions map[string]map[store.Version]string
	open     []*proofLink
	seeds    uint64
	faulted  map[string]int
	unknown  int // transactions whose client was not told the outcome
}

// proofMachine is one of a site's, at a place of the network of its own.
type proofMachine struct {
	w     *proofWorld
	site  int
	index int
	place wan.Site
	skew  atomic.Int64
	disks map[string]*proofDisk
	life  *machineLife // nil: it is down
}

type machineLife struct {
	dead  atomic.Bool
	stop  context.CancelFunc
	ended chan error
}

// proofLink is a client with its connection.
type proofLink struct {
	site    wan.Site
	conn    *front.Conn
	watch   *watch
	bug     *bug
	client  *client.Client
	crashed atomic.Bool
	once    sync.Once
}

var errLinkClosed = front.ErrClosed

func (l *proofLink) close() { l.once.Do(l.conn.Close) }

func clientPlace(site int) wan.Site { return wan.Site("client-" + proofSites[site]) }

func newProofWorld(sc proofScenario) (*proofWorld, error) {
	w := &proofWorld{
		sc: sc, start: time.Now(), done: make(chan struct{}), rand: rand.New(rand.NewPCG(sc.seed, 11)),
		links:    map[wan.Path]wan.Link{},
		versions: map[string]map[store.Version]string{}, faulted: map[string]int{},
	}
	perSite := 1
	if sc.seed%4 == 3 {
		perSite = 2
	}
	var places []wan.Site
	w.topology = store.Topology{Epoch: 1, Shards: 2}
	for i, name := range proofSites {
		site := store.TopologySite{Name: name, Number: i + 1}
		for j := range perSite {
			place := wan.Site(fmt.Sprintf("%s-%d", name, j+1))
			places = append(places, place)
			w.machines = append(w.machines, &proofMachine{w: w, site: i, index: j, place: place, disks: map[string]*proofDisk{}})
			site.Machines = append(site.Machines, store.Machine{Name: string(place), Peers: string(place) + ":1",
				Client: string(place) + ":2"})
		}
		w.topology.Sites = append(w.topology.Sites, site)
		places = append(places, clientPlace(i))
	}
	m := wan.Uniform(0, places...)
	for i, a := range places {
		for _, b := range places[i+1:] {
			delay := time.Duration(6+w.rand.IntN(10)) * time.Millisecond
			if siteOf(a) == siteOf(b) {
				delay = 200 * time.Microsecond
			}
			for _, p := range []wan.Path{{From: a, To: b}, {From: b, To: a}} {
				w.links[p] = wan.Link{Delay: delay, Jitter: delay / 4}
				m = m.WithLink(p, w.links[p])
			}
		}
	}
	w.net = shape.NewNetwork(m, sc.seed)
	for _, m := range w.machines {
		if err := m.up(); err != nil {
			return w, errors.Join(err, w.down())
		}
	}
	return w, nil
}

// siteOf returns the name of a place's site.
func siteOf(place wan.Site) string {
	for _, name := range proofSites {
		if place == wan.Site("client-"+name) || len(place) > 1 && string(place[:len(name)+1]) == name+"-" {
			return name
		}
	}
	return ""
}

func (w *proofWorld) now() time.Duration { return time.Since(w.start) }

// fail notes the first thing that is wrong.
func (w *proofWorld) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}

func (w *proofWorld) failure() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// disk returns the disk of a shard of a machine.
func (m *proofMachine) disk(name string) *proofDisk {
	w := m.w
	w.mu.Lock()
	defer w.mu.Unlock()
	d := m.disks[name]
	if d == nil {
		d = &proofDisk{name: string(m.place) + "/" + name, durable: host.NewMemory(), durably: w.durable}
		d.took = func() time.Duration {
			w.mu.Lock()
			defer w.mu.Unlock()
			return time.Duration(100+w.rand.IntN(3000)) * time.Microsecond
		}
		m.disks[name] = d
	}
	return d
}

// durable notes the versions of keys that a site has.
func (w *proofWorld) durable(op host.Op) {
	if op.Kind != protocol.KindPut || len(op.Key) == 0 || op.Key[0] != 'v' {
		return
	}
	r := wirefmt.NewReader(op.Value)
	var v store.Value
	store.ValueFields(r.Coder(), &v)
	if err := r.Close(); err != nil {
		w.fail(fmt.Errorf("%s on disk: %w", op.Key, err))
		return
	}
	key, text := string(op.Key[1:]), proofShown(v.Version, v.Present, string(v.Bytes))
	w.mu.Lock()
	all := w.versions[key]
	if all == nil {
		all = map[store.Version]string{}
		w.versions[key] = all
	}
	old, ok := all[v.Version]
	all[v.Version] = text
	w.mu.Unlock()
	if ok && old != text {
		w.fail(fmt.Errorf("version %v of %q is %q and %q", v.Version, key, old, text))
	}
}

// up starts the machine on its disks.
func (m *proofMachine) up() error {
	w := m.w
	l := &machineLife{ended: make(chan error, 1)}
	cfg := machine.Config{
		Protocol: replicatedcommit.Protocol(), Cluster: "proof", Topology: w.topology, Machine: string(m.place),
		Insecure: true, Check: true, Seed: w.seed(),
		RoundTrip: proofTrip, Retain: proofRetain, StopTimeout: 2 * time.Second,
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
	n, err := machine.Open(cfg)
	if err != nil {
		return err
	}
	var ctx context.Context
	ctx, l.stop = context.WithCancel(context.Background())
	m.life = l
	w.wg.Go(func() {
		err := n.Run(ctx)
		if err != nil && !l.dead.Load() {
			w.fail(fmt.Errorf("machine %s ended: %w", m.place, err))
		}
		l.ended <- err
	})
	return nil
}

var errDead = errors.New("the machine is dead")

// crash ends the machine: with its power, so that what was not synced is lost, or only the process.
func (m *proofMachine) crash(r *rand.Rand) {
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
func (m *proofMachine) all() []*proofDisk {
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	var all []*proofDisk
	for _, s := range m.w.topology.ShardsOf(m.site, m.index) {
		if d := m.disks[fmt.Sprintf("shard-%d", s)]; d != nil {
			all = append(all, d)
		}
	}
	return all
}

// seed returns a new one.
func (w *proofWorld) seed() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seeds++
	return w.sc.seed<<16 + w.seeds
}

// link connects a client.
func (w *proofWorld) link(d *driver) *proofLink {
	l := &proofLink{site: clientPlace(d.site)}
	cfg := front.Config{Protocol: replicatedcommit.Protocol(), Topology: w.topology, Insecure: true,
		Dial: w.net.DialContext(l.site), RoundTrip: proofTrip, Seed: w.seed()}
	if w.sc.faults&faultSkew != 0 {
		skew := time.Duration(d.rand.IntN(2000)-1000) * time.Millisecond
		cfg.Clock = func() time.Duration { return time.Duration(time.Now().UnixNano()) + skew }
	}
	var err error
	if l.conn, err = front.Dial(cfg); err != nil {
		panic(err) // the topology is good
	}
	l.watch = newWatch(w, l.conn, d.mode)
	backend := client.Backend(l.watch)
	if w.sc.bug != noBug {
		l.bug = &bug{Backend: backend, watch: l.watch, kind: w.sc.bug}
		backend = l.bug
	}
	if l.client, err = client.New(client.Config{Backend: backend, Mode: d.mode, MaxAttempts: 8,
		Backoff: 20 * time.Millisecond, QuorumAfter: time.Duration(5+d.rand.IntN(200)) * time.Millisecond}); err != nil {
		panic(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open = append(w.open, l)
	return l
}

// newTxn begins a transaction of a driver.
func (w *proofWorld) newTxn(driver int, on *watch) *proofTxn {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := &proofTxn{n: len(w.txns) + 1, driver: driver, begin: w.now(), watch: on}
	w.txns = append(w.txns, t)
	return t
}

// note takes what the client said of a transaction.
func (w *proofWorld) note(t *proofTxn, err error) {
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
			if v := c.decision.Outcome.Verdict; !c.ended || v != store.Aborted && v != store.Rejected {
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

func (w *proofWorld) end(t *proofTxn, v store.Verdict) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t.end, t.verdict = w.now(), v
}

// play runs clients under faults, heals everything, and judges. It leaves nothing behind.
func playProof(ctx context.Context, sc proofScenario) (w *proofWorld, err error) {
	w, err = newProofWorld(sc)
	if err != nil {
		return w, err
	}
	var drivers []*driver
	var running sync.WaitGroup
	for i := range sc.drivers {
		d := &driver{w: w, n: i, site: i % len(proofSites), mode: sc.mode,
			rand: rand.New(rand.NewPCG(sc.seed, uint64(100+i)))}
		if len(sc.modes) > 0 {
			d.mode = sc.modes[(i+int(sc.seed))%len(sc.modes)]
		}
		drivers = append(drivers, d)
		running.Go(func() { d.drive(ctx) })
	}
	f := &faulter{w: w, rand: rand.New(rand.NewPCG(sc.seed, 12)), until: w.start.Add(proofFor)}
	f.run()
	if err := f.heal(); err != nil {
		w.fail(err)
	}
	time.Sleep(10 * proofTrip)
	w.stopped.Store(true)
	running.Wait()
	if w.failure() == nil {
		w.judge(ctx, drivers[0])
	}
	err = errors.Join(w.failure(), w.down())
	return w, err
}

// down stops all that runs.
func (w *proofWorld) down() (err error) {
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
		}
	}
	w.wg.Wait()
	w.net.Close()
	return err
}
