package history

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func smallSpeculation(seed uint64) Speculation[TxnID] {
	return simulateSpeculation(spsiConfig{seed: seed, keys: 4 + 2*int(seed%9), sessions: 9, executions: 60})
}

// TestRandomSpeculation checks that no history of a correct store is blamed, and that the histories
// have what the rules are about.
func TestRandomSpeculation(t *testing.T) {
	counts := make(map[string]int)
	for seed := range uint64(200) {
		h := smallSpeculation(seed)
		report, err := CheckSpeculation(h)
		if err != nil || report.Verdict() != OK {
			t.Fatalf("seed %d: %v, %v", seed, report, err)
		}
		if broken := brokenBy(h); len(broken) > 0 {
			t.Fatalf("seed %d: the twin finds %v", seed, broken)
		}
		for _, x := range h.Executions {
			counts["data"] += len(x.Data)
			counts["stack"] += len(x.Stack)
			counts["flow"] += len(x.Flow)
			switch {
			case x.Final.Event != 0:
				counts["final"]++
			case x.Aborted == 0:
				counts["open"]++
			case x.Local.Event != 0:
				counts["aborted after local commit"]++
			default:
				counts["aborted"]++
			}
			for _, r := range x.Reads {
				if r.Held {
					counts["held"]++
				}
			}
		}
	}
	for _, what := range []string{"data", "stack", "flow", "held", "open", "final", "aborted",
		"aborted after local commit"} {
		if counts[what] < 50 {
			t.Errorf("%s: only %d", what, counts[what])
		}
	}
}

// spsiPlant changes one thing in a right history, and returns false if it found no place for that.
type spsiPlant struct {
	name  string
	rule  SpeculationRule
	plant func(h *spsiPatient) bool
}

// spsiPatient is a history to plant a fault in.
type spsiPatient struct {
	Speculation[TxnID]
	r *rand.Rand
}

// execution returns a random execution that fits, or nil.
func (p *spsiPatient) execution(fits func(x *Execution[TxnID]) bool) *Execution[TxnID] {
	for _, i := range p.r.Perm(len(p.Executions)) {
		if x := &p.Executions[i]; fits(x) {
			return x
		}
	}
	return nil
}

// readBy returns a random read that fits, or nil.
func (p *spsiPatient) readBy(fits func(x *Execution[TxnID], r *SnapshotRead[TxnID]) bool) *SnapshotRead[TxnID] {
	var found *SnapshotRead[TxnID]
	p.execution(func(x *Execution[TxnID]) bool {
		i := slices.IndexFunc(x.Reads, func(r SnapshotRead[TxnID]) bool { return fits(x, &r) })
		if i >= 0 {
			found = &x.Reads[i]
		}
		return found != nil
	})
	return found
}

// dependent returns a random execution that fits with one that it read from or wrote over, or nil.
func (p *spsiPatient) dependent(fits func(x, on *Execution[TxnID]) bool) (x, on *Execution[TxnID]) {
	x = p.execution(func(x *Execution[TxnID]) bool {
		return slices.ContainsFunc(slices.Concat(x.Data, x.Stack), func(id TxnID) bool {
			on = &p.Executions[id]
			return fits(x, on)
		})
	})
	return x, on
}

// inSnapshot returns two random executions that fit and are in the snapshot of another one, or nil.
func (p *spsiPatient) inSnapshot(x *Execution[TxnID], fit func(a, b *Execution[TxnID]) bool) (a, b *Execution[TxnID]) {
	snapshot := make(map[TxnID]bool)
	twin := spsiTwin{executions: p.Executions}
	twin.closure(x.Reads, snapshot)
	a = p.execution(func(a *Execution[TxnID]) bool {
		b = p.execution(func(b *Execution[TxnID]) bool {
			return a != b && snapshot[a.ID] && snapshot[b.ID] && fit(a, b)
		})
		return b != nil
	})
	return a, b
}

func (p *spsiPatient) nextEvent(node string) Event {
	var last Event
	for i := range p.Executions {
		if x := &p.Executions[i]; x.Node == node {
			last = max(last, x.Begin, x.Local.Event, x.Final.Event, x.Aborted)
			for _, r := range x.Reads {
				last = max(last, r.Event)
			}
		}
	}
	return last + 1
}

func isFinal(x *Execution[TxnID]) bool { return x.Final.Event != 0 }

var spsiPlants = []spsiPlant{
	{"stale read", Visibility, func(p *spsiPatient) bool {
		r := p.readBy(func(_ *Execution[TxnID], r *SnapshotRead[TxnID]) bool { return r.State != Unwritten })
		if r != nil {
			r.State, r.Writer, r.Timestamp = Unwritten, 0, 0
		}
		return r != nil
	}},
	{"older version", Visibility, func(p *spsiPatient) bool {
		var old *Execution[TxnID]
		r := p.readBy(func(_ *Execution[TxnID], r *SnapshotRead[TxnID]) bool {
			old = p.execution(func(w *Execution[TxnID]) bool {
				return isFinal(w) && w.Final.Timestamp < r.Timestamp && slices.Contains(w.Writes, r.Key)
			})
			return old != nil
		})
		if r != nil {
			r.State, r.Writer, r.Timestamp = FinalCommitted, old.ID, old.Final.Timestamp
		}
		return r != nil
	}},
	{"final below a reader", Visibility, func(p *spsiPatient) bool {
		var below Timestamp
		w := p.execution(func(w *Execution[TxnID]) bool {
			r := p.readBy(func(x *Execution[TxnID], r *SnapshotRead[TxnID]) bool {
				below = x.Snapshot
				return isFinal(w) && below > w.Snapshot && below < w.Final.Timestamp && x.Node != w.Node &&
					(r.State != LocalCommitted || isFinal(&p.Executions[r.Writer])) &&
					slices.Contains(w.Writes, r.Key)
			})
			return r != nil
		})
		if w != nil {
			w.Final.Timestamp = below
		}
		return w != nil
	}},
	{"half of a writer", AtomicSnapshot, func(p *spsiPatient) bool {
		r := p.readBy(func(x *Execution[TxnID], r *SnapshotRead[TxnID]) bool {
			return !r.Held && slices.ContainsFunc(x.Reads, func(other SnapshotRead[TxnID]) bool {
				return !other.Held && other.State != Unwritten && other.Key != r.Key &&
					slices.Contains(p.Executions[other.Writer].Writes, r.Key)
			})
		})
		if r != nil {
			r.State, r.Writer, r.Timestamp = Unwritten, 0, 0
		}
		return r != nil
	}},
	{"not held", ConflictFreeSnapshot, func(p *spsiPatient) bool {
		r := p.readBy(func(x *Execution[TxnID], r *SnapshotRead[TxnID]) bool { return r.Held && r.FFC == 0 })
		if r != nil {
			r.Held = false
		}
		return r != nil
	}},
	{"common key in a snapshot", ConflictFreeSnapshot, func(p *spsiPatient) bool {
		var a, b *Execution[TxnID]
		x := p.execution(func(x *Execution[TxnID]) bool {
			if n := len(x.Reads); n == 0 || x.Reads[n-1].Held {
				return false
			}
			a, b = p.inSnapshot(x, func(a, b *Execution[TxnID]) bool {
				end := b.Local.Timestamp
				if isFinal(b) && b.Node != x.Node {
					end = b.Final.Timestamp
				}
				return !isFinal(a) && a.Snapshot < end && b.Snapshot < a.Local.Timestamp
			})
			return a != nil
		})
		if x != nil {
			a.Writes, b.Writes = append(a.Writes, "common"), append(b.Writes, "common")
		}
		return x != nil
	}},
	{"final on an aborted one", SettledDependencies, func(p *spsiPatient) bool {
		x, on := p.dependent(func(x, _ *Execution[TxnID]) bool { return isFinal(x) })
		if x != nil {
			on.Final, on.Aborted = Commit{}, on.Final.Event
		}
		return x != nil
	}},
	{"final on an open one", SettledDependencies, func(p *spsiPatient) bool {
		x, on := p.dependent(func(x, _ *Execution[TxnID]) bool { return isFinal(x) })
		if x != nil {
			on.Final = Commit{}
		}
		return x != nil
	}},
	{"final before its session's", SettledDependencies, func(p *spsiPatient) bool {
		x := p.execution(func(x *Execution[TxnID]) bool { return isFinal(x) && len(x.Flow) > 0 })
		if x != nil {
			on := &p.Executions[x.Flow[0]]
			x.Flow, on.Final = nil, Commit{} // the session shows it
		}
		return x != nil
	}},
	{"final too soon", SettledDependencies, func(p *spsiPatient) bool {
		x, on := p.dependent(func(x, _ *Execution[TxnID]) bool { return isFinal(x) })
		if x != nil {
			x.Final.Told, on.Final.Told = 0, 0
			x.Final.Event, on.Final.Event = on.Final.Event, x.Final.Event
			if x.Final.Event <= x.Local.Event {
				return false
			}
		}
		return x != nil
	}},
	{"final on what became final above", SettledDependencies, func(p *spsiPatient) bool {
		x, on := p.dependent(func(x, _ *Execution[TxnID]) bool { return isFinal(x) })
		if x != nil {
			on.Final.Timestamp = x.Snapshot + 1
		}
		return x != nil
	}},
	{"dependency not known", SettledDependencies, func(p *spsiPatient) bool {
		x := p.execution(func(x *Execution[TxnID]) bool { return len(x.Data) > 0 })
		if x != nil {
			x.Data = nil
		}
		return x != nil
	}},
	{"another node's", LocalSpeculation, func(p *spsiPatient) bool {
		r := p.readBy(func(x *Execution[TxnID], r *SnapshotRead[TxnID]) bool {
			return r.State == FinalCommitted && p.Executions[r.Writer].Node != x.Node
		})
		if r != nil {
			r.State = LocalCommitted
		}
		return r != nil
	}},
	{"another node's aborted", LocalSpeculation, func(p *spsiPatient) bool {
		r := p.readBy(func(x *Execution[TxnID], r *SnapshotRead[TxnID]) bool {
			return r.State == FinalCommitted && p.Executions[r.Writer].Node != x.Node
		})
		if r != nil {
			w := &p.Executions[r.Writer]
			w.Final, w.Aborted = Commit{}, w.Final.Event
		}
		return r != nil
	}},
	{"did not abort", CascadingAbort, func(p *spsiPatient) bool {
		x, _ := p.dependent(func(x, on *Execution[TxnID]) bool { return x.Aborted != 0 && on.Aborted != 0 })
		if x != nil {
			x.Aborted = 0
		}
		return x != nil
	}},
	{"did not abort above its snapshot", CascadingAbort, func(p *spsiPatient) bool {
		x, _ := p.dependent(func(x, on *Execution[TxnID]) bool { return x.Aborted != 0 && on.Final.Timestamp > x.Snapshot })
		if x != nil {
			x.Aborted = 0
		}
		return x != nil
	}},
	{"went on", CascadingAbort, func(p *spsiPatient) bool {
		x, _ := p.dependent(func(x, on *Execution[TxnID]) bool {
			return on.Aborted != 0 && on.Aborted < x.Aborted && x.Local.Event == 0
		})
		if x != nil {
			x.Local = Commit{Event: x.Aborted, Timestamp: x.Snapshot + 1}
			x.Aborted = p.nextEvent(x.Node)
		}
		return x != nil
	}},
	{"local commit at the snapshot", TimestampOrder, func(p *spsiPatient) bool {
		x := p.execution(func(x *Execution[TxnID]) bool { return x.Local.Event != 0 && len(x.Writes) > 0 })
		if x != nil {
			x.Local.Timestamp = x.Snapshot
		}
		return x != nil
	}},
	{"final below local", TimestampOrder, func(p *spsiPatient) bool {
		x := p.execution(isFinal)
		if x != nil {
			x.Final.Timestamp = x.Local.Timestamp - 1
		}
		return x != nil
	}},
	{"out of bounds", BoundedSnapshot, func(p *spsiPatient) bool {
		r := p.readBy(func(_ *Execution[TxnID], r *SnapshotRead[TxnID]) bool { return !r.Held })
		if r != nil {
			r.OLC = r.FFC - 1
		}
		return r != nil
	}},
	{"concurrent", FirstCommitterWins, func(p *spsiPatient) bool {
		var first *Execution[TxnID]
		x := p.execution(func(x *Execution[TxnID]) bool {
			first = p.execution(func(y *Execution[TxnID]) bool {
				return isFinal(x) && isFinal(y) && x != y && y.Final.Timestamp <= x.Snapshot && shareKey(x, y)
			})
			return first != nil
		})
		if x != nil {
			x.Snapshot = first.Final.Timestamp - 1
		}
		return x != nil
	}},
	{"below what the session was told", SessionOrder, func(p *spsiPatient) bool {
		var told *Execution[TxnID]
		x := p.execution(func(x *Execution[TxnID]) bool {
			told = p.execution(func(y *Execution[TxnID]) bool {
				return x.Session == y.Session && y.Local.Told != 0 && y.Local.Told < x.Begin
			})
			return told != nil
		})
		if x != nil {
			x.Snapshot = told.Local.Timestamp - 1
		}
		return x != nil
	}},
}

func cloneSpeculation(h Speculation[TxnID]) Speculation[TxnID] {
	executions := slices.Clone(h.Executions)
	for i := range executions {
		x := &executions[i]
		x.Reads, x.Writes = slices.Clone(x.Reads), slices.Clone(x.Writes)
		x.Data, x.Stack, x.Flow = slices.Clone(x.Data), slices.Clone(x.Stack), slices.Clone(x.Flow)
	}
	return Speculation[TxnID]{executions}
}

// TestRandomSpeculationPlants checks that each fault is found under its rule, wherever it is, and
// that the twin finds the same rules broken.
func TestRandomSpeculationPlants(t *testing.T) {
	planted := make([]int, len(spsiPlants))
	for seed := range uint64(100) {
		h := smallSpeculation(seed)
		for i, plant := range spsiPlants {
			p := &spsiPatient{cloneSpeculation(h), rand.New(rand.NewPCG(seed, 2))}
			if !plant.plant(p) {
				continue
			}
			planted[i]++
			if broken := compareWithTwin(t, seed, p.Speculation); !broken[plant.rule] {
				t.Fatalf("seed %d, %s: %v is not broken, but %v", seed, plant.name, plant.rule, broken)
			}
		}
	}
	for i, plant := range spsiPlants {
		if planted[i] < 5 {
			t.Errorf("%s: only %d were planted", plant.name, planted[i])
		}
	}
}

// compareWithTwin returns the rules that a history breaks.
func compareWithTwin(t *testing.T, seed uint64, h Speculation[TxnID]) map[SpeculationRule]bool {
	t.Helper()
	report, err := CheckSpeculation(h)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	want, got := brokenBy(h), make(map[SpeculationRule]bool)
	for _, b := range report.Breaches {
		got[b.Rule] = true
	}
	for rule := Visibility; rule <= lastSpeculationRule; rule++ {
		if want[TimestampOrder] && (rule == ConflictFreeSnapshot || rule == FirstCommitterWins) {
			continue // the shortcuts to conflicts take commits to be above snapshots
		}
		if got[rule] != want[rule] {
			t.Fatalf("seed %d: %v is broken: %t, and the twin finds %t\n%v", seed, rule, got[rule], want[rule], report)
		}
	}
	return got
}

// TestRandomSpeculationTweaks compares the checker with its twin on histories with any changes.
func TestRandomSpeculationTweaks(t *testing.T) {
	broken, right := make(map[SpeculationRule]int), 0
	for seed := range uint64(4000) {
		h := simulateSpeculation(spsiConfig{seed: seed, keys: 4 + int(seed%9), sessions: 7, executions: 30})
		p := &spsiPatient{h, rand.New(rand.NewPCG(seed, 3))}
		for range 1 + p.r.IntN(3) {
			if p.r.IntN(2) == 0 {
				p.tweak()
			} else {
				spsiPlants[p.r.IntN(len(spsiPlants))].plant(p)
			}
		}
		if _, err := CheckSpeculation(p.Speculation); err != nil {
			continue // an execution's own events are out of order
		}
		rules := compareWithTwin(t, seed, p.Speculation)
		for rule := range rules {
			broken[rule]++
		}
		if len(rules) == 0 {
			right++
		}
	}
	if right < 300 {
		t.Errorf("only %d histories are right", right)
	}
	for rule := Visibility; rule <= lastSpeculationRule; rule++ {
		if broken[rule] < 20 {
			t.Errorf("%v: only %d histories break it", rule, broken[rule])
		}
	}
}

// tweak changes one thing.
func (p *spsiPatient) tweak() {
	any := func(*Execution[TxnID]) bool { return true }
	x, y := p.execution(any), p.execution(any)
	some := func() Timestamp { return Timestamp(p.r.IntN(21) - 10) }
	switch p.r.IntN(17) {
	case 14:
		x.Local.Told, x.Final.Told = x.Local.Event, x.Final.Event
	case 15:
		x.Session = y.Session
	case 16:
		a, b := p.inSnapshot(x, func(a, b *Execution[TxnID]) bool { return !isFinal(a) || !isFinal(b) })
		if a != nil {
			a.Writes, b.Writes = append(a.Writes, "common"), append(b.Writes, "common")
		}
	case 0:
		p.swapEvents(x.Node)
	case 1:
		x.Snapshot += some()
	case 2:
		x.Local.Timestamp += some()
	case 3:
		x.Final.Timestamp += some()
	case 4:
		x.Final, x.Aborted = Commit{}, x.Final.Event
	case 5:
		x.Final = Commit{}
	case 6:
		x.Aborted = 0
	case 7:
		x.Final, x.Aborted = Commit{Event: max(x.Final.Event, x.Aborted), Timestamp: x.Snapshot + 1 + some()}, 0
	case 8:
		x.Node = "elsewhere"
	case 9:
		x.Writes = append(x.Writes, p.Executions[0].Writes...)
	case 10:
		x.Writes = x.Writes[len(x.Writes)/2:]
	case 11:
		if x != y {
			x.Data, x.Stack, x.Flow = x.Data[len(x.Data)/2:], append(x.Stack, y.ID), x.Flow[:len(x.Flow)/2]
		}
	case 12:
		if x != y {
			x.Flow = append(x.Flow, y.ID)
		}
	default:
		p.tweakRead(x, y)
	}
}

func (p *spsiPatient) tweakRead(x, y *Execution[TxnID]) {
	if len(x.Reads) == 0 || x == y {
		return
	}
	r := &x.Reads[p.r.IntN(len(x.Reads))]
	switch p.r.IntN(6) {
	case 0:
		r.Held = !r.Held
	case 1:
		r.OLC, r.FFC, r.Held = r.FFC, r.OLC, false
	case 2:
		r.State, r.Timestamp = Unwritten, 0
	case 3:
		r.Writer, r.State, r.Timestamp = y.ID, LocalCommitted, y.Local.Timestamp
	case 4:
		r.Writer, r.State, r.Timestamp = y.ID, FinalCommitted, y.Final.Timestamp
	default:
		r.Key = x.Reads[0].Key
	}
}

// swapEvents makes two events of a node, one right after the other, happen the other way round.
func (p *spsiPatient) swapEvents(node string) {
	var events []*Event
	for i := range p.Executions {
		x := &p.Executions[i]
		if x.Node != node {
			continue
		}
		events = append(events, &x.Begin)
		for j := range x.Reads {
			events = append(events, &x.Reads[j].Event)
		}
		for _, e := range []*Event{&x.Local.Event, &x.Final.Event, &x.Aborted} {
			if *e != 0 {
				events = append(events, e)
			}
		}
	}
	slices.SortFunc(events, func(a, b *Event) int { return int(*a) - int(*b) })
	i := p.r.IntN(len(events) - 1)
	*events[i], *events[i+1] = *events[i+1], *events[i]
	for i := range p.Executions {
		for _, commit := range []*Commit{&p.Executions[i].Local, &p.Executions[i].Final} {
			if commit.Told != 0 {
				commit.Told = max(commit.Told, commit.Event)
			}
		}
	}
}

// BenchmarkSpeculation takes a history of the length of a simulation.
func BenchmarkSpeculation(b *testing.B) {
	h := simulateSpeculation(spsiConfig{seed: 1, keys: 300, sessions: 60, executions: 2000})
	for b.Loop() {
		if report, err := CheckSpeculation(h); err != nil || report.Verdict() != OK {
			b.Fatal(report, err)
		}
	}
}
