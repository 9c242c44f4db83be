package epaxos

import (
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
)

// swarm is the scenario of a seed.
func swarm(seed uint64) scenario {
	sc := scenario{
		seed: seed, replicas: 3, clients: 5, keys: 3, faults: sim.Swarm(seed, sim.AllFaults&^sim.LostDisk),
		early: seed%2 == 0,
		disk:  sim.Disk{Latency: time.Millisecond, Jitter: 2 * time.Millisecond},
	}
	if seed%3 == 0 {
		sc.replicas = 5
	}
	return sc
}

// TestSeeds has commands that commute if their keys differ, under random faults, with each kind of
// acknowledgement.
func TestSeeds(t *testing.T) {
	for shard := range uint64(4) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for seed := shard; seed < 80; seed += 4 {
				w, err := swarm(seed + 1).play()
				if err != nil {
					t.Fatalf("seed %d, faults %v: %v", seed+1, w.faults, err)
				}
				if seed >= 8 {
					continue
				}
				again, err := swarm(seed + 1).play()
				if err != nil || again.Hash() != w.Hash() {
					t.Fatalf("seed %d went otherwise the second time: %v", seed+1, err)
				}
			}
		})
	}
}

// TestCrashAtEachWrite crashes a replica in each of its writes in turn, with what of it survives at
// random, and has it come back.
func TestCrashAtEachWrite(t *testing.T) {
	sc := scenario{
		seed: 5, replicas: 3, clients: 4, keys: 2, early: true, lasting: 300 * time.Millisecond,
		disk: sim.Disk{Latency: time.Millisecond, Jitter: time.Millisecond},
	}
	calm, err := sc.play()
	if err != nil {
		t.Fatal(err)
	}
	for id := range protocol.ID(3) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			n := calm.Writes(id + 1)
			if n < 60 {
				t.Fatalf("replica %d writes %d times only", id+1, n)
			}
			for k := uint64(1); k <= n; k++ {
				crashing := sc
				crashing.script = func(w *world) {
					w.CrashInWrite(id+1, k, sim.Keep(k/2%3))
					var watch func()
					watch = func() {
						if !w.Up(id + 1) {
							w.Restart(id + 1)
							return
						}
						w.After(20*time.Millisecond, watch)
					}
					w.After(20*time.Millisecond, watch)
				}
				if _, err := crashing.play(); err != nil {
					t.Fatalf("replica %d crashes in write %d: %v", id+1, k, err)
				}
			}
		})
	}
}

// TestSessionsGoInOneOrder has more clients than sessions. Which one goes is the same at all
// replicas, though they execute commands in different orders: a client whose session is gone loses
// what it had not heard of, and opens another one.
func TestSessionsGoInOneOrder(t *testing.T) {
	for seed := range uint64(10) {
		sc := scenario{seed: seed + 1, replicas: 3, clients: 6, keys: 9, sessions: 4, faults: sim.Jitter | sim.Slow,
			disk: sim.Disk{Latency: time.Millisecond}}
		w, err := sc.play()
		if err != nil {
			t.Fatalf("seed %d: %v", seed+1, err)
		}
		if w.done == 0 {
			t.Errorf("seed %d: nothing was done", seed+1)
		}
	}
}
