package replicatedcommit_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/host/waldisk"
	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/replicatedcommit"
	"github.com/foresay/foresay/transport"
	"github.com/foresay/foresay/wal"
	"github.com/foresay/foresay/wal/faultfs"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

const (
	crashTrip   = 20 * time.Millisecond
	crashRetain = 5 * time.Minute
	crashShards = 2
	crashKeys   = 5
)

var crashSites = []wan.Site{"a", "b", "c"}

// A plan says which crashes a run has.
type plan struct {
	seed    uint64
	gap     int  // a machine loses its power before as many operations of its disk, counted from when it was chosen
	all     bool // and with it all others
	crashes int
	after   time.Duration // instead of gap: all lose their power after as long
	noSync  bool          // the fault to notice
}

// powerWorld is three machines with disks that lose what was not synced, one at each site, and a
// client beside each.
type powerWorld struct {
	plan     plan
	net      *shape.Network
	layout   store.Layout
	machines []*machine
	apps     []*app
	log      *txnLog
	rand     *rand.Rand // of who chooses what crashes: one machine at a time

	armed     atomic.Int64 // the machine of which operations count
	countdown atomic.Int64
	kinds     [16]atomic.Int64 // of the operations that did not happen any more
	crashed   atomic.Int64
	enough    chan struct{} // closed after plan.crashes
	done      chan struct{} // closed when all is judged
	failure   chan error
	wg        sync.WaitGroup
}

// A machine is a site's coordinator and shards on one disk.
type machine struct {
	w    *powerWorld
	site int
	disk *faultfs.Disk

	mu     sync.Mutex
	life   *life
	shards []*waldisk.Disk // of the life, once it serves
}

// A life is a machine between two crashes.
type life struct {
	disk *faultfs.Disk
	dead atomic.Bool
	died chan struct{} // closed after ops is set
	ops  int           // operations of the disk that were done when the power failed
}

// playPower runs a plan and returns what is wrong. It leaves nothing behind.
func playPower(ctx context.Context, p plan) (w *powerWorld, err error) {
	w = &powerWorld{
		plan: p, log: newTxnLog(), rand: rand.New(rand.NewPCG(p.seed, 3)),
		enough: make(chan struct{}), done: make(chan struct{}), failure: make(chan error, 100),
	}
	sites := slices.Clone(crashSites)
	for i, name := range crashSites {
		base := protocol.ID(10 * (i + 1))
		w.layout.Sites = append(w.layout.Sites, store.Site{
			Name: string(name), Coordinators: []protocol.ID{base}, Shards: []protocol.ID{base + 1, base + 2},
		})
		sites = append(sites, "client-"+name)
	}
	w.net = shape.NewNetwork(wan.Uniform(crashTrip, sites...), p.seed)
	w.arm(w.rand.IntN(len(crashSites)))
	for i := range crashSites {
		w.machines = append(w.machines, &machine{w: w, site: i, disk: faultfs.New()})
	}
	for _, m := range w.machines {
		w.wg.Go(func() {
			if err := m.run(); err != nil {
				w.failure <- fmt.Errorf("machine %s: %w", crashSites[m.site], err)
			}
		})
	}
	clients, hangUp := context.WithCancel(ctx)
	ended := make(chan error, len(crashSites))
	for i := range crashSites {
		a, h, err := w.newApp(i)
		if err != nil {
			w.failure <- err
			break
		}
		w.apps = append(w.apps, a)
		go func() { ended <- h.Run(clients) }()
	}
	err = w.work(ctx)
	close(w.done)
	w.wg.Wait()
	hangUp()
	for range w.apps {
		err = errors.Join(err, <-ended)
	}
	return w, err
}

// arm chooses the machine that loses its power next.
func (w *powerWorld) arm(site int) {
	w.countdown.Store(int64(w.plan.gap))
	w.armed.Store(int64(site))
}

// work has the clients make transactions while machines crash, and judges.
func (w *powerWorld) work(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case err := <-w.failure:
			cancel(err)
		case <-ctx.Done():
		}
	}()
	stop := make(chan struct{})
	var apps sync.WaitGroup
	errs := make([]error, len(w.apps))
	for i, a := range w.apps {
		apps.Go(func() { errs[i] = a.drive(ctx, stop) })
	}
	if w.plan.after > 0 {
		time.Sleep(w.plan.after)
		w.cut(nil, 0)
	}
	select {
	case <-w.enough:
	case <-time.After(time.Minute):
	case <-ctx.Done():
	}
	w.armed.Store(-1)
	time.Sleep(20 * crashTrip) // with all machines
	close(stop)
	apps.Wait()
	if err := errors.Join(errs...); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	return w.judge(ctx)
}

// fault counts the operations of an armed machine's disk, and cuts it off before the last one.
func (m *machine) fault(l *life) faultfs.Fault {
	done := 0
	return func(op faultfs.Op) error {
		if op.Kind >= faultfs.KindRead || l.dead.Load() {
			return nil
		}
		if m.w.plan.gap > 0 && m.w.armed.Load() == int64(m.site) && m.w.countdown.Add(-1) == 0 {
			m.w.kinds[op.Kind].Add(1)
			m.w.cut(m, done)
		}
		done++
		return nil
	}
}

// cut takes the power from a machine, or all. From now on nobody hears of them, and what their
// disks are told is not on those that they find afterwards. What it was when the power failed is
// known already for the machine that is named.
func (w *powerWorld) cut(first *machine, ops int) {
	for _, m := range w.machines {
		if m != first && first != nil && !w.plan.all {
			continue
		}
		m.mu.Lock()
		l := m.life
		m.mu.Unlock()
		if l == nil || l.dead.Swap(true) {
			continue
		}
		w.net.Crash(crashSites[m.site])
		if m == first {
			l.ops = ops
		} else {
			l.ops = l.disk.Ops() // by now a few more, of which nobody hears
		}
		close(l.died)
	}
	if w.crashed.Add(1) == int64(w.plan.crashes) {
		close(w.enough)
	}
}

// run lives the machine's lives.
func (m *machine) run() error {
	for n := uint64(0); ; n++ {
		l, err := m.live()
		if err != nil || l == nil {
			return err
		}
		// Every third time the process alone ends, and what it wrote is there though it was not
		// synced.
		for moment := range m.disk.Moments() {
			if moment.Ops == l.ops && (m.w.plan.seed+n)%3 == 2 {
				m.disk = moment.Kill()
			} else if moment.Ops == l.ops {
				m.disk = moment.Crash(m.w.plan.seed<<8 + n)
			}
		}
		time.Sleep(time.Duration(2+3*m.site) * crashTrip)
		if m.w.armed.Load() == int64(m.site) {
			m.w.arm((m.site + m.w.rand.IntN(3)) % 3) // often itself, which may crash in its recovery then
		}
	}
}

// live opens the disk and serves until the power fails, or until all is done; then it returns nil.
func (m *machine) live() (l *life, err error) {
	w := m.w
	l = &life{died: make(chan struct{}), disk: m.disk}
	m.disk.Trace()
	m.disk.Inject(m.fault(l))
	m.mu.Lock()
	m.life, m.shards = l, nil
	m.mu.Unlock()
	s, err := wal.Open("data", wal.Options{FS: m.disk, MemTableBytes: 32 << 10, CacheBytes: 1 << 20,
		NoSync: w.plan.noSync})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if l.dead.Load() {
		return l, nil
	}
	site := w.layout.Sites[m.site]
	h, err := m.host(l, append(slices.Clone(site.Coordinators), site.Shards...))
	if err != nil {
		return nil, err
	}
	spec := host.Spec[store.Message]{
		Codec: replicatedcommit.Protocol().Codec,
		App:   func(msg store.Message) { w.failure <- fmt.Errorf("machine %s says %v", site.Name, msg) },
	}
	spec.ID = site.Coordinators[0]
	if spec.Node, err = replicatedcommit.Protocol().NewCoordinator(w.config(spec.ID)); err == nil {
		_, err = host.Add(h, spec)
	}
	var shards []*waldisk.Disk
	for _, id := range site.Shards {
		var d *waldisk.Disk
		if err == nil {
			d, err = waldisk.New(s, fmt.Sprint(id))
		}
		spec.ID, spec.Disk = id, d
		shards = append(shards, d)
		if err == nil {
			spec.Node, err = replicatedcommit.Protocol().NewServer(w.config(id))
		}
		if err == nil {
			_, err = host.Add(h, spec)
		}
	}
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	m.shards = shards
	m.mu.Unlock()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	select {
	case <-l.died: // the process goes on a little, alone
		stop()
		<-ended // perhaps with its listener's error
		return l, nil
	case err := <-ended:
		if l.dead.Load() {
			<-l.died
			return l, nil
		}
		return nil, fmt.Errorf("the host ended: %v", err)
	case <-w.done:
		stop()
		return nil, <-ended
	}
}

func (w *powerWorld) config(id protocol.ID) store.Config {
	return store.Config{ID: id, Layout: w.layout, RoundTrip: crashTrip, Retain: crashRetain}
}

var errNoPower = errors.New("the machine has no power")

// host returns the host of a life, whose dials fail when it is over.
func (m *machine) host(l *life, ids []protocol.ID) (*host.Host, error) {
	lis, err := m.w.net.Listen(crashSites[m.site])
	if err != nil {
		return nil, err
	}
	dial := m.w.net.DialContext(crashSites[m.site])
	h, err := host.New(host.Config{
		Seed: m.w.plan.seed + 1, Check: true, Listener: &mortal{lis, l},
		Network: transport.Config{Cluster: "crash", Insecure: true, IDs: ids,
			Dial: func(ctx context.Context, address string) (conn, error) {
				if l.dead.Load() {
					return nil, errNoPower
				}
				c, err := dial(ctx, address)
				if err == nil && l.dead.Load() {
					c.Close()
					return nil, errNoPower
				}
				return c, err
			}},
	})
	if err != nil {
		return nil, err
	}
	return h, m.w.setPeers(h)
}

// setPeers tells a host where the machines are.
func (w *powerWorld) setPeers(h *host.Host) error {
	for i, s := range w.layout.Sites {
		for _, id := range append(slices.Clone(s.Coordinators), s.Shards...) {
			if err := h.SetPeer(id, string(crashSites[i])+":1"); err != nil {
				return err
			}
		}
	}
	return nil
}

// judge waits until everything is decided and forgotten, and looks at the history and the disks.
func (w *powerWorld) judge(ctx context.Context) error {
	if err := w.apps[0].readAll(ctx); err != nil {
		return err
	}
	for waited := time.Duration(0); ; waited += time.Second {
		left := w.undecided()
		if left == "" {
			break
		}
		if waited > 3*crashRetain {
			return fmt.Errorf("after %v: %s", waited, left)
		}
		time.Sleep(time.Second)
		if err := context.Cause(ctx); err != nil {
			return err
		}
	}
	if err := w.log.check(); err != nil {
		return err
	}
	for shard := range crashShards {
		var first map[string]string
		for i, m := range w.machines {
			values := map[string]string{}
			for k, v := range m.disks()[shard].Keys().Scan([]byte("v"), []byte("w")) {
				values[string(k)] = string(v)
			}
			if i > 0 && !maps.Equal(first, values) {
				return fmt.Errorf("shard %d: site a holds %q, site %s %q", shard, first, crashSites[i], values)
			}
			first = values
		}
	}
	return nil
}

func (m *machine) disks() []*waldisk.Disk {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.shards
}

// undecided names a vote or a decision that a disk still has. Its locks would be there as well.
func (w *powerWorld) undecided() string {
	for _, m := range w.machines {
		for _, d := range m.disks() {
			for k := range d.Keys().Scan([]byte("t"), []byte("u")) {
				return fmt.Sprintf("%s of site %s has the transaction %x", d.Name(), crashSites[m.site], k)
			}
		}
	}
	return ""
}

// TestConformanceOnDisks crashes machines before each operation of their disks, one after the other
// and all at once, while clients go on.
func TestConformanceOnDisks(t *testing.T) {
	const last, shards = 40, 2
	first, every := seed.First(t, 1), 2
	if seed.Named() {
		every = 1
	}
	gaps := last / every
	var kinds [16]atomic.Int64
	var crashes, committed atomic.Int64
	t.Cleanup(func() {
		t.Logf("%d crashes, %d transactions committed", crashes.Load(), committed.Load())
		for _, k := range []faultfs.Kind{faultfs.KindCreate, faultfs.KindWrite, faultfs.KindSync, faultfs.KindSyncDir} {
			if kinds[k].Load() == 0 && !t.Failed() {
				t.Errorf("no crash before a %v", k)
			}
		}
		if want := int64(4 * gaps); crashes.Load() < want && !t.Failed() {
			t.Errorf("%d crashes, want %d", crashes.Load(), want)
		}
	})
	for shard := range shards {
		t.Run(strconv.Itoa(shard), func(t *testing.T) {
			t.Parallel()
			for i := shard; i < gaps; i += shards {
				synctest.Test(t, func(t *testing.T) {
					gap := 1 + i*every
					p := plan{seed: first + uint64(gap), gap: gap, all: i%3 == 0, crashes: 4}
					w, err := playPower(t.Context(), p)
					if err != nil {
						t.Fatalf("FORESAY_SEED=%d, %+v: %v", first, p, err)
					}
					for i := range kinds {
						kinds[i].Add(w.kinds[i].Load())
					}
					crashes.Add(w.crashed.Load())
					committed.Add(int64(w.log.committed))
				})
			}
		})
	}
}

// TestPowerLossWithoutSyncs is the same crash twice, the second time with disks that say too early
// that they are done.
func TestPowerLossWithoutSyncs(t *testing.T) {
	for _, noSync := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			_, err := playPower(t.Context(), plan{seed: 1, after: time.Second, crashes: 1, noSync: noSync})
			if (err != nil) != noSync {
				t.Errorf("syncs left out: %v; noticed: %v", noSync, err)
			}
		})
	}
}
