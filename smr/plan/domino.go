package plan

import (
	"slices"
	"time"

	"github.com/foresay/foresay/quorum"
)

// domino is a variant of Domino.
type domino struct {
	direct      bool // acceptors answer, all replicas learn, timestamps are arrivals
	slack       time.Duration
	busy        bool
	coordinator int
}

// way is how a client has its commands agreed on.
type way struct {
	fast bool
	// target is the owner of the lane, or, on the fast path, the replica that sends the result.
	target int
	// ahead is how far the timestamp is ahead of when the client sends, or the owner proposes.
	ahead time.Duration
}

// choose compares DFP's round trip to the furthest replica of the nearest supermajority with the best of the lanes, E_r + L_r [Thesis §4.3.6]. Of lanes that take about as
// long the one of the nearest owner is taken, as the protocol's clients do: an eighth of the trip to it counts.
func (d domino) choose(g geometry) way {
	majority, fast := quorum.Majority(g.n()), quorum.Fast(g.n())
	owner, slow, lowest := 0, time.Duration(0), time.Duration(0)
	for r := range g.n() {
		took := d.lane(g, r)
		if cost := took + g.trip(r)/8; r == 0 || cost < lowest {
			owner, slow, lowest = r, took, cost
		}
	}
	if slow > kth(g.n(), fast, g.trip) {
		return way{true, g.nearest(), kth(g.n(), fast, func(r int) time.Duration { return g.up[r] }) + d.slack}
	}
	if d.direct {
		return way{false, owner, kth(g.n(), majority, func(r int) time.Duration { return g.between[owner][r] })}
	}
	return way{false, owner, g.quorum(owner, majority)}
}

// lane is how long it takes until the client knows that its command's place in an owner's lane is fixed.
func (d domino) lane(g geometry, owner int) time.Duration {
	majority := quorum.Majority(g.n())
	if !d.direct {
		return g.trip(owner) + g.quorum(owner, majority)
	}
	return kth(g.n(), majority, func(r int) time.Duration { return g.up[owner] + g.between[owner][r] + g.down[r] })
}

func (d domino) outcome(w way, g geometry) outcome {
	n, fast := g.n(), quorum.Fast(g.n())
	o := outcome{via: -1}
	arrived, timestamp := slices.Clone(g.up), w.ahead
	if w.fast {
		o.durable = kth(n, fast, g.trip)
	} else {
		o.durable, o.via = d.lane(g, w.target), w.target
		timestamp += g.up[w.target]
		for r := range arrived {
			arrived[r] = g.up[w.target] + g.between[w.target][r]
		}
	}
	// A replica says that it has passed the slot when it has, and somebody waits for that or for another one. Each lane's owner has to say so.
	passed := func(r int) time.Duration {
		if d.busy {
			return timestamp
		}
		return max(arrived[r], timestamp)
	}
	decided := func(at int) time.Duration {
		size := fast
		if !w.fast {
			size = quorum.Majority(n)
		}
		return max(kth(n, size, func(r int) time.Duration { return arrived[r] + g.between[r][at] }),
			kth(n, fast, func(r int) time.Duration { return passed(r) + g.between[r][at] }))
	}
	known := max(decided(w.target), kth(n, n, func(r int) time.Duration { return passed(r) + g.between[r][w.target] }))
	if !d.direct {
		// The coordinator tells what is decided in the slots of DFP.
		known = max(known, decided(d.coordinator)+g.between[d.coordinator][w.target])
	}
	o.executed = known + g.down[w.target]
	o.durable = min(o.durable, o.executed)
	return o
}
