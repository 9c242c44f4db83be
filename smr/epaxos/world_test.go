package epaxos

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/wan"
)

// scenario is a simulated life of a group whose commands commute if they have different keys.
type scenario struct {
	seed     uint64
	replicas int
	clients  int
	keys     int
	faults   sim.Faults
	disk     sim.Disk
	sessions int           // ReplicaConfig.MaxSessions
	lasting  time.Duration // 0 is 3 s
	early    bool          // proposals are durable, and clients hand on tokens
	script   func(*world)
}

const trip = 20 * time.Millisecond

// world is a running scenario.
type world struct {
	*sim.Sim[smr.Message]
	scenario
	rand     *rand.Rand
	group    []smr.Member
	machines map[protocol.ID]*registers
	truth    map[string][]string // of each key, the values in their order, as any replica has applied them first
	places   map[string]int      // of a value and key, where in truth
	acked    []string            // values that were acknowledged, with their keys
	apps     map[protocol.ID]*app
	ops      history.KVRecorder
	token    smr.Slot
	stopped  bool
	done     int
	err      error
	status   map[protocol.ID]smr.Status
	lastDone time.Duration
	gap      time.Duration
}

// app is an application with a client node, which makes one call after the other.
type app struct {
	id    protocol.ID
	call  smr.CallID
	then  func(smr.Done)
	value int
}

func (w *world) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf("at %v: "+format, append([]any{w.Now()}, args...)...)
	}
}

func newTestWorld(sc scenario) (*world, error) {
	w := &world{
		scenario: sc, rand: rand.New(rand.NewPCG(sc.seed, 0xe9)), machines: map[protocol.ID]*registers{}, truth: map[string][]string{},
		places: map[string]int{}, apps: map[protocol.ID]*app{}, status: map[protocol.ID]smr.Status{},
	}
	var sites []wan.Site
	for i := range sc.replicas {
		w.group = append(w.group, smr.Member{ID: protocol.ID(i + 1)})
		sites = append(sites, wan.Site(fmt.Sprint("s", i+1)))
	}
	var err error
	w.Sim, err = sim.New(sim.Config[smr.Message]{
		Seed: sc.seed, WAN: wan.Uniform(trip, sites...), Codec: Codec(), CodecChance: 0.2, Disk: sc.disk, CheckEvery: 5, App: w.app, TraceKeep: 200,
		Replay: fmt.Sprintf("go test -run TestSeeds . (seed %d, faults %v)", sc.seed, sc.faults),
	})
	if err != nil {
		return nil, err
	}
	for i, m := range w.group {
		err := w.Add(sim.Node[smr.Message]{ID: m.ID, Site: sites[i], New: func() protocol.Node[smr.Message] { return w.replica(m.ID) }})
		if err != nil {
			return nil, err
		}
	}
	for i := range sc.clients {
		id := protocol.ID(101 + i)
		w.apps[id] = &app{id: id}
		err := w.Add(sim.Node[smr.Message]{ID: id, Site: sites[i%len(sites)], New: func() protocol.Node[smr.Message] {
			c, err := NewClient(smr.ClientConfig{ID: id, Members: w.group, RoundTrip: trip, Nearest: w.group[i%len(w.group)].ID})
			if err != nil {
				panic(err)
			}
			return c
		}})
		if err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *world) replica(id protocol.ID) protocol.Node[smr.Message] {
	m := newRegisters(func(key, value string, place int) { w.applied(id, key, value, place) })
	w.machines[id] = m
	r, err := NewReplica(smr.ReplicaConfig{
		ID: id, Members: w.group, RoundTrip: trip, SnapshotEvery: 60, MaxSessions: w.sessions, Machine: m,
	})
	if err != nil {
		panic(err)
	}
	return r
}

// applied checks that replicas agree on the order of the commands of each key, and that each is
// there once.
func (w *world) applied(id protocol.ID, key, value string, place int) {
	t := w.truth[key]
	switch {
	case place < len(t) && t[place] != value:
		w.fail("Agreement: replica %d has %q as number %d of key %s, another one %q", id, value, place, key, t[place])
	case place == len(t):
		if p, ok := w.places[value+"@"+key]; ok {
			w.fail("exactly once: %q is number %d and number %d of key %s", value, p, place, key)
		}
		w.truth[key] = append(t, value)
		w.places[value+"@"+key] = place
	}
}

func (w *world) app(from protocol.ID, msg smr.Message) {
	switch msg := msg.(type) {
	case smr.Done:
		a := w.apps[from]
		if a == nil || msg.ID != a.call || a.then == nil {
			w.fail("client %d: call %d is done twice, or was never made", from, msg.ID)
			return
		}
		then := a.then
		a.then = nil
		w.token = max(w.token, msg.Slot)
		if msg.Outcome == smr.Committed {
			w.gap = max(w.gap, w.Now()-w.lastDone)
			w.lastDone = w.Now()
			w.done++
		}
		then(msg)
	case smr.Status:
		w.status[from] = msg
	case smr.Refused:
		w.fail("replica %d is refused: %s", from, msg.Reason)
	}
}

// start makes a call, which is cancelled if it takes too long.
func (w *world) start(a *app, c smr.Call, then func(smr.Done)) {
	a.call++
	id := a.call
	c.ID = id
	a.then = then
	w.Deliver(a.id, c)
	w.After(2*time.Second, func() {
		if a.call == id && a.then != nil {
			w.Deliver(a.id, smr.Cancel{ID: id})
		}
	})
}

// next makes a random call: of one key or two, a command or a query.
func (w *world) next(a *app) {
	if w.stopped {
		return
	}
	era := w.Now() / (500 * time.Millisecond)
	keys := []string{fmt.Sprintf("%d-%d", era, w.rand.IntN(w.keys))}
	if w.rand.IntN(6) == 0 {
		if other := fmt.Sprintf("%d-%d", era, w.rand.IntN(w.keys)); other != keys[0] {
			keys = append(keys, other)
		}
	}
	again := func() { w.After(time.Duration(w.rand.IntN(20))*time.Millisecond, func() { w.next(a) }) }
	if w.rand.IntN(3) == 0 {
		w.read(a, keys, again)
		return
	}
	w.write(a, keys, again)
}

func (w *world) read(a *app, keys []string, again func()) {
	var records []history.Invocation[history.KVInput, history.KVOutput]
	for _, k := range keys {
		records = append(records, w.ops.Invoke(history.Client(a.id), w.Now(), history.KVInput{Key: k, Kind: history.KVGet}))
	}
	w.start(a, smr.Call{Kind: smr.Read, Command: get(keys...)}, func(d smr.Done) {
		if d.Outcome == smr.Committed {
			for i, v := range strings.Split(string(d.Result), ",") {
				records[i].Return(w.Now(), history.KVOutput{State: history.KVState{Value: v, Found: v != ""}})
			}
		}
		again()
	})
}

func (w *world) write(a *app, keys []string, again func()) {
	a.value++
	value := fmt.Sprintf("%d.%d", a.id, a.value)
	var records []history.Invocation[history.KVInput, history.KVOutput]
	for _, k := range keys {
		records = append(records, w.ops.Invoke(history.Client(a.id), w.Now(), history.KVInput{Key: k, Kind: history.KVPut, Value: value}))
	}
	c := smr.Call{Kind: smr.Execute, Command: set(value, keys...)}
	if w.early {
		c.After = w.token
		if w.rand.IntN(4) > 0 {
			c.Kind, c.Ack = smr.Propose, smr.AckDurable
		}
	}
	w.start(a, c, func(d smr.Done) {
		if d.Outcome == smr.Committed {
			for i, r := range records {
				r.Return(w.Now(), history.KVOutput{})
				w.acked = append(w.acked, value+"@"+keys[i])
			}
		}
		again()
	})
}

// play runs the scenario and judges it.
func (sc scenario) play() (*world, error) {
	w, err := newTestWorld(sc)
	if err != nil {
		return nil, err
	}
	for i := range sc.clients {
		w.After(time.Duration(i+1)*2*time.Millisecond, func() { w.next(w.apps[protocol.ID(101+i)]) })
	}
	if sc.faults != sim.NoFaults {
		var nodes []protocol.ID
		for _, m := range w.group {
			nodes = append(nodes, m.ID)
		}
		p := sim.Profile{Faults: sc.faults, Nodes: nodes, Every: 400 * time.Millisecond, Lasting: 400 * time.Millisecond}
		if err := w.Inject(p); err != nil {
			return w, err
		}
	}
	if sc.script != nil {
		sc.script(w)
	}
	if err := w.pass(cmp.Or(sc.lasting, 3*time.Second)); err != nil {
		return w, err
	}
	w.Heal()
	for _, m := range w.group {
		w.Restart(m.ID)
	}
	w.stopped = true
	idle := func() bool {
		return w.err != nil || !slices.ContainsFunc(w.clientIDs(), func(id protocol.ID) bool { return w.apps[id].then != nil })
	}
	if err := w.RunUntil(15*time.Second, idle); err != nil || w.err != nil {
		return w, first(w.err, fmt.Errorf("liveness: calls never end: %w", err))
	}
	for range 100 {
		for _, m := range w.group {
			w.Deliver(m.ID, smr.StatusQuery{})
		}
		if err := w.pass(100 * time.Millisecond); err != nil {
			return w, err
		}
		if w.equal() {
			return w, w.judge()
		}
	}
	return w, fmt.Errorf("liveness: replicas do not become equal: %v", w.machines)
}

func first(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func (w *world) clientIDs() []protocol.ID {
	var ids []protocol.ID
	for i := range w.clients {
		ids = append(ids, protocol.ID(101+i))
	}
	return ids
}

func (w *world) pass(d time.Duration) error {
	if err := w.Run(d); err != nil {
		return err
	}
	return w.err
}

// equal tells whether all replicas have executed all, and say so.
func (w *world) equal() bool {
	applied := w.status[w.group[0].ID].Applied
	for _, m := range w.group {
		if s := w.status[m.ID]; w.machines[m.ID].String() != fmt.Sprint(w.truth) || s.Applied != applied || s.Committed != applied || !s.Ready() {
			return false
		}
	}
	return true
}

func (w *world) judge() error {
	for _, v := range w.acked {
		if _, ok := w.places[v]; !ok {
			return fmt.Errorf("Durability: %s was acknowledged and is nowhere", v)
		}
	}
	ops, err := w.ops.Ops()
	if err != nil {
		return err
	}
	lin, err := history.CheckLinearizable(ops, history.KVModel(), 20*time.Second)
	if err == nil && lin.Verdict != history.OK {
		err = fmt.Errorf("linearizability: %v: %s: %s", lin.Verdict, lin.Part, lin.Explanation)
	}
	return err
}
