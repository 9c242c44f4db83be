package fstest

import (
	"fmt"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/sim"
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

// TestSeeds plays the seeds that catch planted bugs, each on one of the systems.
func TestSeeds(t *testing.T) {
	plant.Seeds(t, plants(), func(s uint64) error { return playOn(systems()[s%3], s) })
}
