package sim_test

import (
	"flag"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
)

func TestParseFaults(t *testing.T) {
	for text, want := range map[string]sim.Faults{
		"none": sim.NoFaults, "all": sim.AllFaults, "stream": sim.StreamFaults,
		"crash": sim.Crash, "crash,partition,skew": sim.Crash | sim.Partition | sim.Skew,
		" loss , reorder":         sim.Loss | sim.Reorder,
		"all,-duplicate,-reorder": sim.StreamFaults, "crash,-crash": sim.NoFaults, "none,jitter": sim.Jitter,
	} {
		got, err := sim.ParseFaults(text)
		if err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	const names = "crash, power, lostdisk, slowdisk, pause, skew, jump, partition, oneway, partial, reset, slow, " +
		"jitter, loss, duplicate, reorder"
	for text, bad := range map[string]string{"": "", "crash,": "", "crush": "crush", "-none": "none", "Crash": "Crash",
		"--crash": "-crash"} {
		hint := ""
		if strings.Contains(bad, "r") {
			hint = "; did you mean crash?"
		}
		want := `sim: unknown fault "` + bad + `" (want all, stream, none or some of ` + names + hint + `)`
		if _, err := sim.ParseFaults(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v", text, err)
		}
	}
	if got := (sim.Crash | 1<<20).String(); got != "crash,unknown 0x100000" {
		t.Errorf("got %q", got)
	}
}

func TestFaultsAreAFlag(t *testing.T) {
	var f sim.Faults
	set := flag.NewFlagSet("test", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.TextVar(&f, "faults", sim.StreamFaults, "what goes wrong")
	if err := set.Parse([]string{"--faults", "crash,pause"}); err != nil || f != sim.Crash|sim.Pause {
		t.Errorf("%v, %v", f, err)
	}
	if err := set.Parse([]string{"--faults", "nothing"}); err == nil ||
		!strings.Contains(err.Error(), `unknown fault "nothing"`) {
		t.Errorf("error %v", err)
	}
}

func FuzzParseFaults(f *testing.F) {
	f.Add("crash,partition", uint32(3))
	f.Add("all,-loss", uint32(0))
	f.Fuzz(func(t *testing.T, text string, set uint32) {
		if got, err := sim.ParseFaults(text); err == nil {
			if again, err := sim.ParseFaults(got.String()); err != nil || again != got {
				t.Errorf("%q is %v, which is %v, %v", text, got, again, err)
			}
		}
		want := sim.Faults(set) & sim.AllFaults
		if got, err := sim.ParseFaults(want.String()); err != nil || got != want {
			t.Errorf("%v is %v, %v", want, got, err)
		}
	})
}

func TestSwarm(t *testing.T) {
	var union, all sim.Faults = 0, sim.AllFaults
	seen := make(map[sim.Faults]bool)
	for seed := range uint64(100) {
		f := sim.Swarm(seed, sim.StreamFaults)
		if f != sim.Swarm(seed, sim.StreamFaults) || f&^sim.StreamFaults != 0 {
			t.Errorf("seed %d: %v", seed, f)
		}
		union |= f
		all &= f
		seen[f] = true
	}
	if union != sim.StreamFaults || all != sim.NoFaults || len(seen) < 95 {
		t.Errorf("of 100 seeds %d differ, all have %v, some %v", len(seen), all, union)
	}
}

func TestInjectRefusesNonsense(t *testing.T) {
	b := newBench(t, sim.Config[any]{})
	for want, p := range map[string]sim.Profile{
		"sim: inject: MaxDown, Every or Lasting of -1, 0s, 0s is negative":  {MaxDown: -1},
		"sim: inject: MaxDown, Every or Lasting of 0, -1ns, 0s is negative": {Every: -1},
		"sim: inject: MaxDown, Every or Lasting of 0, 0s, -1ns is negative": {Lasting: -1},
		"sim: inject: unknown faults 0x100000":                              {Faults: 1 << 20},
		"sim: inject: there is no node 3":                                   {Nodes: []protocol.ID{1, 3}},
	} {
		if err := b.Inject(p); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestMaxDown watches how many nodes are out at once, and that the others are never.
func TestMaxDown(t *testing.T) {
	for _, max := range []int{1, 2} {
		most := 0
		for seed := range uint64(10) {
			s := newCouriers(t, seed, sim.NoFaults, &post{}, nil)
			nodes := []protocol.ID{1, 2, 3}
			err := s.Inject(sim.Profile{Faults: sim.Crash | sim.LostDisk, Nodes: nodes, MaxDown: max, Every: 50 * ms,
				Lasting: 200 * ms, LostDisk: func(protocol.ID) {}})
			if err != nil {
				t.Fatal(err)
			}
			s.At(0, func() {}) // so that there is a step to look after
			err = s.RunUntil(5*time.Second, func() bool {
				down := 0
				for _, id := range nodes {
					if !s.Up(id) {
						down++
					}
				}
				most = maxOf(most, down)
				return !s.Up(4)
			})
			if err == nil {
				t.Error("a node crashed that was none to choose from")
			}
		}
		if most != max {
			t.Errorf("%d nodes were down at once, want %d", most, max)
		}
	}
}

func maxOf(a, b int) int { return max(a, b) }

func TestHealEndsAllFaults(t *testing.T) {
	for seed := range uint64(20) {
		p := &post{}
		s := newCouriers(t, seed, sim.AllFaults, p, nil)
		gone := make(map[protocol.ID]bool)
		err := s.Inject(sim.Profile{Seed: 7, Faults: sim.AllFaults, MaxDown: 3, Every: 20 * ms,
			LostDisk: func(id protocol.ID) { gone[id], p.known[id] = true, 0 }})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Run(time.Second); err != nil {
			t.Fatal(err)
		}
		s.Heal()
		if err := s.Run(200 * ms); err != nil { // for what is under way
			t.Fatal(err)
		}
		before := s.Stats()
		if err := s.Run(10 * time.Second); err != nil {
			t.Fatal(err)
		}
		after := s.Stats()
		if after.Crashes != before.Crashes || after.Duplicated != before.Duplicated {
			t.Errorf("seed %d: faults go on: %+v, then %+v", seed, before, after)
		}
		var b strings.Builder
		if err := s.Explain(&b); err != nil {
			t.Fatal(err)
		}
		_, state, _ := strings.Cut(b.String(), "\nnodes:\n")
		for _, bad := range []string{"\nlinks:", "stands still", ", down"} {
			if strings.Contains(state, bad) {
				t.Errorf("seed %d: %q in\n%s", seed, bad, state)
			}
		}
		for _, id := range s.IDs() {
			if s.Clock(id) != time.Hour+s.Now() {
				t.Errorf("seed %d: node %d has the clock %v at %v", seed, id, s.Clock(id), s.Now())
			}
			if lines := strings.Count(b.String(), "gone with its disk"); !s.Up(id) && lines == 0 {
				t.Errorf("seed %d: node %d is down", seed, id)
			}
		}
	}
}
