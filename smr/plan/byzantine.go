package plan

import (
	"time"

	"github.com/foresay/foresay/internal/delays"
	"github.com/foresay/foresay/quorum"
)

// ByzantineFloor is what no protocol goes below of which less than a third of the replicas may do
// as they like. First: the client has heard from somebody. Confirmed and Read: it has heard, itself
// or through others, from so many that any two such groups share one that does not lie.
const ByzantineFloor System = "byzantine-floor"

func (g geometry) byzantineFloor() outcome {
	all := delays.Kth(g.n(), quorum.Byzantine(g.n()), g.trip)
	return outcome{first: delays.Kth(g.n(), 1, g.trip), confirmed: all, read: all, via: -1}
}

// pbft has a client that sends a small command to all members. The primary executes it when it
// comes, and says so. A backup votes when it has the primary's order; a member executes when it has
// the order and a quorum's votes, the order counting for the primary's; and a quorum of executions
// confirms [PBFT-CS §3.1, with tentative execution].
func (g geometry) pbft(primary int) outcome {
	n, q := g.n(), quorum.Byzantine(g.n())
	ordered := make([]time.Duration, n)
	for r := range n {
		ordered[r] = g.up[primary] + g.between[primary][r]
	}
	executed := func(at int) time.Duration {
		if n == 1 {
			return ordered[at]
		}
		return max(ordered[at], delays.Kth(n, q-1, func(from int) time.Duration {
			if from == primary {
				return never
			}
			return ordered[from] + g.between[from][at]
		}))
	}
	return outcome{
		first:     g.trip(primary),
		confirmed: delays.Kth(n, q, func(r int) time.Duration { return executed(r) + g.down[r] }),
		read:      delays.Kth(n, q, g.trip),
		via:       primary,
	}
}

// zyzzyva has all members execute what the primary has ordered at once, and answer. The client
// waits for all of them: it has no reply to go on with before.
func (g geometry) zyzzyva(primary int) outcome {
	n := g.n()
	all := delays.Kth(n, n, func(r int) time.Duration {
		return g.up[primary] + g.between[primary][r] + g.down[r]
	})
	return outcome{first: all, confirmed: all, read: delays.Kth(n, quorum.Byzantine(n), g.trip), via: primary}
}
