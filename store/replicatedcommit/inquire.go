package replicatedcommit

import (
	"math/bits"
	"slices"

	"github.com/foresay/foresay/protocol"
)

// An inquiry asks the others about a transaction that was carried out here before the server was
// started, and is so old that they may have forgotten it, before they are told: who has forgotten
// it would write it again.
type inquiry struct {
	seen map[protocol.ID]bool // who has carried it out, or does not remember it
	olds uint64               // sites one of whose servers does not remember it, as bits
}

// inquire reports whether the others are asked first: they are once, and told if that was in vain.
// Where a site has left the store, a server of one that voted yes may be gone, and with it what the
// answers stand on.
func (s *server) inquire(env *protocol.Env[message], r *record) bool {
	_, asked := s.inquiries[r.id]
	delete(s.inquiries, r.id)
	old := uint64(max(env.Now-s.cfg.Retain, 0))
	if asked || !r.found || !r.settled() || r.id.Time > old || s.retirement.retired || !s.cfg.Layout.Original() {
		return false
	}
	s.inquiries[r.id] = &inquiry{seen: map[protocol.ID]bool{}}
	for _, server := range s.others(r) {
		env.Send(server, look{r.id})
	}
	env.After(4*s.cfg.RoundTrip, resolveTimer{r.id})
	return true
}

// others returns all other servers that have a part of a transaction.
func (s *server) others(r *record) (all []protocol.ID) {
	for _, site := range s.cfg.Layout.Sites {
		for _, shard := range r.shards {
			if id := site.Shards[shard]; id != s.cfg.ID {
				all = append(all, id)
			}
		}
	}
	return all
}

// onInquired takes an answer. When all have carried the transaction out, or so many sites do not
// remember it that one of them had voted for it and has forgotten it since, all have what it wrote.
func (s *server) onInquired(env *protocol.Env[message], q *inquiry, from protocol.ID, m seen) {
	r := s.txns[m.ID]
	all := s.others(r)
	if !slices.Contains(all, from) || !settled(m.State) && m.State != old {
		return
	}
	q.seen[from] = true
	if m.State == old {
		q.olds |= 1 << s.shards[from].Site
	}
	if n := bits.OnesCount64(q.olds); len(q.seen) < len(all) || n > 0 && n < s.cfg.Layout.Majority() {
		return
	}
	delete(s.inquiries, m.ID)
	s.finish(env, r)
}

// finish notes that a transaction is done.
func (s *server) finish(env *protocol.Env[message], r *record) {
	r.done = true
	env.Stop(resolveTimer{r.id})
	s.done = append(s.done, r.id)
}
