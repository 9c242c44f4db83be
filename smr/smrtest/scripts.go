package smrtest

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
)

// A script is a scenario that is written down, to be played with a few seeds.
type script struct {
	name  string
	seeds int
	make  func(*Scenario)
	// judge looks at the end of a run that has kept all promises. nil: nothing more.
	judge func(*World, Report) error
}

// play plays the script with its seeds, from the first on.
func (s script) play(t *testing.T, p smr.Protocol, first uint64) {
	for n := first; n < first+uint64(seed.Count(t, s.seeds)); n++ {
		replay := fmt.Sprintf("%s=%d go test -run '%s' .", seed.Variable, n, t.Name())
		if r, err := s.once(p, n, replay); err != nil {
			t.Fatalf("%v\n%v\nrepeat it with: %s", r, err, replay)
		}
	}
}

func (s script) once(p smr.Protocol, seed uint64, replay string) (Report, error) {
	sc := Scenario{Protocol: p, Seed: seed, Replay: replay}
	s.make(&sc)
	var world *World
	inner := sc.Script
	sc.Script = func(w *World) {
		world = w
		if inner != nil {
			inner(w)
		}
	}
	r, err := Play(sc)
	if err == nil && s.judge != nil {
		err = s.judge(world, r)
	}
	return r, err
}

// maxGap bounds the time without a commit when a leader is lost: a few round trips to miss it, and
// a few to agree on another and to find it.
const maxGap = 30 * roundTrip

func scripts() []script {
	return []script{
		{name: "calm", seeds: 3, make: func(*Scenario) {}, judge: calls(200)},
		{name: "one replica", seeds: 2, make: func(sc *Scenario) { sc.Replicas = 1 }, judge: calls(200)},
		{name: "log of bytes", seeds: 2, make: func(sc *Scenario) {
			sc.Configure = func(c *smr.ReplicaConfig) { c.SnapshotEvery, c.LogBytes = 100_000, 4000 }
		}, judge: compacted},
		{name: "commands behind a snapshot", seeds: 3, make: func(sc *Scenario) {
			sc.ValueBytes, sc.Clients, sc.codecChance = 1<<10, 24, 1
			sc.Configure = func(c *smr.ReplicaConfig) { c.SnapshotEvery, c.LogBytes = 100_000, 32<<10 }
		}, judge: forgotten},
		{name: "batches behind a snapshot", seeds: 3, make: func(sc *Scenario) {
			sc.ValueBytes, sc.Clients, sc.Calls, sc.codecChance = 1<<10, 6, 16, 1
			sc.For = 3 * time.Second
			sc.Configure = func(c *smr.ReplicaConfig) { c.SnapshotEvery, c.LogBytes = 100_000, 128<<10 }
		}, judge: forgottenBut(4)},
		{name: "pending bytes", seeds: 2, make: func(sc *Scenario) {
			sc.Clients = 12
			sc.Configure = func(c *smr.ReplicaConfig) { c.MaxPendingBytes = 1 }
		}, judge: calls(100)},
		{name: "failover", seeds: 10, make: func(sc *Scenario) { sc.Script = failover }, judge: shortGap},
		{name: "all crash", seeds: 10, make: func(sc *Scenario) {
			sc.Script = allCrash
			// So slow that what is not on disk yet matters.
			sc.Disk = sim.Disk{Latency: roundTrip / 2, Jitter: 2 * roundTrip}
		}},
		// Two faults alone: among many of them, a power failure seldom meets writes that only some
		// disks have.
		{name: "power fails beside slow disks", seeds: 80, make: func(sc *Scenario) {
			sc.Faults, sc.FaultEvery = sim.Power|sim.SlowDisk, 400*time.Millisecond
			sc.Disk = sim.Disk{Latency: roundTrip / 4, Jitter: roundTrip / 2}
			if sc.Seed%4 == 0 {
				sc.Replicas = 5
			}
		}},
		{name: "crashes while snapshots are written", seeds: 3, make: func(sc *Scenario) {
			sc.Configure, sc.Faults = snapshotsInParts, sim.Crash|sim.Power
			sc.Disk = sim.Disk{Latency: roundTrip / 8, Jitter: roundTrip / 8}
		}, judge: compactedBut(60)},
		{name: "catch up", seeds: 5, make: func(sc *Scenario) { sc.Script = laggard }, judge: compacted},
		{name: "members", seeds: 5, make: func(sc *Scenario) { sc.Script = changeMembers }, judge: membersAre(2, 4, 5)},
		{name: "members under faults", seeds: 10, make: func(sc *Scenario) {
			sc.Script = changeMembers
			sc.Faults = sim.Partition | sim.OneWay | sim.Reset | sim.Slow | sim.Loss
		}, judge: membersAre(2, 4, 5)},
		{name: "restarts among new members", seeds: 3, make: func(sc *Scenario) {
			sc.Script, sc.Configure = restartNewMembers(3), rareSnapshots
		}, judge: membersAre(3, 4, 5)},
		{name: "restarts among five new members", seeds: 2, make: func(sc *Scenario) {
			sc.Replicas, sc.Script, sc.Configure = 5, restartNewMembers(5), rareSnapshots
		}, judge: membersAre(5, 6, 7, 8, 9)},
		{name: "a member that was away while all others were replaced", seeds: 3, make: func(sc *Scenario) {
			sc.Script, sc.Configure = awayWhileReplaced(3), rareSnapshots
		}, judge: membersAre(3, 4, 5)},
		{name: "a member that was away while four others were replaced", seeds: 2, make: func(sc *Scenario) {
			sc.Replicas, sc.Script, sc.Configure = 5, awayWhileReplaced(5), rareSnapshots
		}, judge: membersAre(5, 6, 7, 8, 9)},
		{name: "members replaced under faults", seeds: 5, make: func(sc *Scenario) {
			sc.Script = func(w *World) { w.exchange([]protocol.ID{1, 2}, []protocol.ID{4, 5}, func() {}) }
			sc.Configure = rareSnapshots
			sc.Faults = sim.Crash | sim.Partition | sim.OneWay | sim.Reset | sim.Slow | sim.Loss
		}, judge: membersAre(3, 4, 5)},
		{name: "removed while nobody calls", seeds: 4, make: func(sc *Scenario) {
			sc.Script, sc.For = removeWhileIdle, 3*time.Second
		}, judge: membersAre(1, 3)},
		{name: "lost disk", seeds: 5, make: func(sc *Scenario) { sc.Script = lostDisk }, judge: membersAre(1, 3, 4)},
		{name: "overload", seeds: 3, make: overload, judge: calls(100)},
		{name: "a group of one grows", seeds: 1, make: func(sc *Scenario) {
			sc.Replicas, sc.Script = 1, grow
		}, judge: membersAre(1, 2, 3)},
		// As where machines are busy, or large values are on their way.
		{name: "slower than configured", seeds: 3, make: func(sc *Scenario) {
			sc.RoundTrip = roundTrip / 10
		}, judge: calls(100)},
		{name: "back among large values", seeds: 1, make: func(sc *Scenario) {
			sc.Clients, sc.ValueBytes, sc.BytesPerSecond, sc.QueueBytes = 48, 64<<10, 8<<20, 16<<20
			sc.Script = backSoon
		}, judge: goesOn},
	}
}

// calls returns a judge of how many calls were committed.
func calls(atLeast int) func(*World, Report) error {
	return func(_ *World, r Report) error {
		if r.Committed < atLeast {
			return fmt.Errorf("liveness: %d calls were committed, not at least %d", r.Committed, atLeast)
		}
		return nil
	}
}

// WhoLeads calls then with the replica that says that it leads, or else the first one that is up.
func (w *World) WhoLeads(then func(protocol.ID)) { w.whoLeadsIn(time.Millisecond, then) }

// whoLeadsIn is WhoLeads with a time for the replicas to answer, whose disks may be busy.
func (w *World) whoLeadsIn(d time.Duration, then func(protocol.ID)) {
	w.askStatus()
	w.Sim.After(d, func() {
		var leader protocol.ID
		ballot := uint64(0)
		for _, id := range w.replicas {
			s, ok := w.status[id]
			if ok && leader == 0 || s.Role == "leader" && s.Ballot >= ballot {
				leader, ballot = id, s.Ballot
			}
		}
		then(leader)
	})
}

// failover kills the leader, which does not come back before the end.
func failover(w *World) {
	w.Sim.After(2*time.Second, func() { w.WhoLeads(func(id protocol.ID) { w.Sim.Crash(id, sim.KeepNone) }) })
}

// backSoon kills a replica, which is back after two seconds with all that was on its disk.
func backSoon(w *World) {
	victim := w.replicas[w.rand.IntN(len(w.replicas))]
	w.Sim.After(time.Second, func() { w.Sim.Crash(victim, sim.KeepAll) })
	w.Sim.After(3*time.Second, func() { w.Sim.Restart(victim) })
}

// goesOn allows the gap of a lost leader where answers take many times as long as in a group with
// nothing to do.
func goesOn(_ *World, r Report) error {
	if r.Gap > 2*time.Second || r.Committed < 500 {
		return fmt.Errorf("liveness: %d calls were committed, with a gap of %v", r.Committed, r.Gap)
	}
	return nil
}

func shortGap(_ *World, r Report) error {
	if r.Gap > maxGap {
		return fmt.Errorf("liveness: %v without a commit after the leader was lost, at most %v is allowed", r.Gap, maxGap)
	}
	return nil
}

// allCrash has all replicas crash at once, time and again, within the writing of records.
func allCrash(w *World) {
	for i := range 5 {
		w.Sim.After(time.Duration(i+1)*time.Second, func() {
			for _, id := range w.replicas {
				switch w.rand.IntN(3) {
				case 0:
					w.Sim.Crash(id, sim.KeepNone)
				case 1:
					w.Sim.CrashInNextWrite(id, sim.Keep(w.rand.IntN(3)))
				default:
					w.Sim.Crash(id, sim.KeepAll)
				}
			}
		})
		w.Sim.After(time.Duration(i+1)*time.Second+300*time.Millisecond, func() {
			for _, id := range w.replicas {
				w.Sim.Crash(id, sim.KeepNone)
				w.Sim.Restart(id)
			}
		})
	}
}

// laggard keeps a replica down for so long that the others have cut their logs beyond it.
func laggard(w *World) {
	w.sc.For = max(w.sc.For, 6*time.Second)
	w.Sim.After(time.Second, func() { w.Sim.Crash(3, sim.KeepNone) })
	w.Sim.After(5*time.Second, func() { w.Sim.Restart(3) })
}

// compacted looks whether logs were cut, and the laggard has a snapshot too.
func compacted(w *World, r Report) error { return compactedBut(0)(w, r) }

// forgotten looks whether commands that a snapshot has are in nobody's memory any more. A replica's
// log fills with 32 of them; an eighth stays behind a snapshot, and some come while it is written.
func forgotten(w *World, r Report) error { return forgottenBut(1)(w, r) }

// forgottenBut is forgotten for logs that fill with so many times as many.
func forgottenBut(times int) func(*World, Report) error {
	return func(w *World, r Report) error {
		runtime.GC()
		held := 0
		for _, b := range w.bodies {
			if b.Value() != nil {
				held++
			}
		}
		if most := 40 * times * len(w.replicas); held > most || len(w.bodies) < 10*most {
			return fmt.Errorf("memory: of %d commands that were executed %d are held, more than %d", len(w.bodies), held, most)
		}
		return compacted(w, r)
	}
}

// compactedBut allows more records: a snapshot that a crash has ended is begun anew with the next
// command only.
func compactedBut(left int) func(*World, Report) error {
	return func(w *World, r Report) error {
		for _, id := range w.replicas {
			s := w.status[id]
			if s.Snapshot == 0 || s.LogSize > r.Commands*2/3+left {
				return fmt.Errorf("compaction: replica %d has a log of %d records after %d commands, and a snapshot at slot %d", id,
					s.LogSize, r.Commands, s.Snapshot)
			}
		}
		return nil
	}
}

// grow adds two members to one that is alone.
func grow(w *World) {
	w.Sim.After(time.Second, func() { w.Join(2, func() { w.Join(3, func() {}) }) })
}

// changeMembers replaces two of three replicas, the first leader among them, one after the other.
func changeMembers(w *World) {
	w.Sim.After(time.Second, func() {
		w.Join(4, func() {
			w.Remove(1, func() {
				w.Join(5, func() {
					w.Remove(3, func() {})
				})
			})
		})
	})
}

// removeWhileIdle removes a member of a group that nobody calls; in every other seed the member is
// cut off meanwhile, so
// that it does not hear of it.
func removeWhileIdle(w *World) {
	w.Sim.After(time.Second, func() { w.quiet = true })
	if w.sc.Seed%2 == 0 {
		w.Sim.After(1900*time.Millisecond, func() { w.Sim.Partition([]protocol.ID{2}, []protocol.ID{1, 3}) })
		w.Sim.After(2500*time.Millisecond, func() { w.Sim.Reunite([]protocol.ID{2}, []protocol.ID{1, 3}) })
	}
	w.Sim.After(2*time.Second, func() { w.Remove(2, func() {}) })
	w.Sim.After(3*time.Second, func() { w.quiet = false })
}

// rareSnapshots leaves replicas with what they write besides the snapshots of their executing much.
// snapshotsInParts has snapshots take many parts, between which the replica does other things, or
// crashes.
func snapshotsInParts(c *smr.ReplicaConfig) { c.SnapshotPartBytes, c.SnapshotEvery = 64, 40 }

func rareSnapshots(c *smr.ReplicaConfig) { c.SnapshotEvery = 100_000 }

// exchange replaces replicas by new ones, one after the other. Those that are removed never come
// back.
func (w *World) exchange(old, fresh []protocol.ID, then func()) {
	if len(old) == 0 {
		then()
		return
	}
	w.Join(fresh[0], func() {
		w.Remove(old[0], func() {
			w.Sim.After(5*roundTrip, func() { w.Sim.LoseDisk(old[0]) })
			w.exchange(old[1:], fresh[1:], then)
		})
	})
}

// replaceAllBut has others take the place of all n members but the last.
func (w *World) replaceAllBut(n protocol.ID, then func()) {
	var old, fresh []protocol.ID
	for id := protocol.ID(1); id < n; id++ {
		old, fresh = append(old, id), append(fresh, n+id)
	}
	w.exchange(old, fresh, then)
}

// restartNewMembers replaces all n members but the last, and then restarts all that the group has,
// at once and then one after the other.
func restartNewMembers(n protocol.ID) func(*World) {
	return func(w *World) {
		w.Sim.After(time.Second, func() {
			w.replaceAllBut(n, func() {
				for i := range n {
					for _, at := range []time.Duration{500 * time.Millisecond, time.Duration(i+2) * 500 * time.Millisecond} {
						w.Sim.After(at, func() { w.Sim.Crash(n+i, sim.KeepAll) })
						w.Sim.After(at+100*time.Millisecond, func() { w.Sim.Restart(n + i) })
					}
				}
			})
		})
	}
}

// awayWhileReplaced keeps the last of n members down while all others are replaced, and stopped for
// good: nobody whom it knows is left.
func awayWhileReplaced(n protocol.ID) func(*World) {
	return func(w *World) {
		w.Sim.After(time.Second, func() {
			w.Sim.Crash(n, sim.KeepAll)
			w.replaceAllBut(n, func() {
				w.Sim.After(time.Second, func() { w.Sim.Restart(n) })
			})
		})
	}
}

func membersAre(want ...protocol.ID) func(*World, Report) error {
	return func(w *World, _ Report) error {
		if got := w.members(); !slices.Equal(got, want) {
			return fmt.Errorf("members: they are %v, not %v", got, want)
		}
		return nil
	}
}

// lostDisk has a replica come back with an empty disk, and then another one in its place.
func lostDisk(w *World) {
	w.Sim.After(time.Second, func() {
		w.gone[2] = true
		w.Sim.LoseDisk(2)
		w.Sim.Restart(2)
	})
	w.Sim.After(3*time.Second, func() {
		if w.refused[2] == "" {
			w.Sim.Fail("identity: replica 2 lost its disk and was not refused under its old identity")
		}
		w.replace(2)
	})
}

// overload gives replicas room for few calls.
func overload(sc *Scenario) {
	sc.Clients = 12
	sc.Configure = func(c *smr.ReplicaConfig) { c.MaxPending = 2 }
}
