package plan

import (
	"slices"
	"time"

	"github.com/foresay/foresay/internal/delays"
	"github.com/foresay/foresay/wan"
)

// geometry has one-way delays by indices: those between replicas, and from and to one client.
type geometry struct {
	between  [][]time.Duration // from, to
	up, down []time.Duration   // to and from each replica
}

func newGeometry(net delays.Network, kind delays.Kind, replicas []wan.Site, client wan.Site) geometry {
	table, c, n := net.Table(kind), net.Number(client), len(replicas)
	room := make([]time.Duration, n*(n+2))
	take := func() []time.Duration {
		row := room[:n:n]
		room = room[n:]
		return row
	}
	g := geometry{up: take(), down: take(), between: make([][]time.Duration, n)}
	for i, a := range replicas {
		from := net.Number(a)
		g.up[i], g.down[i] = table[c][from], table[from][c]
		g.between[i] = take()
		for j, b := range replicas {
			if i != j {
				g.between[i][j] = table[from][net.Number(b)]
			}
		}
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
	return delays.Kth(g.n(), size, func(r int) time.Duration { return g.round(at, r) })
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

// shortened returns the geometry in which messages go by whichever replicas they arrive through
// first.
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
