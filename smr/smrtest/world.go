package smrtest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
	"weak"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/sim/deploy"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/smrsim"
	"github.com/foresay/foresay/wan"
)

// A World is a running scenario, for scripts. It does not stand on package smrsim, whose groups are
// for measuring: theirs have the members that they begin with, each where it is placed, while here
// members join, are removed and get new disks in the course of a run. What both have alike is in
// sim/deploy.
type World struct {
	Sim *deploy.Deployment[smr.Message]

	sc       Scenario
	rand     *rand.Rand
	sites    []wan.Site
	group    []smr.Member // the first members
	replicas []protocol.ID
	gone     map[protocol.ID]bool // replicas that are not to come back
	clients  []*client
	admin    *client

	ops       history.KVRecorder
	proposals []*proposal
	logs      []*appliedLog
	bodies    []weak.Pointer[byte] // of commands that replicas applied, if they are large
	status    map[protocol.ID]smr.Status
	refused   map[protocol.ID]string
	counts    [4]int // calls by outcome
	lastDone  time.Duration
	gap       time.Duration
	longest   time.Duration // that a call took which was committed
	// token is the highest slot that any client was told: with it, each call says that it comes
	// after all that were done. Only if durable.
	token   smr.Slot
	fresh   int  // replicas that took the place of others
	changes int  // of the members, that are asked for
	changed int  // of the members, that are done
	stopped bool // clients begin nothing any more
	quiet   bool // clients begin nothing at present
	// handing is who is to lead, as a leader said last, and handedOver how often that came to be.
	handing    protocol.ID
	handedOver int
}

// appliedLog is what one incarnation of a replica applied since it began or last restored a
// snapshot.
type appliedLog struct {
	history.AppliedLog[commandID]
}

func newWorld(sc Scenario) (*World, error) {
	w := &World{
		sc: sc, rand: rand.New(rand.NewPCG(sc.Seed, 0x5eed)), sites: sites(), gone: map[protocol.ID]bool{},
		status: map[protocol.ID]smr.Status{}, refused: map[protocol.ID]string{},
	}
	keep := 300
	if sc.brief {
		keep = -1
	}
	var err error
	w.Sim, err = deploy.New(deploy.Config[smr.Message]{Answers: smrsim.Answers, Sim: sim.Config[smr.Message]{
		Seed: sc.Seed, WAN: wan.Uniform(roundTrip, w.sites...), Codec: sc.Protocol.Codec,
		CodecChance: cmp.Or(sc.codecChance, 0.1),
		Disk:        sc.Disk, QueueBytes: sc.QueueBytes, CheckEvery: 8,
		App: w.app, Trace: sc.Trace, TraceKeep: keep, Replay: sc.Replay,
	}})
	if err != nil {
		return nil, err
	}
	if err := w.narrow(); err != nil {
		return nil, err
	}
	for i := range sc.Replicas {
		w.group = append(w.group, smr.Member{ID: protocol.ID(i + 1), Address: fmt.Sprintf("host%d", i+1)})
	}
	for _, m := range w.group {
		if err := w.addReplica(m.ID, false); err != nil {
			return nil, err
		}
	}
	for i := range sc.Clients {
		c, err := w.addClient(firstClient + protocol.ID(i))
		if err != nil {
			return nil, err
		}
		w.clients = append(w.clients, c)
	}
	w.admin, err = w.addClient(admin)
	return w, err
}

// narrow gives the links between sites the scenario's bandwidth.
func (w *World) narrow() error {
	if w.sc.BytesPerSecond == 0 {
		return nil
	}
	for _, a := range w.sites {
		for _, b := range w.sites {
			path := wan.Path{From: a, To: b}
			if l, ok := w.Sim.Link(path); ok && a != b {
				l.BytesPerSecond = w.sc.BytesPerSecond
				if err := w.Sim.SetLink(path, l); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// addReplica puts a replica in: one of the first, or one that joins.
func (w *World) addReplica(id protocol.ID, join bool) error {
	build := func() (protocol.Node[smr.Message], error) {
		log := &appliedLog{}
		log.Replica = fmt.Sprint(id)
		machine := newMachine(func(first int, c commandID) { w.applied(&log, first, c) })
		if w.sc.ValueBytes > 0 {
			machine.saw = func(command []byte) { w.bodies = append(w.bodies, weak.Make(&command[0])) }
		}
		cfg := smr.ReplicaConfig{
			ID: id, Members: w.group, Join: join, RoundTrip: cmp.Or(w.sc.RoundTrip, roundTrip), SnapshotEvery: 150,
			Machine: stepwise{machine},
		}
		if id%4 == 0 { // often one that joins
			cfg.Machine = machine
		}
		if w.sc.Configure != nil {
			w.sc.Configure(&cfg)
		}
		if w.sc.vouch == nil {
			return w.sc.Protocol.NewReplica(cfg)
		}
		v := &vouching{id: id, members: w.hosts, beats: kit.NewHostBeats(cfg.RoundTrip)}
		cfg.Vouch = w.sc.vouch(v.beats.Vouch)
		var err error
		v.Node, err = w.sc.Protocol.NewReplica(cfg)
		return v, err
	}
	w.replicas = append(w.replicas, id)
	return w.Sim.Add(id, w.sites[int(id-1)%len(w.sites)], build)
}

// hosts returns where there are replicas.
func (w *World) hosts() []protocol.ID { return w.replicas }

// applied notes that a replica applied a command as the first+1st of its state.
func (w *World) applied(log **appliedLog, first int, c commandID) {
	l := *log
	if len(l.IDs) == 0 || l.First+len(l.IDs) != first {
		l = &appliedLog{}
		l.Replica, l.First = (*log).Replica, first
		w.logs = append(w.logs, l)
		*log = l
	}
	l.IDs = append(l.IDs, c)
}

// app gets what nodes send to their applications.
func (w *World) app(from protocol.ID, msg smr.Message) {
	switch msg := msg.(type) {
	case smr.Status:
		w.status[from] = msg
	case smr.HandingOver:
		w.handing = msg.To
	case smr.Refused:
		w.refused[from] = msg.Reason
		if !w.gone[from] {
			w.Sim.Fail("replica %d says that it is refused: %s", from, msg.Reason)
		}
	}
}

// durable reports whether proposals are done as soon as their slots are decided. Then clients hand
// on what they were told: all that was done before a call comes before it.
func (w *World) durable() bool { return w.sc.Seed%3 == 0 }

func (w *World) run() error {
	for i, c := range w.clients {
		for range max(w.sc.Calls, 1) {
			w.Sim.After(time.Duration(i+1)*3*time.Millisecond, c.next)
		}
	}
	if w.sc.Faults.Has(sim.LostDisk) {
		// A new group needs all its members to begin: before that, a lost disk is the end of it,
		// and it has nothing to lose.
		if err := w.Sim.Await(w.sc.Settle, func() bool { return w.counts[smr.Committed] > 0 }); err != nil {
			return fmt.Errorf("liveness: the group does not begin: %w", err)
		}
	}
	if w.sc.Faults != sim.NoFaults {
		err := w.Sim.Inject(sim.Profile{
			Faults: w.sc.Faults, Nodes: slices.Clone(w.replicas), Every: w.sc.FaultEvery, Lasting: w.sc.FaultEvery * 5 / 6,
			LostDisk: w.replace,
		})
		if err != nil {
			return err
		}
	}
	if w.sc.Script != nil {
		w.Sim.After(0, func() { w.sc.Script(w) })
	}
	if err := w.Sim.Pass(w.sc.For); err != nil {
		return err
	}
	w.Sim.Heal()
	if err := w.settle(); err != nil {
		return err
	}
	return w.judge()
}

// settle waits until each client was answered after the faults, all clients are done, all replicas
// have the same state, and those that were removed have ended.
func (w *World) settle() error {
	for _, id := range w.replicas {
		if !w.gone[id] {
			w.Sim.Restart(id)
		}
	}
	if err := w.Sim.Pass(w.Sim.Arrival() - w.Sim.Now()); err != nil {
		return err
	}
	healed, limit := w.Sim.Now(), w.sc.Settle
	answered := func() bool {
		for _, c := range w.clients {
			if c.lastCommit < healed {
				return false
			}
		}
		return true
	}
	if err := w.Sim.Await(limit, answered); err != nil {
		return fmt.Errorf("liveness: %v after the faults ended, a client was not answered yet: %w", limit, err)
	}
	w.stopped = true
	if err := w.idle(limit); err != nil {
		return fmt.Errorf("liveness: calls never end: %w", err)
	}
	var last []string
	equal := func() bool { last = w.differences(); return len(last) == 0 }
	deadline := w.Sim.Now() + limit
	for !equal() {
		if w.Sim.Now() > deadline {
			return fmt.Errorf("liveness: %v after the last call, replicas are not equal: %v", limit, last)
		}
		w.askStatus()
		if err := w.Sim.Pass(100 * time.Millisecond); err != nil {
			return err
		}
	}
	return w.Sim.Err()
}

// idle waits until no call is under way. Members are replaced one after the other, several of seven
// if their disks were lost, so the limit is for what is done up to the next change.
func (w *World) idle(limit time.Duration) error {
	for {
		before, done := w.changed, false
		err := w.Sim.Await(limit, func() bool {
			done = w.Sim.Unanswered() == 0 && w.changes == 0
			return done || w.changed > before
		})
		if done || err != nil {
			return err
		}
	}
}

func (w *World) askStatus() {
	clear(w.status)
	for _, id := range w.replicas {
		if !w.gone[id] {
			w.Sim.Deliver(id, smr.StatusQuery{ID: 1})
		}
	}
}

// members returns who belongs to the group, as most recently heard.
func (w *World) members() []protocol.ID {
	var ids []protocol.ID
	var newest smr.Status
	for _, id := range w.replicas {
		if s, ok := w.status[id]; ok && s.Applied >= newest.Applied {
			newest = s
		}
	}
	for _, m := range newest.Members {
		ids = append(ids, m.ID)
	}
	return ids
}

// differences returns what keeps the members from being equal, by their last words, and which of
// those that were removed go on.
func (w *World) differences() []string {
	members := w.members()
	if len(members) == 0 {
		return []string{"nobody has told its state"}
	}
	var out []string
	first, known := w.status[members[0]]
	for _, id := range members {
		s, ok := w.status[id]
		switch {
		case w.gone[id]:
		case !ok || !known:
			out = append(out, fmt.Sprintf("%d: unknown", id))
		case s.Applied < w.token:
			out = append(out, fmt.Sprintf("%d: applied %d, a client was told of %d", id, s.Applied, w.token))
		case s.Applied != first.Applied || s.Applied != s.Committed:
			out = append(out, fmt.Sprintf("%d: applied %d of %d, %d has %d", id, s.Applied, s.Committed, first.Replica,
				first.Applied))
		}
	}
	for _, id := range w.replicas {
		if w.gone[id] && w.Sim.Up(id) && w.refused[id] == "" {
			out = append(out, fmt.Sprintf("%d: removed, and does not know it", id))
		}
	}
	return out
}

func (w *World) report() Report {
	stats := w.Sim.Stats()
	r := Report{
		Seed: w.sc.Seed, Faults: w.sc.Faults, Hash: w.Sim.Hash(), Steps: w.Sim.Steps(), Crashes: stats.Crashes,
		LostWrites: stats.LostWrites, Gap: w.gap,
		Committed: w.counts[smr.Committed], Rejected: w.counts[smr.Rejected], Unknown: w.counts[smr.Unknown],
	}
	for _, l := range w.logs {
		r.Commands = max(r.Commands, l.First+len(l.IDs))
	}
	return r
}
