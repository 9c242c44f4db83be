package str

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// Fewer readers than copies (Config.Readers). The leader decides which members they are to be, and
// that is nothing but advice: they are dropped and admitted by the entries that do so anyway.

// validReaders returns an error that says why a store's shards cannot have so many readers.
func validReaders(cfg store.Config) error {
	if cfg.Readers < 0 || cfg.Readers == 1 {
		return fmt.Errorf("str: Config.Readers is %d (want at least 2, or 0 for all copies)", cfg.Readers)
	}
	for shard := range cfg.Layout.Sites[0].Shards {
		if n := len(cfg.Layout.HoldersOf(shard)); cfg.Readers > n {
			return fmt.Errorf("str: Config.Readers is %d, and shard %d has %d copies", cfg.Readers, shard, n)
		}
	}
	return nil
}

// few reports whether not all of the group's members are to serve reads.
func (s *server) few(members []protocol.ID) bool {
	return s.cfg.Readers > 0 && s.cfg.Readers < len(members)
}

// wants reports whether this leader would have a member serve reads that serves none.
func (s *server) wants(env *protocol.Env[store.Message], id protocol.ID) bool {
	members, _ := s.group.Members()
	if !s.few(members) {
		return true
	}
	return slices.Contains(s.nearest(env, members)[:s.cfg.Readers], id)
}

// chooseReaders drops those that serve reads beside the ones that are wanted, once there are more
// than that: whoever takes the place of another one is admitted first.
func (s *server) chooseReaders(env *protocol.Env[store.Message]) {
	members, settled := s.group.Members()
	if !settled || !s.few(members) {
		return
	}
	known := true
	for _, id := range members {
		if id != s.cfg.ID {
			env.Send(id, ping{uint64(env.Now)})
			known = known && (s.away[id] > 0 || s.isSilent(env, id))
		}
	}
	if !known {
		return
	}
	excess := len(s.readers(members)) - s.cfg.Readers
	all := s.nearest(env, members)
	for _, id := range slices.Backward(all) {
		if excess > 0 && slices.Contains(s.readers(members), id) {
			s.doWithout(env, id)
			excess--
		}
	}
}

// nearest returns the members in the order in which they are to serve reads: this leader, the
// others by how far away they are, and last those that are silent or to leave.
func (s *server) nearest(env *protocol.Env[store.Message], members []protocol.ID) []protocol.ID {
	all := slices.Clone(members)
	readers := s.readers(members)
	rank := func(id protocol.ID) time.Duration {
		away := cmp.Or(s.away[id], far)
		switch {
		case slices.Contains(s.state.books.leaving, id) || s.isSilent(env, id):
			return 2 * far
		case id == s.cfg.ID:
			return 0
		case slices.Contains(readers, id): // it stays, unless another one is nearer by a good deal
			return away - away/4
		}
		return away
	}
	slices.SortStableFunc(all, func(a, b protocol.ID) int { return cmp.Compare(rank(a), rank(b)) })
	return all
}

// isSilent reports whether this leader has not heard of another member for long.
func (s *server) isSilent(env *protocol.Env[store.Message], id protocol.ID) bool {
	at, ok := s.group.Heard(id)
	long := min(deafTrips*s.cfg.RoundTrip, max(s.cfg.RoundTrip*3/2, missAfter))
	return ok && id != s.cfg.ID && env.Now-at > long
}

// onPong learns how far away a member is, whose answer has the time of the question. A shorter time
// counts at once, a longer one by and by.
func (s *server) onPong(env *protocol.Env[store.Message], from protocol.ID, m pong) {
	members, _ := s.group.Members()
	took := env.Now - time.Duration(m.Ref)
	if !s.few(members) || !slices.Contains(members, from) || took > far {
		return
	}
	took = max(took, 1)
	if old := s.away[from]; old == 0 || took < old {
		s.away[from] = took
	} else {
		s.away[from] += (took - old) / 4
	}
}

// idleTrips is for how many round trips a coordinator does not ask a server for reads that has said
// that it serves none.
const idleTrips = 4

// isIdle reports whether a server has said lately that it serves no reads.
func (c *coordinator) isIdle(env *protocol.Env[store.Message], id protocol.ID) bool {
	at, ok := c.idle[id]
	return ok && env.Now-at < idleTrips*c.cfg.RoundTrip
}

// saidIdle takes note that a server serves no reads. The next one is asked at once in its place, if
// it was asked alone.
func (c *coordinator) saidIdle(env *protocol.Env[store.Message], from protocol.ID, r *reading) (again bool) {
	if c.isIdle(env, from) {
		return false
	}
	c.idle[from] = env.Now
	if from == r.to {
		c.read(env, r)
	}
	return true
}
