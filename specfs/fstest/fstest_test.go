package fstest

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/specfs/server"
	"github.com/foresay/foresay/specfs/view"
)

// systems are those that programs are played on, with their names.
func systems() []view.System { return []view.System{view.BlueFSSync(), view.Callback(), view.BlueFS()} }

// play plays a seed on three clients of a system.
func playOn(system view.System, s uint64) error {
	faults := sim.Swarm(s, sim.StreamFaults&^(sim.LostDisk|sim.Power))
	if s%4 == 0 {
		faults = sim.NoFaults
	}
	w, err := New(Config{
		Seed: s, Systems: []view.System{system, system, system}, Ops: 80, Faults: faults,
		Lease:  time.Duration(1+s%4) * time.Second,
		Replay: fmt.Sprintf("%s=%d go test -run TestPrograms ./specfs/fstest", seed.Variable, s),
	})
	if err != nil {
		return err
	}
	return w.Run()
}

// TestPrograms plays random programs on clients of each system.
func TestPrograms(t *testing.T) {
	for i, name := range []string{"bluefs-sync", "callback", "bluefs"} {
		t.Run(name, func(t *testing.T) {
			first := seed.First(t, 1)
			for s := first; s < first+uint64(seed.Count(t, 200)); s++ {
				if err := playOn(systems()[i], s); err != nil {
					t.Fatalf("%s=%d: %v", seed.Variable, s, err)
				}
			}
		})
	}
}

// mixed plays a seed on clients of different systems, which crash, with limits that they meet. It
// is played twice, for nothing but the seed may count. It reports whether it could be judged.
func mixed(s uint64) (judged bool, err error) {
	rnd := rand.New(rand.NewPCG(s, 1))
	faults := sim.Swarm(s, sim.StreamFaults&^sim.LostDisk)
	c := Config{
		Seed: s, Ops: 60, Faults: faults, Lease: time.Duration(1+s%4) * time.Second,
		Crashes: rnd.IntN(2) == 0, Wide: rnd.IntN(3) > 0,
		Replay: fmt.Sprintf("%s=%d go test -run TestMixed ./specfs/fstest", seed.Variable, s),
	}
	for range 3 {
		c.Systems = append(c.Systems, systems()[rnd.IntN(3)])
	}
	open, steps, fetch := []int{1, 2, 8}[rnd.IntN(3)], []int{1, 3, 100}[rnd.IntN(3)], []int{1, 500, 100_000}[rnd.IntN(3)]
	c.View = func(v *view.Config) { v.MaxOpen, v.MaxSteps = open, steps }
	c.Server = func(v *server.Config) { v.FetchBytes = fetch }
	run, err := sim.Twice(func(trace io.Writer) sim.Run {
		c := c
		c.Trace = trace
		w, err := New(c)
		if err != nil {
			return sim.Run{Err: err}
		}
		err = w.Run()
		judged = !w.unjudged
		return w.sim.Result(err)
	})
	return judged, cmp.Or(err, run.Err)
}

// TestMixed plays random programs on clients that have not much in common.
func TestMixed(t *testing.T) {
	first := seed.First(t, 1)
	n, judged := uint64(seed.Count(t, 24)), uint64(0)
	for s := first; s < first+n; s++ {
		ok, err := mixed(s)
		if err != nil {
			t.Fatalf("%s=%d: %v", seed.Variable, s, err)
		}
		if ok {
			judged++
		}
	}
	t.Logf("%d of %d seeds were judged to the end", judged, n)
	if n > 5 && judged < n/2 {
		t.Error("these are not enough")
	}
}

// TestSeeds plays the seeds that catch planted bugs, each on one of the systems.
func TestSeeds(t *testing.T) {
	plant.Seeds(t, plants(), func(s uint64) error { return playOn(systems()[s%3], s) })
}
