package epaxos

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/smrsim"
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
	*smrsim.Group
	scenario
	rand     *rand.Rand
	machines map[protocol.ID]*registers
	truth    map[string][]string // of each key, the values in their order, as any replica has applied them first
	places   map[string]int      // of a value and key, where in truth
	acked    []string            // values that were acknowledged, with their keys
	apps     []*app
	ops      history.KVRecorder
	token    smr.Slot
	stopped  bool
	done     int
	lastDone time.Duration
	gap      time.Duration
}

// app is an application with a client node, which makes one call after the other.
type app struct {
	id    protocol.ID
	value int
}

func newTestWorld(sc scenario) (*world, error) {
	w := &world{
		scenario: sc, rand: rand.New(rand.NewPCG(sc.seed, 0xe9)), machines: map[protocol.ID]*registers{},
		truth:  map[string][]string{},
		places: map[string]int{},
	}
	var place wan.Deployment
	for i := range sc.replicas {
		place.Replicas = append(place.Replicas, wan.Site(fmt.Sprint("s", i+1)))
	}
	place.Matrix = wan.Uniform(trip, place.Replicas...)
	var clients []wan.Site
	for i := range sc.clients {
		clients = append(clients, place.Replicas[i%sc.replicas])
	}
	var err error
	w.Group, err = smrsim.New(smrsim.Config{
		Protocol: Protocol(), Place: place, Clients: clients, RoundTrip: trip,
		Sim: sim.Config[smr.Message]{
			Seed: sc.seed, Codec: codec(), CodecChance: 0.2, Disk: sc.disk, CheckEvery: 5, TraceKeep: 200,
			Replay: fmt.Sprintf("go test -run TestSeeds . (seed %d, faults %v)", sc.seed, sc.faults),
		},
		Replica: func(c *smr.ReplicaConfig) {
			id := c.ID
			m := newRegisters(func(key, value string, place int) { w.applied(id, key, value, place) })
			w.machines[id] = m
			c.Machine, c.SnapshotEvery, c.MaxSessions = m, 60, w.sessions
		},
	})
	if err != nil {
		return nil, err
	}
	for _, id := range w.Clients {
		w.apps = append(w.apps, &app{id: id})
	}
	return w, nil
}

// applied checks that replicas agree on the order of the commands of each key, and that each is
// there once.
func (w *world) applied(id protocol.ID, key, value string, place int) {
	t := w.truth[key]
	switch {
	case place < len(t) && t[place] != value:
		w.Fail("Agreement: replica %d has %q as number %d of key %s, another one %q", id, value, place, key, t[place])
	case place == len(t):
		if p, ok := w.places[value+"@"+key]; ok {
			w.Fail("exactly once: %q is number %d and number %d of key %s", value, p, place, key)
		}
		w.truth[key] = append(t, value)
		w.places[value+"@"+key] = place
	}
}

// start makes a call, which is cancelled if it takes too long.
func (w *world) start(a *app, c smr.Call, then func(smr.Done)) {
	id := w.Make(a.id, c, func(answer smrsim.Answer) {
		w.token = max(w.token, answer.Slot)
		if answer.Outcome == smr.Committed {
			w.gap = max(w.gap, w.Now()-w.lastDone)
			w.lastDone = w.Now()
			w.done++
		}
		then(answer.Done)
	})
	w.After(2*time.Second, func() {
		if w.Waiting(a.id, uint64(id)) {
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
		records = append(records, w.ops.Invoke(history.Client(a.id), w.Now(), history.KVInput{Key: k, Kind: history.KVPut,
			Value: value}))
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
		w.After(time.Duration(i+1)*2*time.Millisecond, func() { w.next(w.apps[i]) })
	}
	if sc.faults != sim.NoFaults {
		var nodes []protocol.ID
		for _, m := range w.Members {
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
	if err := w.Pass(cmp.Or(sc.lasting, 3*time.Second)); err != nil {
		return w, err
	}
	w.Heal()
	for _, m := range w.Members {
		w.Restart(m.ID)
	}
	w.stopped = true
	if err := w.Await(15*time.Second, func() bool { return w.Unanswered() == 0 }); err != nil {
		return w, fmt.Errorf("liveness: calls never end: %w", err)
	}
	for range 100 {
		for _, m := range w.Members {
			w.Deliver(m.ID, smr.StatusQuery{})
		}
		if err := w.Pass(100 * time.Millisecond); err != nil {
			return w, err
		}
		if w.equal() {
			return w, w.judge()
		}
	}
	return w, fmt.Errorf("liveness: replicas do not become equal: %v", w.machines)
}

// equal reports whether all replicas have executed all, and say so.
func (w *world) equal() bool {
	applied := w.Status[w.Members[0].ID].Applied
	for _, m := range w.Members {
		if s := w.Status[m.ID]; w.machines[m.ID].String() != fmt.Sprint(w.truth) || s.Applied != applied ||
			s.Committed != applied || !s.Ready() {
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
