package plan

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/internal/delays"
	"github.com/foresay/foresay/quorum"
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
	Until  Moment
	// Latency is the time from the call to that moment if no message is delayed by jitter,
	// Longest if each is by all of its link's Jitter. A Tail is in neither. Domino's commands that
	// come later than predicted, which is by the 95th percentile of the delays and the slack, take
	// longer still.
	Latency, Longest time.Duration
	// Via is the site of the replica that proposes the command, "" if the client sends it to all.
	Via wan.Site
}

// outcome is what one client gets.
type outcome struct {
	durable, executed      time.Duration
	first, confirmed, read time.Duration // of a Byzantine system
	via                    int           // -1 for all
}

func (o outcome) at(m Moment) time.Duration {
	switch m {
	case Durable:
		return o.durable
	case Executed:
		return o.executed
	case First:
		return o.first
	case Confirmed:
		return o.confirmed
	case Read:
		return o.read
	}
	panic(fmt.Sprint("plan: ", m)) // it was validated
}

// Latencies returns a row for each of a system's Moments and each client: those of a client one
// after the other. Without systems these are the Floor and all Systems.
func Latencies(s Setting, systems ...System) ([]Row, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if len(systems) == 0 {
		systems = append(systems, Floor)
		systems = append(systems, Systems()...)
	}
	for _, system := range systems {
		if err := system.validate(); err != nil {
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
		row := Row{System: system, Client: c}
		if few.via >= 0 {
			row.Via = s.Replicas[few.via]
		}
		for _, m := range system.Moments() {
			row.Until, row.Latency, row.Longest = m, few.at(m), most.at(m)
			rows = append(rows, row)
		}
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
		return outcome{durable: t, executed: t, via: l}
	case FastPaxos:
		return g.fastPaxos(in.leader())
	case Mencius:
		near := predicted.nearest()
		// The other owners skip their slots when they are asked.
		return outcome{durable: g.trip(near) + g.quorum(near, majority), executed: g.trip(near) + g.quorum(near, g.n()),
			via: near}
	case EPaxos:
		near := predicted.nearest()
		t := g.trip(near) + g.quorum(near, fastEPaxos(g.n()))
		return outcome{durable: t, executed: t, via: near}
	case Domino, DominoDirect:
		d := domino{direct: s == DominoDirect, slack: in.Slack, busy: in.Busy, coordinator: in.leader()}
		return d.outcome(d.choose(predicted), g)
	case PBFT:
		return g.pbft(in.leader())
	case Zyzzyva:
		return g.zyzzyva(in.leader())
	case Floor:
		return g.shortened().floor()
	case ByzantineFloor:
		return g.shortened().byzantineFloor()
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
	return outcome{durable: min(executed, delays.Kth(g.n(), fast, g.trip)), executed: executed, via: -1}
}

func (g geometry) floor() outcome {
	majority := quorum.Majority(g.n())
	executed := delays.Kth(g.n(), 1, func(at int) time.Duration {
		return g.down[at] + delays.Kth(g.n(), majority, func(r int) time.Duration { return g.up[r] + g.between[r][at] })
	})
	return outcome{durable: delays.Kth(g.n(), majority, g.trip), executed: executed, via: -1}
}
