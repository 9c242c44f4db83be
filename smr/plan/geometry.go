package plan

import (
	"slices"
	"time"

	"github.com/foresay/foresay/wan"
)

// geometry has one-way delays by indices: of the replicas, and from and to one client.
type geometry struct {
	between  [][]time.Duration // from, to
	up, down []time.Duration   // to and from each replica
}

// delay is what is taken for a link's delay.
type delay func(wan.Link) time.Duration

func without(l wan.Link) time.Duration { return l.Delay }
func with(l wan.Link) time.Duration    { return l.Delay + l.Jitter }

// usual is the 95th percentile, by which Domino predicts arrivals.
func usual(l wan.Link) time.Duration { return l.Delay + time.Duration(0.95*float64(l.Jitter)) }

// geometry returns the delays between replicas, and those of one client.
func (s Setting) geometry(client wan.Site, of delay) geometry {
	way := func(from, to wan.Site) time.Duration {
		l, _ := s.WAN.Link(wan.Path{From: from, To: to})
		return of(l)
	}
	g := geometry{}
	for i, a := range s.Replicas {
		row := make([]time.Duration, len(s.Replicas))
		for j, b := range s.Replicas {
			if i != j {
				row[j] = way(a, b)
			}
		}
		g.between = append(g.between, row)
		g.up, g.down = append(g.up, way(client, a)), append(g.down, way(a, client))
	}
	return g
}

func (g geometry) n() int { return len(g.up) }

// trip is the client's round trip to a replica.
func (g geometry) trip(r int) time.Duration { return g.up[r] + g.down[r] }

// round is the round trip between two replicas.
func (g geometry) round(a, b int) time.Duration { return g.between[a][b] + g.between[b][a] }

// quorum is how long a replica waits for so many answers, its own among them.
func (g geometry) quorum(at, size int) time.Duration {
	return kth(g.n(), size, func(r int) time.Duration { return g.round(at, r) })
}

// nearest is the replica with the shortest round trip, of equals the first.
func (g geometry) nearest() int {
	best := 0
	for r := range g.n() {
		if g.trip(r) < g.trip(best) {
			best = r
		}
	}
	return best
}

// kth returns the kth smallest, from 1, of what n replicas take.
func kth(n, k int, of func(r int) time.Duration) time.Duration {
	all := make([]time.Duration, n)
	for r := range all {
		all[r] = of(r)
	}
	slices.Sort(all)
	return all[k-1]
}

// shortened returns the geometry in which messages go by whichever replicas they arrive through first.
func (g geometry) shortened() geometry {
	n := g.n()
	s := geometry{up: slices.Clone(g.up), down: slices.Clone(g.down)}
	for _, row := range g.between {
		s.between = append(s.between, slices.Clone(row))
	}
	for k := range n {
		for i := range n {
			for j := range n {
				s.between[i][j] = min(s.between[i][j], s.between[i][k]+s.between[k][j])
			}
		}
	}
	for i := range n {
		for k := range n {
			s.up[i] = min(s.up[i], g.up[k]+s.between[k][i])
			s.down[i] = min(s.down[i], s.between[i][k]+g.down[k])
		}
	}
	return s
}
