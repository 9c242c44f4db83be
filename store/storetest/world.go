package storetest

import (
	"cmp"
	"fmt"
	"io"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storedeploy"
	"github.com/foresay/foresay/wan"
)

// RoundTrip is that of worlds: between any two sites.
const RoundTrip = 100 * time.Millisecond

// A Subject is the store that is tested.
type Subject struct {
	Protocol store.Protocol
	// Package is the directory of the tests, for the command that plays a seed again.
	Package string
	// Values returns what a server holds, from its node and what is on its disk: the newest version
	// of each key, deletions included.
	Values func(server protocol.Node[store.Message], disk protocol.Keys) iter.Seq2[store.Key, store.Value]
	// Left says what a server has still to do once nobody asks it for anything, empty if nothing.
	Left func(server protocol.Node[store.Message]) string
	// Settle is how long sites may differ when no server has anything left to do: followers may
	// learn of a decision later than its client.
	Settle time.Duration
	// Watched returns the protocol for one world, which logs what happens there, and what judges that
	// in the end. nil: Protocol, which logs nothing.
	Watched func() (p store.Protocol, judge func() error)
}

// placeRing leaves each shard at so many sites only, as store.Ring has them.
func placeRing(l *store.Layout, replicas int) error {
	var names []string
	for _, s := range l.Sites {
		names = append(names, s.Name)
	}
	at, err := store.Ring(names, len(l.Sites[0].Shards), replicas, nil)
	if err != nil {
		return err
	}
	numbers := make([][]int, len(at))
	for k, sites := range at {
		for _, name := range sites {
			numbers[k] = append(numbers[k], slices.Index(names, name))
		}
	}
	*l = storedeploy.CopiesAt(*l, numbers)
	return nil
}

// Coordinated gives a layout the groups that only coordinate, if the protocol has any, at sites
// that follow each other. Their servers at site i are 100+10i and those that follow.
func Coordinated(l store.Layout, p store.Protocol) store.Layout {
	if !p.Coordinating {
		return l
	}
	return l.Coordinated(store.Coordinating(len(l.Sites), nil), func(site, group int) protocol.ID {
		return protocol.ID(100 + 10*site + group)
	})
}

// A Scenario is what a world is made from.
type Scenario struct {
	Seed         uint64
	Sites        int // 0 is 3
	Shards       int // 0 is 2
	Replicas     int // how many sites have each shard; 0: all
	Coordinators int // how many each site has; 0 is 1
	Clients      int // they are the nodes 200 and following
	Keys         int
	Faults       sim.Faults
	Near         bool          // clients read from the nearest site, which may hold votes back
	Hot          bool          // each transaction reads and writes one key
	Lose         bool          // a site goes down for a while
	Appends      bool          // each write adds to what is there
	Stale        bool          // some of those that only read may see what is old
	General      bool          // some prepare keys as they reach them (Protocol.Declares)
	Moves        bool          // shards are led elsewhere now and then (Protocol.Leads)
	Replaces     bool          // there is a site more, and a member of each shard is replaced by its (Protocol.Leads)
	Ahead        bool          // some go on when they are committed locally (Protocol.Speculates)
	Certain      bool          // of those none stands on a guess
	ByArrival    bool          // requests are handled in the order in which they should have arrived (Protocol.Orders)
	Ring         bool          // client i reads key i and writes the next one
	Pause        time.Duration // between a client's transactions at most; 0 is 100 ms
	Bank         bool          // keys are accounts: clients move money between two, or look at all
	CheckEvery   int           // as in sim.Config; 0 is 3
	// Offset is how far clocks are apart at most. They move all the time, and Config.MaxOffset is
	// that. 0: they are right.
	Offset time.Duration
	Trace  io.Writer
	Test   string // whose seed it is; empty: TestConformance's
	// Configure changes the configuration of a node. nil: nothing.
	Configure func(*store.Config)
	// App gets what nodes say to their applications in place of the world, which then has no
	// clients that make transactions. nil: the world.
	App func(protocol.ID, store.Message)
}

// A World is a simulated store with clients, and what they saw. It is a test's to change.
type World struct {
	Subject  Subject
	Scenario Scenario
	Layout   store.Layout
	Epoch    uint64
	Places   []wan.Site // by site
	Sim      *storedeploy.Store
	Rand     *rand.Rand
	Clients  []*Application

	Stopped  bool     // clients begin nothing new
	Versions Versions // that servers have applied
	// transactions whose clients were told that they are committed, by the keys that they added to
	Appended map[store.Key][]int
	Refused  map[protocol.ID]string // servers that may not take part, and why
	Txns     int                    // begun
	Verdicts [store.Rejected + 1]int
	Blocked  []time.Duration // when those that blocked were submitted
	Attempts int             // the most that a transaction took
	Err      error           // the first thing that is wrong

	rec history.TxnRecorder
	// replaced are the shards whose members are to be replaced.
	replaced map[int]*replacement
	// relaxed are transactions that ask to be serializable, and no more.
	relaxed map[history.TxnID]bool
	stale   map[history.TxnID]*staleRead // those that may see what is old, and have read
	told    map[store.Key][]toldWrite
	ahead   int                             // transactions after whose local commits applications went on
	verdict map[history.TxnID]store.Verdict // of these
	follows []followed
	watched func() error // judges what the protocol has logged; nil: nobody does
	apart   bool         // clocks were further apart than they may be
}

// New returns a world in which nothing has happened yet.
func New(subject Subject, sc Scenario) (*World, error) {
	if sc.Sites == 0 {
		sc.Sites = 3
	}
	if sc.Shards == 0 {
		sc.Shards = 2
	}
	if sc.Replaces {
		sc.Sites++
	}
	w := &World{
		Subject: subject, Scenario: sc, Layout: storedeploy.Layout(sc.Sites, sc.Shards),
		Rand:     rand.New(rand.NewPCG(sc.Seed, 7)),
		Versions: Versions{}, Refused: map[protocol.ID]string{},
		Appended: map[store.Key][]int{}, relaxed: map[history.TxnID]bool{},
		stale: map[history.TxnID]*staleRead{}, told: map[store.Key][]toldWrite{},
		verdict: map[history.TxnID]store.Verdict{},
	}
	if subject.Watched != nil {
		subject.Protocol, w.watched = subject.Watched()
		w.Subject = subject
	}
	for i := range w.Layout.Sites {
		w.MoreCoordinators(&w.Layout.Sites[i])
	}
	if sc.Replicas > 0 {
		if err := placeRing(&w.Layout, sc.Replicas); err != nil {
			return nil, err
		}
	}
	if sc.Replaces {
		w.join()
	}
	w.Layout = Coordinated(w.Layout, subject.Protocol)
	app := sc.App
	if app == nil {
		app = w.app
	}
	for _, s := range w.Layout.Sites {
		w.Places = append(w.Places, wan.Site(s.Name))
	}
	names := w.Places
	nodes := storedeploy.Config{Protocol: subject.Protocol, Layout: w.Layout, Hear: app,
		Node: func(c *store.Config) { *c = w.Config(c.ID) },
		Sim: sim.Config[store.Message]{
			Seed: sc.Seed, WAN: wan.Uniform(RoundTrip, names...), CodecChance: 0.3,
			CheckEvery: cmp.Or(sc.CheckEvery, 3), Trace: sc.Trace, TraceKeep: 300,
			Disk: sim.Disk{Latency: time.Millisecond, Jitter: 3 * time.Millisecond},
			Replay: fmt.Sprintf("FORESAY_SEED=%d go test %s -run %s/0", sc.Seed, subject.Package,
				cmp.Or(sc.Test, "TestConformance")),
		}}
	for i := range sc.Clients {
		nodes.Clients = append(nodes.Clients, names[i%len(names)])
	}
	var err error
	if w.Sim, err = storedeploy.New(nodes); err != nil {
		return nil, err
	}
	for i, id := range w.Sim.Clients {
		a := &Application{world: w, ID: id, n: i, session: map[store.Key]sessionSaw{}}
		w.Clients = append(w.Clients, a)
		w.Sim.After(time.Duration(w.Rand.IntN(50))*time.Millisecond+time.Second/2, a.Next)
	}
	return w, w.Err
}

// Config returns that of a node.
func (w *World) Config(id protocol.ID) store.Config {
	c := store.Config{ID: id, Layout: w.Layout, Epoch: w.Epoch, RoundTrip: RoundTrip, Retain: 3 * time.Second,
		ByArrival: w.Scenario.ByArrival, Applied: w.applied}
	if w.Scenario.Offset > 0 {
		c.MaxOffset = w.Scenario.Offset
	}
	if w.Scenario.Configure != nil {
		w.Scenario.Configure(&c)
	}
	return c
}

// Add adds a node of the layout, or a client.
func (w *World) Add(id protocol.ID, site wan.Site) {
	if err := w.Sim.AddNode(id, site); err != nil {
		w.Err = err
	}
}

// applied is the store's word on the versions of a key.
func (w *World) applied(key store.Key, v store.Value) {
	if err := w.Versions.Add(w.Subject.Protocol, key, v); err != nil && w.Err == nil {
		w.Err = err
	}
}

func (w *World) app(from protocol.ID, msg store.Message) {
	if r, ok := msg.(store.Refused); ok {
		w.Refused[from] = r.Reason
		return
	}
	if r, ok := msg.(store.Replacing); ok {
		w.onReplacing(from, r)
		return
	}
	for _, d := range w.Clients {
		if d.ID == from {
			d.receive(msg)
		}
	}
}

// Nodes returns all servers and coordinators, but for those of fenced sites.
func (w *World) Nodes() []protocol.ID {
	var ids []protocol.ID
	for _, i := range w.Layout.Unfenced() {
		ids = append(ids, w.SiteNodes(i)...)
	}
	return ids
}

// SiteNodes returns the servers and coordinators of a site.
func (w *World) SiteNodes(i int) []protocol.ID {
	return storedeploy.Nodes(w.Subject.Protocol, w.Layout.Sites[i])
}

// Play runs the clients under faults for a while, heals everything, waits until nothing is left to
// do, and judges.
func (w *World) Play(d time.Duration) error {
	if w.Scenario.Faults != 0 {
		if err := w.Inject(); err != nil {
			return err
		}
		var ids []protocol.ID
		for _, c := range w.Clients {
			ids = append(ids, c.ID)
		}
		if err := w.Sim.Inject(sim.Profile{Faults: w.Scenario.Faults & (sim.Skew | sim.Jump), Nodes: ids,
			Every: time.Second}); err != nil {
			return err
		}
	}
	if w.Scenario.Offset > 0 {
		w.moveClocks(d)
	}
	if w.Scenario.Moves {
		w.moveLeaders(d)
	}
	if w.Scenario.Replaces {
		w.replaceMembers(d)
	}
	if w.Scenario.Lose {
		site := w.SiteNodes(w.Rand.IntN(len(w.Layout.Sites)))
		w.Sim.At(d/4, func() {
			for _, id := range site {
				w.Sim.Crash(id, sim.Keep(w.Rand.IntN(3)))
			}
		})
		w.Sim.At(d*3/4, func() {
			for _, id := range site {
				w.Sim.Restart(id)
			}
		})
	}
	if err := w.Sim.Run(d); err != nil {
		return err
	}
	w.apart = w.clocksApart()
	w.Sim.Heal()
	w.Stopped = true
	for _, id := range w.Nodes() {
		w.Sim.Restart(id)
	}
	if err := w.Sim.RunUntil(3*time.Minute, w.Quiet); err != nil {
		return fmt.Errorf("%w\n%s", err, w.Unquiet())
	}
	if err := w.settle(); err != nil {
		return err
	}
	return w.Judge()
}

// settle has followers catch up. A link that loses much now and then takes long to bring a message,
// so that one of them may be a while behind though nobody has anything left to do.
func (w *World) settle() error {
	for took := time.Duration(0); w.Subject.Settle > 0 && took < time.Minute; took += w.Subject.Settle {
		if err := w.Sim.Run(w.Subject.Settle); err != nil {
			return err
		}
		if w.EqualSites() == nil {
			return nil
		}
	}
	return nil
}

// clocksApart reports whether clocks of servers and coordinators are further apart than they may
// be: a machine that was stopped for a while has its clock behind from then on.
func (w *World) clocksApart() bool {
	var shown []time.Duration
	for _, id := range w.Nodes() {
		shown = append(shown, w.Sim.Clock(id))
	}
	return slices.Max(shown)-slices.Min(shown) > w.Scenario.Offset
}

// moveClocks has clocks jump until a time, by no more than they may be apart.
func (w *World) moveClocks(until time.Duration) {
	var ids []protocol.ID
	for _, c := range w.Clients {
		ids = append(ids, c.ID)
	}
	for _, id := range append(ids, w.Nodes()...) {
		for at := time.Duration(0); at < until; at += time.Duration(1+w.Rand.IntN(1000)) * time.Millisecond {
			off := time.Duration(w.Rand.Int64N(int64(w.Scenario.Offset))) - w.Scenario.Offset/2
			w.Sim.At(at, func() {
				if err := w.Sim.SetClock(id, sim.Clock{Offset: off}); err != nil && w.Err == nil {
					w.Err = err
				}
			})
		}
	}
}

// Quiet reports whether nothing is left to do.
func (w *World) Quiet() bool { return w.Unquiet() == "" }

// Unquiet says what is left to do.
func (w *World) Unquiet() string {
	for _, d := range w.Clients {
		if d.Busy || len(d.ahead) > 0 {
			return fmt.Sprintf("client %d waits", d.ID)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(w.replaced)) {
		if r := w.replaced[k]; !r.done {
			return fmt.Sprintf("shard %d still has its copy at site %d: %s", k, r.from, r.reason)
		}
	}
	holding := w.holding()
	for _, i := range holding.Unfenced() {
		for _, id := range holding.Sites[i].Servers() {
			n := w.Sim.Get(id)
			if n == nil {
				return fmt.Sprintf("server %d is down", id)
			}
			if w.Refused[id] != "" {
				continue
			}
			if left := w.Subject.Left(n); left != "" {
				return fmt.Sprintf("server %d %s", id, left)
			}
		}
	}
	return ""
}

// MoreCoordinators gives a site as many as the scenario says.
func (w *World) MoreCoordinators(s *store.Site) {
	for i := 1; i < w.Scenario.Coordinators; i++ {
		s.Coordinators = append(s.Coordinators, s.Coordinators[0]+4+protocol.ID(i))
	}
}
