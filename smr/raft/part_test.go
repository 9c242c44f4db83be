package raft

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/wan"
)

// A ledger is a machine with values under keys, and a chain over all entries that it has carried
// out, so that no two orders have the same state. It keeps the number of entries in memory.
type ledger struct {
	world *partWorld
	count int
	loads int
}

func (l *ledger) Load(state protocol.Keys) {
	b, _ := state.Get([]byte("/count"))
	l.count, _ = strconv.Atoi(string(b))
	if l.loads++; l.loads > 1 {
		l.world.copies++
	}
}

func (l *ledger) Apply(state State, at Position, entry []byte) {
	written, _ := state.Get([]byte("/count"))
	if n, _ := strconv.Atoi(string(written)); n != l.count {
		panic(fmt.Sprintf("in memory are %d entries, in the state %d", l.count, n))
	}
	last, _ := state.Get([]byte("/last"))
	if n, _ := strconv.Atoi(string(last)); uint64(n) >= at.Index {
		panic(fmt.Sprintf("entry %d is carried out after entry %d", at.Index, n))
	}
	l.count++
	state.Put([]byte("/count"), fmt.Append(nil, l.count))
	state.Put([]byte("/last"), fmt.Append(nil, at.Index))
	chain, _ := state.Get([]byte("/chain"))
	state.Put([]byte("/chain"), fmt.Append(nil, chained(string(chain), string(entry))))
	key, value, puts := strings.Cut(string(entry), "=")
	if puts {
		state.Put([]byte(key), []byte(value))
	} else {
		state.Delete([]byte(key))
	}
}

func chained(chain, entry string) string {
	h := uint64(14695981039346656037)
	for _, c := range []byte(chain + "|" + entry) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return fmt.Sprint(h)
}

// Messages between an owner and its application.
type (
	proposal struct{ entry string }
	// durable is what a member says of an entry that is on its disk, in the entry's term.
	durable  struct{ at Position }
	confirm  struct{}
	handOver struct{ to protocol.ID }
	change   struct{ smr.Change }
	answered struct{ reason string }
)

// owner is a node with a member of a group in it.
type owner struct {
	world   *partWorld
	id      protocol.ID
	part    *Part[any]
	machine *ledger
	// asked are the questions that it waits for, with what was committed when it asked.
	asked     map[uint64]uint64
	questions uint64
}

// prefixOf the part's keys, beside which the owner has one of its own.
const prefixOf = "group/"

func (w *partWorld) newOwner(id protocol.ID, join bool) protocol.Node[any] {
	o := &owner{world: w, id: id, machine: &ledger{world: w}, asked: map[uint64]uint64{}}
	cfg := smr.ReplicaConfig{ID: id, Members: w.first, Join: join, RoundTrip: 20 * time.Millisecond, Leader: 1,
		SnapshotEvery: w.keep, LogBytes: 64 << 10, SnapshotPartBytes: w.pageBytes}
	var err error
	o.part, err = NewPart(PartConfig[any]{
		Group: cfg, Machine: o.machine, Prefix: []byte(prefixOf),
		Message: func(m smr.Message) any { return m },
		Timer:   func(t protocol.Timer) protocol.Timer { return t },
		Hooks: Hooks[any]{
			Stored: func(env *protocol.Env[any], at Position, entry []byte) {
				w.stored(at, string(entry))
				env.Send(protocol.App, durable{at})
			},
			Committed: func(env *protocol.Env[any], at Position, entry []byte) { w.agreed(id, at, string(entry)) },
			Leads:     func(_ *protocol.Env[any], term uint64) { w.leads(id, term) },
			Current:   func(_ *protocol.Env[any], term uint64) { w.isCurrent(o, term) },
			Confirmed: func(_ *protocol.Env[any], question uint64) { w.confirmed(o, question) },
			Follows:   func(*protocol.Env[any]) { w.follows(id); clear(o.asked) },
			Said: func(_ *protocol.Env[any], msg smr.Message) {
				if m, ok := msg.(smr.Refused); ok {
					w.refused[id] = m.Reason
				}
			},
		},
	})
	if err != nil {
		panic(err)
	}
	return o
}

func (o *owner) Start(env *protocol.Env[any], log []protocol.Record[any]) {
	o.world.started(o.id)
	var inner []protocol.Record[smr.Message]
	for _, r := range log {
		inner = append(inner, protocol.Record[smr.Message]{Index: r.Index, Msg: r.Msg})
	}
	o.part.Start(env, inner)
	if loaded := o.machine.loads; loaded == 0 {
		o.world.fail("member %d was not told of its state at the start", o.id)
	}
}

func (o *owner) Receive(env *protocol.Env[any], from protocol.ID, msg any) {
	switch m := msg.(type) {
	case proposal:
		if at, ok := o.part.Propose(env, []byte(m.entry)); ok {
			o.world.proposals++
			if term, there := o.part.TermOf(at.Index); !there || term != at.Term {
				o.world.fail("an entry is proposed at %v, where the term is %d", at, term)
			}
		}
	case confirm:
		o.questions++
		question := o.questions
		o.asked[question] = o.world.last
		if !o.part.Confirm(env, question) {
			delete(o.asked, question)
		}
	case handOver:
		o.part.Receive(env, protocol.App, smr.HandOver{To: m.to})
	case change:
		env.Send(protocol.App, answered{o.part.Change(env, m.Change)})
	default:
		o.part.Receive(env, from, msg)
	}
	env.Put([]byte("beside"), []byte("owner's"))
}

func (o *owner) Expire(env *protocol.Env[any], t protocol.Timer) { o.part.Expire(env, t) }

func (o *owner) Check() error {
	if o.world.err != nil {
		return o.world.err
	}
	return o.part.Check()
}

// A partWorld is a group whose members are embedded, and what is known of all of them. It stands on
// package sim, without deploy: what members tell their applications is no answer to a call.
type partWorld struct {
	sim     *sim.Sim[any]
	rand    *rand.Rand
	first   []smr.Member // with whom the group begins
	members []smr.Member // of now
	err     error

	keep      int // entries, in a log
	keys      int // that entries are about
	pageBytes int

	entries   map[uint64]string // that were agreed on, by index
	terms     map[uint64]uint64
	had       map[protocol.ID]uint64 // the last that a member carried out since it began
	last      uint64
	words     map[Position]map[protocol.ID]bool
	told      map[Position]string // what is at a position
	must      map[uint64]uint64   // index and term of what a majority says to have
	leading   map[protocol.ID]uint64
	elected   map[uint64]protocol.ID
	atLeast   map[uint64]uint64 // by term, what was committed when it began
	currents  int
	confirms  int
	proposals int
	early     int // proposals that a majority had before anybody knew them to be committed
	refused   map[protocol.ID]string
	copies    int  // that took the place of a state
	changes   bool // of the members: majorities are not counted
	answers   []string
}

// newPartWorld returns a world of one of several sizes. With an odd seed copies of the state have
// many pages, and disks are slow; with two of four calls take time.
func newPartWorld(seed uint64) (*partWorld, error) {
	w := &partWorld{
		rand: rand.New(rand.NewPCG(seed, 3)), members: []smr.Member{{ID: 1}, {ID: 2}, {ID: 3}},
		keep: 20 + int(seed%5)*20, keys: 60, pageBytes: 400,
		entries: map[uint64]string{}, terms: map[uint64]uint64{}, had: map[protocol.ID]uint64{},
		words: map[Position]map[protocol.ID]bool{}, told: map[Position]string{}, must: map[uint64]uint64{},
		leading: map[protocol.ID]uint64{}, elected: map[uint64]protocol.ID{}, atLeast: map[uint64]uint64{},
		refused: map[protocol.ID]string{},
	}
	w.first = slices.Clone(w.members)
	disk := sim.Disk{Latency: time.Millisecond, Jitter: 3 * time.Millisecond}
	if seed%2 == 1 {
		w.keep, w.keys, w.pageBytes, disk.Jitter = 12, 400, 150, 20*time.Millisecond
	}
	cfg := sim.Config[any]{
		Seed: seed, WAN: wan.Uniform(20*time.Millisecond, "a", "b", "c"), App: w.app, CheckEvery: 3, Disk: disk,
		TraceKeep: 200,
	}
	if seed%4 >= 2 {
		cfg.Service = func(sim.Call[any]) time.Duration { return 200 * time.Microsecond }
	}
	var err error
	w.sim, err = sim.New(cfg)
	if err != nil {
		return nil, err
	}
	for i, m := range w.members {
		if err := w.add(m.ID, wan.Site("abc"[i:i+1]), false); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *partWorld) add(id protocol.ID, site wan.Site, join bool) error {
	return w.sim.Add(sim.Node[any]{ID: id, Site: site, New: func() protocol.Node[any] { return w.newOwner(id, join) }})
}

func (w *partWorld) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

// started forgets what a member that begins has carried out in memory.
func (w *partWorld) started(id protocol.ID) {
	delete(w.leading, id)
	w.had[id] = 0
}

func (w *partWorld) app(from protocol.ID, msg any) {
	switch m := msg.(type) {
	case durable:
		if w.words[m.at] == nil {
			w.words[m.at] = map[protocol.ID]bool{}
		}
		w.words[m.at][from] = true
		if w.changes || len(w.words[m.at]) <= len(w.members)/2 || w.must[m.at.Index] != 0 {
			return
		}
		w.must[m.at.Index] = m.at.Term
		if _, ok := w.entries[m.at.Index]; !ok {
			w.early++
		}
		w.compare(m.at.Index)
	case answered:
		w.answers = append(w.answers, m.reason)
	}
}

// stored takes note of what is at a position.
func (w *partWorld) stored(at Position, entry string) {
	if was, ok := w.told[at]; ok && was != entry {
		w.fail("at %v are %q and %q", at, was, entry)
	}
	w.told[at] = entry
}

// agreed takes note that a member has carried out an entry.
func (w *partWorld) agreed(id protocol.ID, at Position, entry string) {
	if was, ok := w.entries[at.Index]; ok && was != entry {
		w.fail("member %d has carried out %q at %d, another one %q", id, entry, at.Index, was)
	}
	if at.Index <= w.had[id] {
		w.fail("member %d carries out entry %d after entry %d", id, at.Index, w.had[id])
	}
	w.entries[at.Index], w.terms[at.Index] = entry, at.Term
	w.had[id], w.last = at.Index, max(w.last, at.Index)
	w.compare(at.Index)
}

// compare looks whether what a majority says to have is what was agreed on.
func (w *partWorld) compare(index uint64) {
	term, agreed := w.terms[index]
	if must := w.must[index]; agreed && must != 0 && must != term {
		w.fail("a majority has entry %d of term %d, and that of term %d is agreed on", index, must, term)
	}
}

func (w *partWorld) leads(id protocol.ID, term uint64) {
	if was := w.elected[term]; was != 0 {
		w.fail("members %d and %d are elected in term %d", was, id, term)
	}
	if w.leading[id] != 0 {
		w.fail("member %d leads twice", id)
	}
	w.leading[id], w.elected[term], w.atLeast[term] = term, id, w.last
}

func (w *partWorld) isCurrent(o *owner, term uint64) {
	if leads, ok := o.part.Leads(); w.leading[o.id] != term || !ok || leads != term || o.part.Leader().ID != o.id {
		w.fail("member %d is current in term %d, and leads in %d", o.id, term, w.leading[o.id])
	}
	w.currents++
	if at := o.part.Applied().Index; at < w.atLeast[term] {
		w.fail("member %d is current with %d entries, and %d were agreed on before its election", o.id, at, w.atLeast[term])
	}
}

// confirmed: whoever has asked may take the state for what there was when it did.
func (w *partWorld) confirmed(o *owner, question uint64) {
	asked, ok := o.asked[question]
	if at := o.part.Applied().Index; !ok || at < asked {
		w.fail("member %d is confirmed (asked: %v) with %d entries, and %d were agreed on when it asked", o.id, ok, at, asked)
	}
	delete(o.asked, question)
	w.confirms++
}

func (w *partWorld) follows(id protocol.ID) {
	if w.leading[id] == 0 {
		w.fail("member %d leads no more, and did not", id)
	}
	delete(w.leading, id)
}

// propose has all members propose an entry, of whom one leads.
func (w *partWorld) propose() {
	key := fmt.Sprintf("key%03d", w.rand.IntN(w.keys))
	entry := key + "=" + strings.Repeat("v", w.rand.IntN(120))
	if w.rand.IntN(4) == 0 {
		entry = key
	}
	for _, m := range w.members {
		w.sim.Deliver(m.ID, proposal{entry})
	}
}

// load has entries proposed until some time.
func (w *partWorld) load(until time.Duration) {
	w.sim.After(time.Duration(1+w.rand.IntN(8))*time.Millisecond, func() {
		if w.sim.Now() < until {
			w.propose()
			w.load(until)
		}
	})
}

// judge looks whether all members have what was agreed on, when all are there.
func (w *partWorld) judge() error {
	want := map[string]string{}
	chain, count, lastIndex := "", 0, uint64(0)
	for _, index := range slices.Sorted(maps.Keys(w.entries)) {
		entry := w.entries[index]
		chain, lastIndex = chained(chain, entry), index
		count++
		if key, value, puts := strings.Cut(entry, "="); puts {
			want[key] = value
		} else {
			delete(want, entry)
		}
	}
	want["/count"], want["/last"], want["/chain"] = fmt.Sprint(count), fmt.Sprint(lastIndex), chain
	for _, m := range w.members {
		if why := w.refused[m.ID]; why != "" {
			return fmt.Errorf("member %d is refused: %s", m.ID, why)
		}
		o := w.sim.Get(m.ID).(*owner)
		_, keys, err := w.sim.Disk(m.ID)
		if err != nil {
			return err
		}
		got := map[string]string{}
		state := o.part.State(keys)
		for k, v := range state.Scan(nil, nil) {
			got[string(k)] = string(v)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("member %d (%v) has another state (-want +got):\n%s", m.ID, o.part, diff)
		}
		for k := range protocol.Prefixed(keys, []byte(prefixOf+statePrefix)).Scan(nil, nil) {
			if area := areaOf(append([]byte(statePrefix), k...)); area != o.part.replica.part.head.area {
				return fmt.Errorf("member %d has keys of area %d left", m.ID, area)
			}
		}
		if _, ok := keys.Get([]byte("beside")); !ok {
			return fmt.Errorf("member %d has lost what is beside its group", m.ID)
		}
	}
	for at := range w.must {
		if w.terms[at] != w.must[at] {
			return fmt.Errorf("a majority had entry %d of term %d, and term %d is agreed on", at, w.must[at], w.terms[at])
		}
	}
	return w.err
}

// playParts plays a seed.
func playParts(seed uint64) (w *partWorld, err error) {
	w, err = newPartWorld(seed)
	if err != nil {
		return nil, err
	}
	const faulty = 8 * time.Second
	w.sim.At(500*time.Millisecond, func() {
		err = w.sim.Inject(sim.Profile{Faults: sim.Swarm(seed, sim.StreamFaults) | sim.Crash, Every: 300 * time.Millisecond,
			Lasting: 700 * time.Millisecond})
		w.load(faulty)
	})
	for at := time.Second; at < faulty; at += 20 * time.Millisecond {
		w.sim.At(at, func() {
			for _, m := range w.members {
				w.sim.Deliver(m.ID, confirm{})
			}
		})
	}
	for at := time.Second; at < faulty; at += time.Second {
		to := protocol.ID(w.rand.IntN(4))
		w.sim.At(at, func() {
			for _, m := range w.members {
				w.sim.Deliver(m.ID, handOver{to})
			}
		})
	}
	if err2 := w.sim.Run(faulty); err2 != nil || err != nil {
		return w, fmt.Errorf("%w, %w", err2, err)
	}
	w.sim.Heal()
	for _, m := range w.members {
		w.sim.Restart(m.ID)
	}
	w.load(faulty + time.Second)
	if err := w.sim.Run(faulty + 6*time.Second); err != nil {
		return w, err
	}
	return w, w.judge()
}

// TestParts plays groups that are embedded, under faults. What members are told must be true, each
// entry is carried out once, and all come to have the same state. Logs are short, so that who was
// away gets a copy of the state while that changes.
func TestParts(t *testing.T) {
	seeds := uint64(20)
	if testing.Short() {
		seeds = 10
	}
	copies, currents, proposals, early, confirms := 0, 0, 0, 0, 0
	for seed := range seeds {
		w, err := playParts(seed)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		copies += w.copies
		currents, proposals, early = currents+w.currents, proposals+w.proposals, early+w.early
		confirms += w.confirms
	}
	if n := int(seeds); copies < n || currents < 2*n || proposals < 100*n || early < 10*n || confirms < 100*n {
		t.Errorf("%d copies of states, %d leaders, %d entries, of which a majority spoke first of %d, and %d questions "+
			"are few", copies, currents, proposals, early, confirms)
	}
}

// TestPartSeedsNotice plays the seeds that notice a bug.
func TestPartSeedsNotice(t *testing.T) {
	plant.Seeds(t, plants(), func(seed uint64) error {
		_, err := playParts(seed)
		return err
	})
}

// TestCopyUnderLoad has a member come back that needs a copy of the state, while entries never
// cease. The log is kept behind the copy, so that one copy is enough. Without that one seed in four
// needs no second copy, so there are several; all have copies of many pages.
func TestCopyUnderLoad(t *testing.T) {
	for _, seed := range []uint64{1, 3, 5, 7} {
		w, err := newPartWorld(seed)
		if err != nil {
			t.Fatal(err)
		}
		const away, back, end = time.Second, 4 * time.Second, 8 * time.Second
		w.sim.At(200*time.Millisecond, func() { w.load(end) })
		w.sim.At(away, func() { w.sim.Crash(3, sim.KeepNone) })
		w.sim.At(back, func() { w.sim.Restart(3) })
		if err := w.sim.Run(end); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if loads := w.sim.Get(3).(*owner).machine.loads; loads != 2 {
			t.Errorf("seed %d: the state was loaded %d times, want twice: at the start, and from the copy", seed, loads)
		}
		if got := w.had[3]; got+100 < w.last {
			t.Errorf("seed %d: the member has %d entries, of %d", seed, got, w.last)
		}
	}
}

// TestPartPatience has a part miss its leader after a time of the owner's choice, which is no less
// than 1.5 round trips and no more than 3.
func TestPartPatience(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct{ roundTrip, patience, want time.Duration }{
		{100 * ms, 0, 300 * ms}, {100 * ms, 500 * ms, 300 * ms}, {300 * ms, 500 * ms, 500 * ms},
		{400 * ms, 500 * ms, 600 * ms},
	} {
		p, err := NewPart(PartConfig[any]{Patience: tt.patience, Machine: &ledger{},
			Group: smr.ReplicaConfig{ID: 1, Members: []smr.Member{{ID: 1}}, RoundTrip: tt.roundTrip}})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.replica.patience(); got != tt.want {
			t.Errorf("at round trips of %v it waits for %v, want %v", tt.roundTrip, got, tt.want)
		}
	}
}
