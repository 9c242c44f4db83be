package plansim_test

import (
	"testing"
	"time"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/plansim"
	"github.com/foresay/foresay/smr/plan"
	"github.com/foresay/foresay/wan"
)

// TestModelIsRight: on the thesis' networks, what each client of each protocol gets is what the
// model says, within 5 %: until a command is durable, and until it is executed. Once each call is
// alone, and once clients make 900 calls a second, without conflicts.
func TestModelIsRight(t *testing.T) {
	for _, network := range []string{"na3", "na5", "globe3"} {
		d, err := wan.Preset(network)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range catalog.Protocols() {
			for name, busy := range map[string]bool{"alone": false, "busy": true} {
				t.Run(network+"/"+p.Name+"/"+name, func(t *testing.T) {
					t.Parallel()
					s := plan.From(d)
					s.Busy = busy
					rows, err := plansim.Compare(plansim.Config{Protocol: p, Setting: s, Seed: 1})
					if err != nil {
						t.Fatal(err)
					}
					if len(rows) != 2*len(s.Clients) {
						t.Errorf("%d rows for %d clients", len(rows), len(s.Clients))
					}
					for _, c := range rows {
						if c.Off() > 0.05 || c.Measured == 0 {
							t.Errorf("%s, %v: %v, the model says %v", c.Client.Site, c.Until, c.Measured, c.Latency)
						}
						domino := p.Name == "domino" || p.Name == "domino-direct"
						if exact := !busy && (c.Until == plan.Durable || !domino); exact && (c.Measured-c.Latency).Abs() > c.Latency/20 {
							t.Errorf("%s, %v: %v, the model says %v exactly", c.Client.Site, c.Until, c.Measured, c.Latency)
						}
						if c.Claimed == (busy && p.Name == "fastpaxos") || c.Until == plan.Durable && c.High-c.Low > 4*time.Millisecond {
							t.Errorf("the model claims %+v", c)
						}
					}
				})
			}
		}
	}
}

// TestOff: a comparison notices what is wrong.
func TestOff(t *testing.T) {
	c := plansim.Comparison{Row: plan.Row{Latency: 100 * time.Second}, Low: 80 * time.Second, High: 100 * time.Second,
		Claimed: true}
	for measured, want := range map[time.Duration]float64{70: 0.1, 80: 0, 100: 0, 106: 0.06} {
		if c.Measured = measured * time.Second; c.Off() != want {
			t.Errorf("%v is off by %v, want %v", measured, c.Off(), want)
		}
	}
	if c.Claimed = false; c.Off() != 0 {
		t.Error("what is not claimed is off")
	}
}

// TestLeader: the replica leads that the setting names, also in a protocol that does not always
// elect it.
func TestLeader(t *testing.T) {
	d, err := wan.Preset("na3")
	if err != nil {
		t.Fatal(err)
	}
	for _, leader := range d.Replicas {
		for _, p := range catalog.Protocols() {
			s := plan.From(d)
			s.Leader, s.Clients = leader, []plan.Client{{Site: "TX"}}
			s.Busy = leader == "QC"
			rows, err := plansim.Compare(plansim.Config{Protocol: p, Setting: s, Seed: 7})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range rows {
				if c.Off() > 0.05 {
					t.Errorf("%s led by %s, %v: %v, the model says %v", p.Name, leader, c.Until, c.Measured, c.Latency)
				}
			}
		}
	}
}

// TestJitter: with jitter on all links, and without errors of prediction, all calls take what the
// model says is between none and all of it.
func TestJitter(t *testing.T) {
	d, err := wan.Preset("na3")
	if err != nil {
		t.Fatal(err)
	}
	for p, l := range d.Matrix.Links() {
		if p.From != p.To {
			l.Jitter = 4 * time.Millisecond
			d.Matrix = d.Matrix.WithLink(p, l)
		}
	}
	for _, p := range catalog.Protocols() {
		if system := plan.System(p.Name); system == plan.Domino || system == plan.DominoDirect {
			continue // commands that come late take longer
		}
		s := plan.From(d)
		rows, err := plan.Latencies(s, plan.System(p.Name))
		if err != nil {
			t.Fatal(err)
		}
		for seed := range uint64(10) {
			got, err := plansim.Measure(plansim.Config{Protocol: p, Setting: s, Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			for i, row := range rows {
				for _, took := range got[i].Took {
					if took < row.Latency || took > row.Longest+row.Longest/50 {
						t.Errorf("%s at %s, %v, seed %d: %v, the model says %v to %v", p.Name, row.Client.Site, row.Until, seed, took,
							row.Latency, row.Longest)
					}
				}
			}
		}
	}
}

// TestMessages: what protocols cost in messages on the thesis' network of three replicas and nine
// clients, give or take a quarter: in a second of silence, and for each of 900 commands a second.
func TestMessages(t *testing.T) {
	d, err := wan.Preset("na3")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]plansim.Messages{
		"raft": {Silent: 120, PerCommand: 10}, "multipaxos": {Silent: 120, PerCommand: 6},
		"fastpaxos": {Silent: 175, PerCommand: 10}, "mencius": {Silent: 175, PerCommand: 9},
		"epaxos": {Silent: 45, PerCommand: 10}, "domino": {Silent: 640, PerCommand: 27},
		"domino-direct": {Silent: 580, PerCommand: 21},
	}
	about := func(got, want float64) bool { return got >= want*3/4 && got <= want*5/4 }
	for _, p := range catalog.Protocols() {
		got, err := plansim.CountMessages(plansim.Config{Protocol: p, Setting: plan.From(d), Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		if w := want[p.Name]; !about(got.Silent, w.Silent) || !about(got.PerCommand, w.PerCommand) {
			t.Errorf("%s: %+v, want about %+v", p.Name, got, w)
		}
		t.Logf("%-14s %4.0f a second in silence, %4.1f for each command", p.Name, got.Silent, got.PerCommand)
	}
}
