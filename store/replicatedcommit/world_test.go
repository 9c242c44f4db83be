package replicatedcommit

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/wan"
)

const roundTrip = 100 * time.Millisecond

// layout has as many sites and shards; the nodes of site i are 10(i+1), its coordinator, and those
// that follow.
func layout(sites, shards int) store.Layout {
	var l store.Layout
	for i := range sites {
		base := protocol.ID(10 * (i + 1))
		s := store.Site{Name: string(rune('a' + i)), Coordinators: []protocol.ID{base}}
		for j := range shards {
			s.Shards = append(s.Shards, base+1+protocol.ID(j))
		}
		l.Sites = append(l.Sites, s)
	}
	return l
}

// scenario is what a world is made from.
type scenario struct {
	seed   uint64
	sites  int // 0 is 3
	shards int // 0 is 2
	// coordinators is how many each site has; 0 is 1.
	coordinators int
	page         int // how many entries a page of a server that is copied has; 0 is what it has otherwise
	clients      int
	keys         int
	faults       sim.Faults
	near         bool // clients read from the nearest site, which may hold votes back
	hot          bool // each transaction reads and writes one key
	lose         bool // a site goes down for a while
	appends      bool // each write adds to what is there
	ring         bool // client i reads key i and writes the next one
	hasty        bool // a site leaves before what it voted for is settled
	trace        io.Writer
	test         string // whose seed it is; empty: TestConformance's
}

// world is a simulated store with clients, and what they saw.
type world struct {
	sc       scenario
	layout   store.Layout
	epoch    uint64
	newSites int
	places   []wan.Site          // by site
	appended map[store.Key][]int // transactions whose clients were told that they are committed, and what they added to
	sim      *sim.Sim[Message]
	rand     *rand.Rand
	rec      history.TxnRecorder
	clients  []*driver
	versions map[store.Key]map[store.Version]string
	settled  map[store.Version]bool // known to have been applied before a site was lost
	refused  map[protocol.ID]string
	stopped  bool
	txns     int
	verdicts [5]int
	blocked  []time.Duration // when those that blocked were submitted
	attempts int             // the most that a transaction took
	err      error

	configure func(*store.Config) // nil: nothing
	replaced  func()              // is called when sites were replaced; nil: nothing
}

func newWorld(sc scenario) (*world, error) { return newWorldOf(sc, nil, nil) }

// newWorldOf is newWorld with other configurations, and somebody else who gets what nodes say to
// their applications.
func newWorldOf(sc scenario, configure func(*store.Config), app func(protocol.ID, Message)) (*world, error) {
	if sc.sites == 0 {
		sc.sites = 3
	}
	if sc.shards == 0 {
		sc.shards = 2
	}
	w := &world{
		sc: sc, layout: layout(sc.sites, sc.shards), rand: rand.New(rand.NewPCG(sc.seed, 7)),
		versions: map[store.Key]map[store.Version]string{}, settled: map[store.Version]bool{}, refused: map[protocol.ID]string{}, appended: map[store.Key][]int{},
	}
	w.configure = configure
	for i := range w.layout.Sites {
		w.moreCoordinators(&w.layout.Sites[i])
	}
	if app == nil {
		app = w.app
	}
	for _, s := range w.layout.Sites {
		w.places = append(w.places, wan.Site(s.Name))
	}
	names := w.places
	var err error
	w.sim, err = sim.New(sim.Config[Message]{
		Seed: sc.seed, WAN: wan.Uniform(roundTrip, names...), Codec: Codec(), CodecChance: 0.3, CheckEvery: 3,
		Disk: sim.Disk{Latency: time.Millisecond, Jitter: 3 * time.Millisecond}, App: app, Trace: sc.trace, TraceKeep: 300,
		Replay: fmt.Sprintf("FORESAY_SEED=%d go test ./store/replicatedcommit -run %s/0", sc.seed, cmp.Or(sc.test, "TestConformance")),
	})
	if err != nil {
		return nil, err
	}
	for i, s := range w.layout.Sites {
		for _, id := range append(slices.Clone(s.Coordinators), s.Shards...) {
			w.add(id, names[i])
		}
	}
	for i := range sc.clients {
		d := &driver{world: w, id: protocol.ID(200 + i), n: i}
		w.clients = append(w.clients, d)
		w.add(d.id, names[i%len(names)])
		w.sim.After(time.Duration(w.rand.IntN(50))*time.Millisecond+time.Second/2, d.next)
	}
	return w, w.err
}

func (w *world) config(id protocol.ID) store.Config {
	c := store.Config{ID: id, Layout: w.layout, Epoch: w.epoch, RoundTrip: roundTrip, Retain: 3 * time.Second, Applied: w.applied}
	if w.configure != nil {
		w.configure(&c)
	}
	return c
}

func (w *world) add(id protocol.ID, site wan.Site) {
	shards, coordinators := w.layout.Places()
	build := func() (protocol.Node[Message], error) {
		if _, ok := shards[id]; ok {
			s, err := NewServer(w.config(id))
			if err == nil && w.sc.page > 0 {
				s.page = w.sc.page
			}
			return s, err
		}
		if _, ok := coordinators[id]; ok {
			return NewCoordinator(w.config(id))
		}
		return NewClient(w.config(id))
	}
	if _, err := build(); err != nil {
		w.err = err
		return
	}
	err := w.sim.Add(sim.Node[Message]{ID: id, Site: site, New: func() protocol.Node[Message] {
		n, _ := build()
		return n
	}})
	if err != nil {
		w.err = err
	}
}

// applied is the store's word on the versions of a key.
func (w *world) applied(key store.Key, v store.Value) {
	all := w.versions[key]
	if all == nil {
		all = map[store.Version]string{}
		w.versions[key] = all
	}
	text := shown(v)
	if old, ok := all[v.Version]; ok && old != text && w.err == nil {
		w.err = fmt.Errorf("version %v of %q is %q and %q", v.Version, key, old, text)
	}
	all[v.Version] = text
}

// shown is a value as it is in histories.
func shown(v store.Value) string {
	switch {
	case v.Present:
		return string(v.Bytes)
	case v.Version.IsZero():
		return history.Initial
	}
	return "deleted by " + v.Version.String()
}

func (w *world) app(from protocol.ID, msg Message) {
	if r, ok := msg.(store.Refused); ok {
		w.refused[from] = r.Reason
		return
	}
	for _, d := range w.clients {
		if d.id == from {
			d.receive(msg)
		}
	}
}

// nodes returns all servers and coordinators, but for those of fenced sites.
func (w *world) nodes() []protocol.ID {
	var ids []protocol.ID
	for _, i := range w.layout.Unfenced() {
		ids = append(ids, w.siteNodes(i)...)
	}
	return ids
}

func (w *world) siteNodes(i int) []protocol.ID {
	s := w.layout.Sites[i]
	return append(slices.Clone(s.Coordinators), s.Shards...)
}

// play runs the clients under faults for a while, heals everything, waits until nothing is left to
// do, and judges.
func (w *world) play(d time.Duration) error {
	if w.sc.faults != 0 {
		if err := w.inject(); err != nil {
			return err
		}
		var ids []protocol.ID
		for _, c := range w.clients {
			ids = append(ids, c.id)
		}
		if err := w.sim.Inject(sim.Profile{Faults: w.sc.faults & (sim.Skew | sim.Jump), Nodes: ids, Every: time.Second}); err != nil {
			return err
		}
	}
	if w.sc.lose {
		site := w.siteNodes(w.rand.IntN(len(w.layout.Sites)))
		w.sim.At(d/4, func() {
			for _, id := range site {
				w.sim.Crash(id, sim.Keep(w.rand.IntN(3)))
			}
		})
		w.sim.At(d*3/4, func() {
			for _, id := range site {
				w.sim.Restart(id)
			}
		})
	}
	if err := w.sim.Run(d); err != nil {
		return err
	}
	w.sim.Heal()
	w.stopped = true
	for _, id := range w.nodes() {
		w.sim.Restart(id)
	}
	if err := w.sim.RunUntil(3*time.Minute, w.quiet); err != nil {
		return fmt.Errorf("%w\n%s", err, w.unquiet())
	}
	return w.judge()
}

// quiet tells whether nothing is left to do.
func (w *world) quiet() bool { return w.unquiet() == "" }

// unquiet says what is left to do.
func (w *world) unquiet() string {
	for _, d := range w.clients {
		if d.busy {
			return fmt.Sprintf("client %d waits", d.id)
		}
	}
	for _, i := range w.layout.Unfenced() {
		for _, id := range w.layout.Sites[i].Shards {
			s, ok := w.sim.Get(id).(*Server)
			if !ok {
				return fmt.Sprintf("server %d is down", id)
			}
			if w.refused[id] != "" {
				continue
			}
			if s.newcomer.syncing {
				return fmt.Sprintf("server %d copies", id)
			}
			if n := len(s.debts) + len(s.catchUp.owing); n > 0 || s.catchUp.source != 0 {
				return fmt.Sprintf("server %d owes to %d servers, is owed by %d and copies server %d", id, len(s.debts), len(s.catchUp.owing), s.catchUp.source)
			}
			if len(s.locks)+s.waiters+len(s.holding.byTxn)+len(s.txns) > 0 {
				return fmt.Sprintf("server %d has %d locks, %d waiting reads, %d held requests, %d transactions", id, len(s.locks), s.waiters, len(s.holding.byTxn), len(s.txns))
			}
		}
	}
	return ""
}

// judge looks at what clients saw and at what the sites hold.
func (w *world) judge() error {
	if w.err != nil {
		return w.err
	}
	for key, all := range w.versions {
		var order []store.Version
		for v := range all {
			order = append(order, v)
		}
		slices.SortFunc(order, store.Version.Compare)
		var values []string
		for _, v := range order {
			values = append(values, all[v])
		}
		w.rec.Versions(string(key), values)
	}
	h, err := w.rec.Transactions()
	if err != nil {
		return err
	}
	report, err := history.CheckTransactions(h, history.StrictSerializable)
	if err != nil {
		return err
	}
	if report.Verdict() != history.OK {
		return fmt.Errorf("not strictly serializable: %v", report)
	}
	if err := w.lostAppends(); err != nil {
		return err
	}
	return w.equalSites()
}

// lostAppends returns an error unless what committed transactions have added to keys is there,
// once.
func (w *world) lostAppends() error {
	for _, key := range slices.Sorted(maps.Keys(w.appended)) {
		id := w.layout.Sites[w.layout.Unfenced()[0]].Shards[w.layout.ShardOf(key)]
		_, keys, err := w.sim.Disk(id)
		if err != nil {
			return err
		}
		b, _ := keys.Get([]byte(valuePrefix + string(key)))
		there := map[string]int{}
		for _, word := range strings.Fields(string(parseValue(key, b).Bytes)) {
			there[word]++
		}
		for _, n := range w.appended[key] {
			if there[strconv.Itoa(n)] != 1 {
				return fmt.Errorf("%q has what transaction %d added, whose client was told that it is committed, %d times", key, n, there[strconv.Itoa(n)])
			}
		}
	}
	return nil
}

// moreCoordinators gives a site as many as the scenario says.
func (w *world) moreCoordinators(s *store.Site) {
	for i := 1; i < w.sc.coordinators; i++ {
		s.Coordinators = append(s.Coordinators, s.Coordinators[0]+4+protocol.ID(i))
	}
}

// equalSites returns an error unless all sites hold the same.
func (w *world) equalSites() error {
	for j := range w.layout.Sites[0].Shards {
		var first []byte
		for _, i := range w.layout.Unfenced() {
			site := w.layout.Sites[i]
			_, keys, err := w.sim.Disk(site.Shards[j])
			if err != nil {
				return err
			}
			var all []byte
			for k, v := range keys.Scan([]byte(valuePrefix), []byte(valuePrefix+"\xff")) {
				all = fmt.Appendf(all, "%s=%x\n", k, v)
			}
			if i > 0 && !bytes.Equal(first, all) {
				return fmt.Errorf("shard %d: site %s holds\n%sand site %s\n%s", j, w.layout.Sites[0].Name, first, site.Name, all)
			}
			first = all
		}
	}
	return nil
}
