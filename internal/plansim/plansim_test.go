package plansim_test

import (
	"testing"
	"time"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/plansim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/plan"
	"github.com/foresay/foresay/wan"
)

// within tells whether a latency is one of a range, give or take 5 %.
func within(took, low, high time.Duration) bool {
	return took >= low-low/20 && took <= high+high/20
}

// TestModelIsRight: on the thesis' networks, what each client of each protocol gets is what the model says, within 5 %: until a command is durable, and until it is executed. Domino's replicas say
// now and then of their own accord how far they are, so alone a command is executed between what the model says of a group without others and of a busy one.
func TestModelIsRight(t *testing.T) {
	for _, network := range []string{"na3", "na5", "globe3"} {
		d, err := wan.Preset(network)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range catalog.Protocols() {
			t.Run(network+"/"+p.Name, func(t *testing.T) {
				t.Parallel()
				s := plan.From(d)
				alone, busy := model(t, s, p.Name)
				got := measure(t, p, s)
				for i, row := range alone {
					if m := got[i]; m.Client != row.Client || m.Ack != row.Ack || !within(m.Median(), busy[i].Latency, row.Latency) {
						t.Errorf("%s, %v: %v, the model says %v, if others call %v", row.Client.Site, row.Ack, m.Took, row.Latency, busy[i].Latency)
					}
				}
			})
		}
	}
}

// TestModelUnderLoad: with 100 calls a second of each client, and no conflicts, it is right too, but for the execution by Domino, whose owners pass slots ahead of
// their clocks when they propose, and by Mencius. Fast Paxos' commands collide, so it is left out.
func TestModelUnderLoad(t *testing.T) {
	for _, network := range []string{"na3", "na5", "globe3"} {
		d, err := wan.Preset(network)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range catalog.Protocols() {
			if p.Name == "fastpaxos" {
				continue
			}
			t.Run(network+"/"+p.Name, func(t *testing.T) {
				t.Parallel()
				s := plan.From(d)
				_, busy := model(t, s, p.Name)
				s.Busy = true
				for i, m := range measure(t, p, s) {
					row := busy[i]
					low, high := row.Latency, row.Latency
					switch system := plan.System(p.Name); {
					case m.Ack == smr.AckDurable:
					case system == plan.Mencius:
						low, high = busy[i-1].Latency, 2*high // sooner if the others propose as much, later if they began just before
					case system == plan.Domino || system == plan.DominoDirect:
						low = low * 4 / 5
					}
					if !within(m.Median(), low, high) {
						t.Errorf("%s, %v: %v, the model says %v", row.Client.Site, row.Ack, m.Took, row.Latency)
					}
				}
			})
		}
	}
}

func model(t *testing.T, s plan.Setting, name string) (alone, busy []plan.Row) {
	t.Helper()
	var rows [2][]plan.Row
	for i, b := range []bool{false, true} {
		s.Busy = b
		var err error
		if rows[i], err = plan.Latencies(s, plan.System(name)); err != nil {
			t.Fatal(err)
		}
	}
	return rows[0], rows[1]
}

func measure(t *testing.T, p smr.Protocol, s plan.Setting) []plansim.Result {
	t.Helper()
	began := time.Now()
	got, err := plansim.Measure(plansim.Config{Protocol: p, Setting: s, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(time.Since(began))
	return got
}
