package bfttest

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/wan"
)

// Scenario is one simulated life of a group. Its zero fields have defaults; Protocol is required.
type Scenario struct {
	Protocol bft.Protocol
	Workload func() Workload // nil: Registers
	Seed     uint64
	Faults   sim.Faults
	Replicas int // 0 is 4
	Clients  int // 0 is 3
	// Traitors are replicas that do as they like, by the place of each among the members, from 0 on.
	Traitors map[int]bft.Traitor
	// Twins, if there is one, says which members run twice. They count as traitors.
	Twins *Twins
	// Rotting are replicas whose disks change by themselves, likewise. They are honest.
	Rotting map[int]bft.Traitor
	// BadClients is how many clients do as they like, and Bad are the strategies of further ones.
	BadClients int
	Bad        []string
	// For is how long faults strike; 0 is 5 s. Afterwards everything must come in order within
	// Settle, though the traitors stay; 0 is 20 s.
	For, Settle time.Duration
	// Coded is how many messages go through the codec; 0 is a tenth.
	Coded float64
	// RoundTrip is what the group takes for its round-trip time; 0 is the true one, [TrueRoundTrip].
	RoundTrip time.Duration
	// Work is how long a node takes for 100 bytes that arrive, which are about one signature with
	// what is signed. All nodes are on one machine then.
	Work    time.Duration
	Limits  bft.Limits
	Ed25519 bool // instead of cheap signatures
	Ordered bool // no optimised reads
	Script  func(*World)
	Replay  string
	// Explain gets how the simulation stands when the run has ended or failed, as sim.Explain tells
	// it. nil: nobody.
	Explain io.Writer
}

// Report is what a scenario came to.
type Report struct {
	Hash             uint64
	Confirmed, Reads int
	Guesses, Right   int
	Aborted, Retried int
	Cascaded         int // of the aborted and retried, those on a guess at another one
	Withdrawn        int
	View             bft.View
	// FirstAfter and DoneAfter are the shortest times in which the second client had a first reply to
	// an ordered call, and a confirmed one. It is not at the first primary's site.
	FirstAfter, DoneAfter time.Duration
	// Transfers is how many states the honest replicas have fetched, and Refused how many parts that
	// they were given were wrong: those that are up at the end, since they started.
	Transfers, Refused int
	Caught             int      // likewise, how often they caught a primary at a lie
	Repairs            int      // likewise, how often they found that their disks were damaged
	Writes             []uint64 // by replica, how many of its calls wrote something in Scenario.For
	Crashes, Restarts  int
	Epoch              bft.Epoch
	// Changes is how many changes of the members were made, and RefusedChanges how many were refused.
	Changes, RefusedChanges int
	// Served is when each client had its first result, and Slowest the longest that a call took.
	Served, Slowest time.Duration
	// Largest is how large a message was, of those that went through the codec.
	Largest int
}

// World is a running scenario.
type World struct {
	Sim *sim.Sim[bft.Message]

	sc      Scenario
	scheme  *bft.Scheme
	signer  func(protocol.ID) *bft.Signer
	signers int // that scripts have made
	members map[protocol.ID]*member
	rand    *rand.Rand
	dir     bft.Directory
	honest  []protocol.ID
	clients []*client
	load    Workload
	decided map[bft.Seq]bft.Digest
	report  Report
	stopped bool
	failed  error
}

// member is a replica: what it is made from when it is started again.
type member struct {
	cfg     bft.ReplicaConfig
	traitor bft.Traitor // nil: none
}

// TrueRoundTrip is the round-trip time between two nodes of a scenario at different sites.
const TrueRoundTrip = roundTrip

const (
	roundTrip   = 40 * time.Millisecond
	firstClient = 100
	firstBad    = 200
)

// Play plays a scenario and judges it.
func Play(sc Scenario) (Report, error) {
	sc.Replicas, sc.Clients = cmp.Or(sc.Replicas, 4), cmp.Or(sc.Clients, 3)
	sc.RoundTrip = cmp.Or(sc.RoundTrip, roundTrip)
	sc.For, sc.Settle = cmp.Or(sc.For, 5*time.Second), cmp.Or(sc.Settle, 20*time.Second)
	w := &World{sc: sc, rand: rand.New(rand.NewPCG(sc.Seed, 0xbf7)), decided: map[bft.Seq]bft.Digest{},
		members: map[protocol.ID]*member{}}
	if w.load = Registers(); sc.Workload != nil {
		w.load = sc.Workload()
	}
	if err := w.build(); err != nil {
		return w.report, err
	}
	err := w.run()
	if sc.Explain != nil {
		if e := w.Sim.Explain(sc.Explain); e != nil {
			return w.report, fmt.Errorf("bfttest: Scenario.Explain: %w", e)
		}
	}
	w.report.Hash = w.Sim.Hash()
	stats := w.Sim.Stats()
	w.report.Crashes, w.report.Restarts = stats.Crashes, stats.Restarts
	for _, id := range w.honest {
		if o := w.observed(id); o != nil {
			w.report.Transfers += o.Standing().Transfers
			w.report.Refused += o.Standing().Refused
			w.report.Caught += o.Standing().Caught
			w.report.Repairs += o.Standing().Repairs
		}
	}
	return w.report, err
}

func (w *World) build() error {
	sc := w.sc
	var secrets bft.Secrets
	var verifier bft.Verifier = &secrets
	signer := func(id protocol.ID) *bft.Signer { return secrets.Signer(sc.Seed<<16 | uint64(id)) }
	if sc.Ed25519 {
		verifier, signer = bft.Ed25519{}, func(id protocol.ID) *bft.Signer { return realSigner(sc.Seed, id) }
	}
	scheme := bft.NewScheme(fmt.Sprint("group ", sc.Seed), verifier)
	w.scheme, w.signer = scheme, signer
	w.keys(signer)
	sites := sites()
	config := sim.Config[bft.Message]{
		Seed: sc.Seed, WAN: wan.Uniform(roundTrip, sites...), Codec: weighing{sc.Protocol.Codec(scheme), &w.report},
		CodecChance: cmp.Or(sc.Coded, 0.1), Disk: sim.Disk{Latency: time.Millisecond, Jitter: time.Millisecond},
		CheckEvery: 16, Check: w.check, App: w.app, TraceKeep: 400, Replay: sc.Replay,
	}
	if sc.Work > 0 {
		work(&config, sc.Work)
	}
	s, err := sim.New(config)
	if err != nil {
		return err
	}
	w.Sim = s
	var replicas []bft.ReplicaConfig
	for i, m := range w.dir.Members {
		traitor := sc.Traitors[i]
		if traitor == nil && !sc.Twins.has(i) {
			w.honest = append(w.honest, m.ID)
			traitor = sc.Rotting[i]
		}
		if err := w.add(m.ID, signer(m.ID), traitor); err != nil {
			return err
		}
		replicas = append(replicas, w.members[m.ID].cfg)
	}
	if err := w.addTwins(replicas, sites); err != nil {
		return err
	}
	if err := w.addClients(scheme, signer, sites); err != nil {
		return err
	}
	return w.addBadClients(scheme, signer, sites)
}

// work has calls take time by the size of their messages, on one machine.
func work(config *sim.Config[bft.Message], per100Bytes time.Duration) {
	config.Service = func(c sim.Call[bft.Message]) time.Duration {
		b, err := config.Codec.Append(nil, c.Msg)
		if c.Kind != sim.CallReceive || err != nil { // from its application
			return 0
		}
		return per100Bytes * time.Duration(1+len(b)/100)
	}
	config.Machine = func(protocol.ID) protocol.ID { return 1 }
}

func (w *World) addClients(scheme *bft.Scheme, signer func(protocol.ID) *bft.Signer, sites []wan.Site) error {
	for i := range w.sc.Clients {
		c := &client{w: w, id: firstClient + protocol.ID(i), calls: map[bft.CallID]*call{}}
		cfg := bft.ClientConfig{ID: c.id, Directory: &w.dir, Scheme: scheme, Signer: signer(c.id), RoundTrip: w.sc.RoundTrip,
			Ordered: w.sc.Ordered, Limits: w.sc.Limits}
		w.clients = append(w.clients, c)
		err := w.Sim.Add(sim.Node[bft.Message]{ID: c.id, Site: sites[i%len(sites)], New: func() protocol.Node[bft.Message] {
			node, err := w.sc.Protocol.NewClient(cfg)
			if err != nil {
				panic(err)
			}
			return w.wrap(node, -1)
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

func sites() []wan.Site { return []wan.Site{"a", "b", "c", "d"} }

// add adds a replica.
func (w *World) add(id protocol.ID, signer *bft.Signer, traitor bft.Traitor) error {
	m := &member{traitor: traitor, cfg: bft.ReplicaConfig{ID: id, Directory: &w.dir, Scheme: w.scheme, Signer: signer,
		Service: w.load.Service(), RoundTrip: w.sc.RoundTrip, CheckpointEvery: 8, Limits: w.sc.Limits}}
	if _, err := w.sc.Protocol.NewReplica(m.cfg); err != nil {
		return err
	}
	if w.members[id] = m; id > protocol.ID(w.sc.Replicas) {
		w.honest = append(w.honest, id)
	}
	all := sites()
	return w.Sim.Add(sim.Node[bft.Message]{ID: id, Site: all[int(id-1)%len(all)], New: func() protocol.Node[bft.Message] {
		node, _ := w.sc.Protocol.NewReplica(m.cfg)
		if m.traitor != nil {
			return m.traitor(node, m.cfg)
		}
		return w.wrap(node, int(id-1))
	}})
}

// keys makes the group's directory.
func (w *World) keys(signer func(protocol.ID) *bft.Signer) {
	w.dir.Administrators = []protocol.ID{firstClient}
	w.dir.Clients = map[protocol.ID]bft.Key{}
	for i := range w.sc.Replicas {
		id := protocol.ID(i + 1)
		w.dir.Members = append(w.dir.Members, bft.Party{ID: id, Key: signer(id).Key()})
	}
	for i := range w.sc.Clients {
		id := firstClient + protocol.ID(i)
		w.dir.Clients[id] = signer(id).Key()
	}
	for i := range w.bad() {
		id := firstBad + protocol.ID(i)
		w.dir.Clients[id] = signer(id).Key()
	}
}

// bad returns the strategies of the clients that do as they like.
func (w *World) bad() []string { return append(make([]string, w.sc.BadClients), w.sc.Bad...) }

func (w *World) addBadClients(scheme *bft.Scheme, signer func(protocol.ID) *bft.Signer, sites []wan.Site) error {
	for i, strategy := range w.bad() {
		id := firstBad + protocol.ID(i)
		cfg := bft.ClientConfig{ID: id, Directory: &w.dir, Scheme: scheme, Signer: signer(id), RoundTrip: w.sc.RoundTrip,
			Limits: w.sc.Limits}
		err := w.Sim.Add(sim.Node[bft.Message]{ID: id, Site: sites[i%len(sites)], New: func() protocol.Node[bft.Message] {
			return w.sc.Protocol.NewBadClient(strategy, cfg)
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *World) run() error {
	for i, c := range w.clients {
		w.Sim.After(time.Duration(i+1)*3*time.Millisecond, c.next)
	}
	if w.sc.Faults != sim.NoFaults {
		err := w.Sim.Inject(sim.Profile{Faults: w.sc.Faults, Nodes: slices.Clone(w.honest), Every: 600 * time.Millisecond,
			Lasting: 400 * time.Millisecond, MaxDown: max(quorum.Traitors(w.sc.Replicas)-len(w.sc.Traitors), 1)})
		if err != nil {
			return err
		}
	}
	if w.sc.Script != nil {
		w.Sim.After(0, func() { w.sc.Script(w) })
	}
	if err := w.Sim.Run(w.sc.For); err != nil {
		return err
	}
	w.Sim.Heal()
	for _, m := range w.dir.Members {
		w.report.Writes = append(w.report.Writes, w.Sim.Writes(m.ID))
		w.Sim.Restart(m.ID)
	}
	for _, id := range slices.Clone(w.honest) {
		w.Sim.Restart(id)
	}
	healed := w.Sim.Now()
	if err := w.Sim.RunUntil(w.sc.Settle, func() bool {
		return !slices.ContainsFunc(w.clients, func(c *client) bool { return c.lastBegun < healed })
	}); err != nil {
		return fmt.Errorf("a client is not served after the faults: %s: %w", w.standings(), err)
	}
	w.stopped = true
	if err := w.Sim.RunUntil(w.sc.Settle, func() bool {
		return !slices.ContainsFunc(w.clients, func(c *client) bool { return c.open > 0 })
	}); err != nil {
		return fmt.Errorf("a call never ends: %s: %w", w.standings(), err)
	}
	for i := range w.bad() { // what they ask for never ends
		w.Sim.Crash(firstBad+protocol.ID(i), sim.KeepNone)
	}
	var differ string
	if err := w.Sim.RunUntil(w.sc.Settle, func() bool { differ = w.differences(); return differ == "" }); err != nil {
		return fmt.Errorf("replicas do not become equal: %s: %w", differ, err)
	}
	if w.failed != nil {
		return w.failed
	}
	return w.judge()
}

// observed returns an honest replica, nil if it is down.
func (w *World) observed(id protocol.ID) bft.Observed {
	o, _ := w.Sim.Get(id).(bft.Observed)
	return o
}

// standings tells how the honest replicas are.
func (w *World) standings() string {
	var out []string
	for _, id := range w.honest {
		if o := w.observed(id); o != nil {
			out = append(out, fmt.Sprintf("%d: %+v", id, o.Standing()))
		} else {
			out = append(out, fmt.Sprintf("%d is down", id))
		}
	}
	return strings.Join(out, ", ")
}

// check holds the honest replicas to each other in each step: one batch in one place.
func (w *World) check() error {
	for _, id := range w.honest {
		o := w.observed(id)
		if o == nil {
			continue
		}
		var err error
		o.Decided(func(seq bft.Seq, d bft.Digest) {
			if was, ok := w.decided[seq]; ok && was != d {
				err = fmt.Errorf("agreement: replica %d has the batch %v in place %d, and %v was committed there", id, d, seq, was)
			}
			w.decided[seq] = d
		})
		if err != nil {
			return err
		}
	}
	return w.failed
}

// differences tells what keeps the honest replicas from being equal.
func (w *World) differences() string {
	var first bft.Standing
	var sum [sha256.Size]byte
	for i, id := range w.honest {
		o := w.observed(id)
		if o == nil {
			return fmt.Sprintf("%d is down", id)
		}
		s := o.Standing()
		if i == 0 {
			first = s
		}
		if s.Committed != first.Committed || s.Epoch != first.Epoch || !s.Member {
			return fmt.Sprintf("%d: %+v, %d: %+v", w.honest[0], first, id, s)
		}
	}
	for i, id := range w.honest {
		h := sha256.New()
		_, disk, err := w.Sim.Disk(id)
		if err != nil {
			return err.Error()
		}
		for k, v := range w.observed(id).State(disk).Scan(nil, nil) {
			fmt.Fprintf(h, "%d %s %d %s\n", len(k), k, len(v), v)
		}
		got := [sha256.Size]byte(h.Sum(nil))
		if i > 0 && got != sum && len(w.sc.Rotting) > 0 {
			return fmt.Sprintf("the states of %d and %d", w.honest[0], id) // until that is found
		}
		if i > 0 && got != sum {
			w.failed = fmt.Errorf("equal states: %d and %d differ at %d", w.honest[0], id, first.Committed)
		}
		sum = got
	}
	w.report.View, w.report.Epoch = first.View, first.Epoch
	return ""
}

func (w *World) judge() error {
	for _, id := range w.honest {
		if n := w.observed(id).Standing().Repairs; n > 0 && len(w.sc.Rotting) == 0 {
			return fmt.Errorf("replica %d has repaired what was whole %d times", id, n)
		}
	}
	for _, c := range w.clients {
		if err := c.checkGuesses(); err != nil {
			return err
		}
	}
	return w.load.Judge()
}
