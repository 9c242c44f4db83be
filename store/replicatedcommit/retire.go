package replicatedcommit

import (
	"maps"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// retirement is a server's part in its site's leaving.
type retirement struct {
	retired bool
	upTo    uint64 // Invariant: no transaction that the server has voted for is later
}

// askedPerRoundTrip bounds how many transactions a server that retires asks about in a round trip:
// its operator waits.
const askedPerRoundTrip = 64

func (s *server) onRetire(env *protocol.Env[message]) {
	r := &s.retirement
	if r.retired {
		return
	}
	r.retired = true
	for n, id := range slices.SortedFunc(maps.Keys(s.txns), store.Version.Compare) {
		r.upTo = id.Time
		if t := s.txns[id]; t.settled() && !t.done {
			env.After(time.Duration(4+n/askedPerRoundTrip)*s.cfg.RoundTrip, resolveTimer{id})
		}
	}
}

// unsettled returns how many transactions that the server may have voted for are not known to be
// carried out by a majority, and owed to the others.
func (s *server) unsettled() int {
	n := 0
	for id, t := range s.txns { //pure:ok a sum is the same in any order
		if id.Time <= s.retirement.upTo && !t.done && t.state != no {
			n++
		}
	}
	return n
}
