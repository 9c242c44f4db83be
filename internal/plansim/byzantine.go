package plansim

import (
	"errors"
	"fmt"
	"time"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/bftsim"
	"github.com/foresay/foresay/bft/counter"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr/plan"
	"github.com/foresay/foresay/wan"
)

// byzantineCalls is how many calls of each kind are measured at each client, each alone.
const byzantineCalls = 3

// CompareByzantine is Compare of a protocol whose replicas may lie, though none does.
func CompareByzantine(p bft.Protocol, s plan.Setting, seed uint64) ([]Comparison, error) {
	s.WAN = Quiet(s.WAN)
	rows, err := plan.Latencies(s, plan.System(p.Name))
	if err != nil {
		return nil, err
	}
	measured, err := measureByzantine(p, s, seed)
	if err != nil {
		return nil, fmt.Errorf("plansim: %s: %w", p.Name, err)
	}
	out := make([]Comparison, len(rows))
	for i, row := range rows {
		r := Result{Took: measured[row.Client][row.Until]}
		if len(r.Took) != byzantineCalls {
			return nil, fmt.Errorf("plansim: %s: client at %s, %v: %d results", p.Name, row.Client.Site, row.Until, len(r.Took))
		}
		out[i] = Comparison{Row: row, Measured: r.Median(), Low: row.Latency, High: row.Latency, Claimed: true}
	}
	return out, nil
}

// byClient has what calls of each client took, until each moment.
type byClient map[plan.Client]map[plan.Moment][]time.Duration

func measureByzantine(p bft.Protocol, s plan.Setting, seed uint64) (byClient, error) {
	primary := s.Leader
	if primary == "" {
		primary = s.Replicas[0]
	}
	place := wan.Deployment{Matrix: s.WAN, Replicas: led(s.Replicas, primary)}
	var sites []wan.Site
	for _, c := range s.Clients {
		sites = append(sites, c.Site)
	}
	g, err := bftsim.New(bftsim.Config{Protocol: p, Service: counter.Service{}, Place: place, Clients: sites,
		FirstClient: 1000, RoundTrip: longest(s),
		Sim: sim.Config[bft.Message]{Seed: seed, CheckEvery: 1 << 20, TraceKeep: -1}})
	if err != nil {
		return nil, err
	}
	out := byClient{}
	for i, c := range s.Clients {
		out[c] = map[plan.Moment][]time.Duration{}
		// The first calls show a client who is near.
		for n := range byzantineCalls + 1 {
			took, err := once(g, g.Clients[i], longest(s))
			if err != nil {
				return nil, fmt.Errorf("client at %s: %w", c.Site, err)
			}
			for m, d := range took {
				if n > 0 {
					out[c][m] = append(out[c][m], d)
				}
			}
		}
	}
	return out, nil
}

// led returns the sites with the primary's first.
func led(replicas []wan.Site, primary wan.Site) []wan.Site {
	out := []wan.Site{primary}
	for i, r := range replicas {
		if r == primary {
			return append(append(out, replicas[:i]...), replicas[i+1:]...)
		}
	}
	return out
}

// once has a client read and then write, each alone, and returns how long it waited.
func once(g *bftsim.Group, client protocol.ID, trip time.Duration) (map[plan.Moment]time.Duration, error) {
	took := map[plan.Moment]time.Duration{}
	waiting := func() bool { return g.Unanswered() == 0 }
	done := func(m plan.Moment) bftsim.Told {
		began := g.Now()
		return bftsim.Told{
			First: func(bft.Result) { took[plan.First] = g.Now() - began },
			Done: func(r bft.Result, after time.Duration) {
				if took[m] = after; r.Outcome != bft.Executed {
					g.Fail("a call: %v", r.Outcome)
				}
			},
		}
	}
	limit := 10*time.Second + 20*trip
	g.Make(client, bft.Call{Command: counter.Query(), Read: true}, done(plan.Read))
	read := g.Await(limit, waiting)
	g.Make(client, bft.Call{Command: counter.Increment(counter.Reply{})}, done(plan.Confirmed))
	written := g.Await(limit, waiting)
	if _, early := took[plan.First]; !early {
		took[plan.First] = took[plan.Confirmed]
	}
	return took, errors.Join(read, written, g.Pass(4*trip))
}
