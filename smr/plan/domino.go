package plan

import (
	"math"
	"slices"
	"time"

	"github.com/foresay/foresay/internal/delays"
	"github.com/foresay/foresay/quorum"
)

// never is later than everything.
const never = time.Duration(math.MaxInt64)

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
	// target is the owner of the track, or, on the fast path, the replica that sends the result.
	target int
	// ahead is how far the timestamp is ahead of when the client sends, or the owner proposes.
	ahead time.Duration
	// late are, on the fast path, the replicas at which commands arrive after their time, as they
	// can where ways there and back differ: these may not vote for them.
	late []bool
}

// choose compares DFP's round trip to the furthest replica of the nearest supermajority with the
// best of the tracks, E_r + L_r [Thesis §4.3.6]. Of tracks that take about as long the one of the
// nearest owner is taken, as the protocol's clients do: an eighth of the trip to it counts.
func (d domino) choose(g geometry) way {
	majority, fast := quorum.Majority(g.n()), quorum.Fast(g.n())
	owner, slow, lowest := 0, time.Duration(0), time.Duration(0)
	for r := range g.n() {
		took := d.estimate(g, r)
		if cost := took + g.trip(r)/8; r == 0 || cost < lowest {
			owner, slow, lowest = r, took, cost
		}
	}
	if slow > delays.Kth(g.n(), fast, g.trip) {
		w := way{fast: true, target: g.nearest(), ahead: delays.Kth(g.n(), fast, func(r int) time.Duration {
			return g.up[r]
		}) + d.slack, late: make([]bool, g.n())}
		for r := range w.late {
			w.late[r] = g.up[r] > w.ahead
		}
		return w
	}
	if d.direct {
		return way{target: owner, ahead: delays.Kth(g.n(), majority, func(r int) time.Duration {
			return g.between[owner][r]
		})}
	}
	return way{target: owner, ahead: g.quorum(owner, majority)}
}

// estimate is what a client takes a track to take: it knows round trips, and not what they are made
// of.
func (d domino) estimate(g geometry, owner int) time.Duration {
	if !d.direct {
		return d.track(g, owner)
	}
	return delays.Kth(g.n(), quorum.Majority(g.n()), func(r int) time.Duration {
		return (g.trip(owner) + g.round(owner, r) + g.trip(r)) / 2
	})
}

// track is how long it takes until the client knows that its command's place in an owner's track is
// fixed.
func (d domino) track(g geometry, owner int) time.Duration {
	majority := quorum.Majority(g.n())
	if !d.direct {
		return g.trip(owner) + g.quorum(owner, majority)
	}
	return delays.Kth(g.n(), majority, func(r int) time.Duration { return g.up[owner] + g.between[owner][r] + g.down[r] })
}

func (d domino) outcome(w way, g geometry) outcome {
	n, fast := g.n(), quorum.Fast(g.n())
	o := outcome{via: -1}
	arrived, timestamp := slices.Clone(g.up), w.ahead
	// when a vote or an acceptance is where it takes so long to
	votes := func(r int, after time.Duration) time.Duration {
		if w.fast && w.late[r] {
			return never
		}
		return arrived[r] + after
	}
	if w.fast {
		o.durable = delays.Kth(n, fast, func(r int) time.Duration { return votes(r, g.down[r]) })
	} else {
		o.durable, o.via = d.track(g, w.target), w.target
		timestamp += g.up[w.target]
		for r := range arrived {
			arrived[r] = g.up[w.target] + g.between[w.target][r]
		}
	}
	// A replica says that it has passed the slot when it has, and somebody waits for that or for
	// another one. Each track's owner has to say so.
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
		return max(delays.Kth(n, size, func(r int) time.Duration { return votes(r, g.between[r][at]) }),
			delays.Kth(n, fast, func(r int) time.Duration { return passed(r) + g.between[r][at] }))
	}
	known := max(decided(w.target), delays.Kth(n, n, func(r int) time.Duration {
		return passed(r) + g.between[r][w.target]
	}))
	if !d.direct {
		// The coordinator tells what is decided in the slots of DFP.
		known = max(known, decided(d.coordinator)+g.between[d.coordinator][w.target])
	}
	o.executed = known + g.down[w.target]
	o.durable = min(o.durable, o.executed)
	return o
}
