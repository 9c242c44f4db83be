package storesim_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/internal/storesim"
	"github.com/foresay/foresay/store/plan"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/workload"
)

// ring is a network with a partition for each site, led there and copied to the two that follow.
func ring(t testing.TB, m wan.Matrix, declared bool) plan.Setting {
	t.Helper()
	keys, err := workload.Zipfian(1_000_000, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := plan.Setting{WAN: m, Clients: plan.Everywhere(m),
		Load: plan.Load{Workload: workload.Retwis{Keys: keys}, Declared: declared}}
	sites := m.Sites()
	for i := range sites {
		s.Placement = append(s.Placement, []wan.Site{sites[i], sites[(i+1)%len(sites)], sites[(i+2)%len(sites)]})
	}
	return s
}

// TestModelIsRight: on networks of papers each transaction of each protocol takes what the model
// says, within 2 %.
func TestModelIsRight(t *testing.T) {
	txns := seed.Count(t, 20)
	for _, network := range []string{"specrpc", "carousel", "globe3"} {
		d, err := wan.Preset(network)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range []bool{false, true} {
			for _, system := range plan.Systems() {
				if _, ok := storesim.ProtocolOf(system); !ok {
					continue
				}
				t.Run(network+"/"+string(system), func(t *testing.T) {
					t.Parallel()
					all, err := storesim.Measure(storesim.Config{System: system, Setting: ring(t, d.Matrix, declared), Txns: txns,
						Seed: 1})
					if err != nil {
						t.Fatal(err)
					}
					if want := txns * len(d.Matrix.Sites()); len(all) != want {
						t.Errorf("%d transactions, want %d", len(all), want)
					}
					for _, m := range all {
						if (m.Took - m.Modeled).Abs() > max(m.Modeled/50, time.Millisecond) {
							t.Errorf("declared %v: %+v: the model says %v", declared, m, m.Modeled)
						}
					}
				})
			}
		}
	}
}

// TestHopsTakeTheTime: where all sites are 100 ms apart, a transaction takes 50 ms for each message
// that it has waited for.
func TestHopsTakeTheTime(t *testing.T) {
	for _, declared := range []bool{false, true} {
		for _, system := range plan.Systems() {
			t.Run(string(system), func(t *testing.T) {
				t.Parallel()
				s := ring(t, wan.Uniform(100*time.Millisecond, "a", "b", "c", "d", "e"), declared)
				s.Clients = s.Clients[:1]
				all, err := storesim.Measure(storesim.Config{System: system, Setting: s, Txns: 6, Seed: 1})
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range all {
					if d := m.Took - time.Duration(m.Hops)*50*time.Millisecond; d.Abs() > time.Millisecond {
						t.Errorf("declared %v: %+v", declared, m)
					}
				}
			})
		}
	}
}

// TestStaleReadsTakeWhatTheModelSays: those of Carousel that may see what is a little old read the
// nearest copies, also when their client has written before.
func TestStaleReadsTakeWhatTheModelSays(t *testing.T) {
	d, err := wan.Preset("carousel")
	if err != nil {
		t.Fatal(err)
	}
	for system, declared := range map[plan.System]bool{plan.CarouselBasic: false, plan.CarouselDirect: true} {
		s := ring(t, d.Matrix, declared)
		s.Load.Stale = true
		all, err := storesim.Measure(storesim.Config{System: system, Setting: s, Txns: 8, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		read, near := 0, 0
		for _, m := range all {
			if (m.Took - m.Modeled).Abs() > max(m.Modeled/50, time.Millisecond) {
				t.Errorf("%s, declared %v: %+v: the model says %v", system, declared, m, m.Modeled)
			}
			if m.Class == plan.ReadOnly {
				if read++; m.Took < time.Millisecond {
					near++
				}
			}
		}
		if near == 0 || near == read {
			t.Errorf("%s, declared %v: of %d transactions that only read %d do not leave their site", system, declared,
				read, near)
		}
	}
}

// TestEveryProtocolIsModelled, in each of its modes.
func TestEveryProtocolIsModelled(t *testing.T) {
	for _, p := range catalog.Stores() {
		names := []string{p.Name}
		for i, mode := range p.Modes {
			names = append(names[:i], p.Name+"-"+mode)
		}
		for _, name := range names {
			system := plan.System(name)
			if !slices.Contains(plan.Systems(), system) {
				t.Errorf("store plan does not know %s", name)
			}
			if strict := p.Promises() == history.StrictSerializable; strict != (system.Level() == "strict") {
				t.Errorf("%s promises %v, and store plan says %s", name, p.Promises(), system.Level())
			}
		}
	}
}

// TestWhatCannotBeMeasured is refused.
func TestWhatCannotBeMeasured(t *testing.T) {
	s := ring(t, wan.SpecRPC(), false)
	s.Lost = "seoul"
	if _, err := storesim.Measure(storesim.Config{System: plan.ReplicatedCommit, Setting: s}); err == nil ||
		!strings.Contains(err.Error(), "Setting.Lost") {
		t.Error(err)
	}
	s.Lost, s.Placement = "", nil
	if _, err := storesim.Measure(storesim.Config{System: plan.ReplicatedCommit, Setting: s}); err == nil ||
		!strings.Contains(err.Error(), "Setting.Placement") {
		t.Error(err)
	}
}
