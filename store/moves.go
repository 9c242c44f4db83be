package store

import (
	"fmt"
	"slices"

	"github.com/foresay/foresay/protocol"
)

// A Move is a shard's copy that was moved from one site to another while the store ran. The store
// is in an epoch of its own while the move is under way: then both sites have a server, and the
// group takes the new one for a member in place of the old one.
type Move struct {
	Shard    int // groups that only coordinate are numbered behind the shards
	From, To string
	// Server is the number of the server at To: none of the site had it before, as one that was
	// removed from its group does not come back.
	Server int
	Back   bool // it is taken back: the group is to do without the server at To
	Done   bool // it is over, and one of the two servers is gone
}

// Gone returns the site whose server goes.
func (m Move) Gone() string {
	if m.Back {
		return m.To
	}
	return m.From
}

// UnderWay returns the move that is not over; ok is false if there is none.
func (t Topology) UnderWay() (m Move, ok bool) {
	if n := len(t.Moves); n > 0 && !t.Moves[n-1].Done {
		return t.Moves[n-1], true
	}
	return Move{}, false
}

// copies returns the names of the sites that have a shard, without one to which it is being moved;
// nil: all have it.
func (t Topology) copies(shard int) []string {
	switch {
	case shard >= t.Shards:
		return t.Coordinating[shard-t.Shards]
	case t.Placement == nil:
		return nil
	}
	return t.Placement[shard]
}

// founding returns copies as they were in the beginning.
func (t Topology) founding(shard int) []string {
	sites := slices.Clone(t.copies(shard))
	for _, m := range slices.Backward(t.Moves) {
		if i := slices.Index(sites, m.To); m.Shard == shard && m.Done && !m.Back && i >= 0 {
			sites[i] = m.From
		}
	}
	return sites
}

// founded reports whether a site had a shard in the beginning.
func (t Topology) founded(site, shard int) bool {
	sites := t.founding(shard)
	return sites == nil || slices.Contains(sites, t.Sites[site].Name)
}

// ServerNumber returns the number of a site's server of a shard: the shard's, or that of the last
// move of the shard to there.
func (t Topology) ServerNumber(site, shard int) int {
	for _, m := range slices.Backward(t.Moves) {
		if m.Shard == shard && m.To == t.Sites[site].Name {
			return m.Server
		}
	}
	return shard
}

// ServerID returns the ID of a site's server of a shard.
func (t Topology) ServerID(site, shard int) protocol.ID {
	return t.Sites[site].ShardID(t.ServerNumber(site, shard))
}

// FreeServer returns a number that no server of a site has had; ok is false if there is none left.
func (t Topology) FreeServer(site string) (number int, ok bool) {
	number = t.Groups()
	for _, m := range t.Moves {
		if m.To == site {
			number = max(number, m.Server+1)
		}
	}
	return number, number < maxTopoShards
}

// A Server is a shard's server at a site, by its number.
type Server struct{ Shard, Number int }

// Removed returns the servers of a site that moves have ended. Nobody needs what they had.
func (t Topology) Removed(site string) []Server {
	var out []Server
	now := map[int]int{} // numbers by shard, where they are not the shard's
	for _, m := range t.Moves {
		if m.To == site {
			now[m.Shard] = m.Server
		}
		if m.Done && m.Gone() == site {
			number, moved := now[m.Shard]
			if !moved {
				number = m.Shard
			}
			out = append(out, Server{m.Shard, number})
		}
	}
	return out
}

// ValidMoves returns an error unless the moves make sense, one after the other. Validate looks at
// them too.
func (t Topology) ValidMoves() error {
	numbers := map[string]int{} // the next one, by site
	for i, m := range t.Moves {
		fail := func(format string, a ...any) error {
			return fmt.Errorf("store: move %d of %d: %s", i+1, len(t.Moves), fmt.Sprintf(format, a...))
		}
		switch {
		case m.Shard < 0 || m.Shard >= t.Groups():
			return fail("there is no shard %d", m.Shard)
		case t.copies(m.Shard) == nil:
			return fail("all sites have all shards: there is nowhere to move one")
		case t.siteNamed(m.From) < 0 || t.siteNamed(m.To) < 0 || m.From == m.To:
			return fail("from %q to %q: want two sites", m.From, m.To)
		case m.Server < max(t.Groups(), numbers[m.To]) || m.Server >= maxTopoShards:
			return fail("the server's number is %d (want %d to %d, above those of the site's earlier ones)", m.Server,
				max(t.Groups(), numbers[m.To]), maxTopoShards-1)
		case !m.Done && i < len(t.Moves)-1:
			return fail("it is not done, and another one follows")
		case !m.Done && (!slices.Contains(t.copies(m.Shard), m.From) || slices.Contains(t.copies(m.Shard), m.To)):
			return fail("shard %d is at %v: site %s has no copy to move, or site %s has one", m.Shard, t.copies(m.Shard), m.From,
				m.To)
		}
		numbers[m.To] = m.Server + 1
	}
	return nil
}

// Moving returns the topology of the next epoch, in which a shard's copy is being moved from one
// site to another. The error says why it cannot be.
func (t Topology) Moving(shard int, from, to string) (Topology, error) {
	number, ok := t.FreeServer(to)
	if !ok {
		return t, fmt.Errorf("all %d numbers of servers of site %s have been used", maxTopoShards, to)
	}
	t.Epoch++
	t.Moves = append(slices.Clone(t.Moves), Move{Shard: shard, From: from, To: to, Server: number})
	return t, t.Validate()
}

// TakingBack returns the topology of the next epoch, in which the move that is under way is taken
// back.
func (t Topology) TakingBack() Topology {
	t.Epoch++
	t.Moves = slices.Clone(t.Moves)
	t.Moves[len(t.Moves)-1].Back = true
	return t
}

// Moved returns the topology of the next epoch, in which the move that is under way is over: the
// group has the server at one site or, if it has not moved after all, that at the other one.
func (t Topology) Moved(moved bool) Topology {
	t.Epoch++
	t.Moves = slices.Clone(t.Moves)
	m := &t.Moves[len(t.Moves)-1]
	m.Back, m.Done = !moved, true
	if moved {
		in := &t.Placement
		k := m.Shard
		if k >= t.Shards {
			in, k = &t.Coordinating, k-t.Shards
		}
		*in = slices.Clone(*in)
		(*in)[k] = slices.Clone((*in)[k])
		(*in)[k][slices.Index((*in)[k], m.From)] = m.To
	}
	return t
}
