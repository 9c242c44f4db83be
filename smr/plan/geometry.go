package plan

import (
	"slices"
	"time"

	"github.com/foresay/foresay/wan"
)

// which says what is taken for a link's delay.
type which int

const (
	least    which = iota // without jitter
	expected              // about the 95th percentile, by which Domino predicts arrivals
	longest               // with all of the jitter; a tail has no bound
	whiches
)

func (w which) of(l wan.Link) time.Duration {
	switch w {
	case expected:
		return l.Delay + time.Duration(0.95*float64(l.Jitter)+1.115*float64(l.Tail))
	case longest:
		return l.Delay + l.Jitter
	}
	return l.Delay
}

// network has all one-way delays of a matrix.
type network struct {
	sites  map[wan.Site]int
	delays [whiches][][]time.Duration // from, to
}

func newNetwork(m wan.Matrix) network {
	all := m.Sites()
	net := network{sites: map[wan.Site]int{}}
	for i, s := range all {
		net.sites[s] = i
	}
	for w := range whiches {
		for range all {
			net.delays[w] = append(net.delays[w], make([]time.Duration, len(all)))
		}
		for p, l := range m.Links() {
			net.delays[w][net.sites[p.From]][net.sites[p.To]] = w.of(l)
		}
	}
	return net
}

// geometry has one-way delays by indices: those between replicas, and from and to one client.
type geometry struct {
	between  [][]time.Duration // from, to
	up, down []time.Duration   // to and from each replica
}

func (net network) geometry(w which, replicas []wan.Site, client wan.Site) geometry {
	delays, c, n := net.delays[w], net.sites[client], len(replicas)
	room := make([]time.Duration, n*(n+2))
	take := func() []time.Duration {
		row := room[:n:n]
		room = room[n:]
		return row
	}
	g := geometry{up: take(), down: take(), between: make([][]time.Duration, n)}
	for i, a := range replicas {
		from := net.sites[a]
		g.up[i], g.down[i] = delays[c][from], delays[from][c]
		g.between[i] = take()
		for j, b := range replicas {
			if i != j {
				g.between[i][j] = delays[from][net.sites[b]]
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
	var few [16]time.Duration
	all := few[:0]
	for r := range n {
		all = append(all, of(r))
	}
	slices.Sort(all)
	return all[k-1]
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
