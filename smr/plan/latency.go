package plan

import (
	"time"

	"github.com/foresay/foresay/internal/delays"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/wan"
)

// Floor is what no protocol goes below that survives the loss of any minority of its replicas, in
// place of a System. Durable: the client has heard from a majority. Executed: it has heard from one
// replica that has heard from a majority, which is a bound for protocols in which clients take one
// replica's word for a result.
const Floor System = "floor"

// A Row is what a system gives to a client.
type Row struct {
	System System
	Client Client
	Ack    smr.Ack // AckDurable or AckExecuted
	// Latency is the time from the call to the acknowledgement if no message is delayed by jitter,
	// Longest if each is by all of its link's Jitter. A Tail is in neither. Domino's commands that
	// come later than predicted, which is by the 95th percentile of the delays and the slack, take
	// longer still.
	Latency, Longest time.Duration
	// Via is the site of the replica that proposes the command, "" if the client sends it to all.
	Via wan.Site
}

// outcome is what one client gets.
type outcome struct {
	durable, executed time.Duration
	via               int // -1 for all
}

// Latencies returns two rows, durable and executed, for each system and client, in this order.
// Without systems these are the Floor and all systems.
func Latencies(s Setting, systems ...System) ([]Row, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if len(systems) == 0 {
		systems = append(systems, Floor)
		systems = append(systems, Systems()...)
	}
	for _, system := range systems {
		if err := system.validate(); err != nil && system != Floor {
			return nil, err
		}
	}
	net := delays.Of(s.WAN)
	var rows []Row
	for _, system := range systems {
		rows = append(rows, s.latencies(net, system)...)
	}
	return rows, nil
}

func (s Setting) latencies(net delays.Network, system System) []Row {
	var rows []Row
	for _, c := range s.Clients {
		at := func(k delays.Kind) geometry { return newGeometry(net, k, s.Replicas, c.Site) }
		few := system.outcome(s, at(delays.Expected), at(delays.Least))
		most := system.outcome(s, at(delays.Expected), at(delays.Longest))
		row := Row{System: system, Client: c, Ack: smr.AckDurable, Latency: few.durable, Longest: most.durable}
		if few.via >= 0 {
			row.Via = s.Replicas[few.via]
		}
		rows = append(rows, row)
		row.Ack, row.Latency, row.Longest = smr.AckExecuted, few.executed, most.executed
		rows = append(rows, row)
	}
	return rows
}

// outcome returns what a client gets that predicts by some delays and has others.
func (s System) outcome(in Setting, predicted, g geometry) outcome {
	majority := quorum.Majority(g.n())
	switch s {
	case Raft, Paxos:
		l := in.leader()
		t := g.trip(l) + g.quorum(l, majority)
		return outcome{t, t, l}
	case FastPaxos:
		return g.fastPaxos(in.leader())
	case Mencius:
		near := predicted.nearest()
		// The other owners skip their slots when they are asked.
		return outcome{g.trip(near) + g.quorum(near, majority), g.trip(near) + g.quorum(near, g.n()), near}
	case EPaxos:
		near := predicted.nearest()
		t := g.trip(near) + g.quorum(near, fastEPaxos(g.n()))
		return outcome{t, t, near}
	case Domino, DominoDirect:
		d := domino{direct: s == DominoDirect, slack: in.Slack, busy: in.Busy, coordinator: in.leader()}
		return d.outcome(d.choose(predicted), g)
	case Floor:
		return g.shortened().floor()
	}
	panic("plan: " + string(s)) // it was validated
}

// fastEPaxos is EPaxos' fast quorum, the proposer in it: f+(f+1)/2 of 2f+1 [EPaxos §4.4].
func fastEPaxos(n int) int {
	f := quorum.Tolerated(n)
	return n - min(f, (n-f+1)/2)
}

// fastPaxos has the client and the coordinator count the acceptors' votes.
func (g geometry) fastPaxos(coordinator int) outcome {
	fast := quorum.Fast(g.n())
	executed := g.down[coordinator] + delays.Kth(g.n(), fast, func(r int) time.Duration {
		return g.up[r] + g.between[r][coordinator]
	})
	return outcome{min(executed, delays.Kth(g.n(), fast, g.trip)), executed, -1}
}

func (g geometry) floor() outcome {
	majority := quorum.Majority(g.n())
	executed := delays.Kth(g.n(), 1, func(at int) time.Duration {
		return g.down[at] + delays.Kth(g.n(), majority, func(r int) time.Duration { return g.up[r] + g.between[r][at] })
	})
	return outcome{delays.Kth(g.n(), majority, g.trip), executed, -1}
}
