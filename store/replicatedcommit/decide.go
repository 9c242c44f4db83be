package replicatedcommit

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// decide gives a transaction its end: what it writes is applied, if it is known, and its locks go,
// in one write. In two, a crash between them could free a key whose new value is missing.
func (s *server) decide(env *protocol.Env[message], r *record, state txnState) {
	s.unquestion(r)
	voted := r.state
	r.state, r.waits = state, 0
	s.counts.Decided(r.state == committed, r.reason)
	if state == committed && r.known {
		s.apply(env, r)
	}
	if state == committed && r.known {
		s.unreserveAll(env, r.reads, r.writes, r.priority) // also where it got through without this site
	}
	if voted == yes {
		if r.voted != 0 {
			s.pace.saw(env.Now, env.Now-r.voted, s.cfg.RoundTrip)
		}
		s.unlock(env, r)
		if state == aborted {
			s.reserveAll(env, r.reads, r.writes, r.priority) // others have refused it
		}
	}
	s.save(env, r)
}

// apply writes what a committed transaction does. Decisions may come in any order, and to sites
// that voted no or not at all. Versions follow the serial order (R1), so the highest version of
// each key is the right one in the end: where a later transaction was applied before, nothing is
// left to do (R4).
func (s *server) apply(env *protocol.Env[message], r *record) {
	for _, w := range r.writes {
		v := store.Value{Version: r.id, Present: !w.Delete, Bytes: w.Bytes}
		if s.cfg.Applied != nil {
			s.cfg.Applied(w.Key, v)
		}
		if r.id.After(values.At(env, w.Key).Version) {
			putValue(env, w.Key, v)
			s.changed(w.Key)
		}
	}
}

// contradict notes that a transaction was decided in both ways, which cannot happen as long as
// everybody keeps to the protocol.
func (s *server) contradict(r *record, other txnState) {
	if s.contrary == nil {
		s.contrary = fmt.Errorf("replicatedcommit: server %d: transaction %v: its state is %d, and it was told %d", s.cfg.ID,
			r.id, r.state, other)
	}
}

// checkCopied notes that a transaction which the server took for forgotten was committed, if what
// it writes is not here: that is copied before anybody is told that it is forgotten.
func (s *server) checkCopied(env *protocol.Env[message], r *record) {
	if r.known && !s.newcomer.syncing && slices.ContainsFunc(s.writes(env, r), func(w store.Write) bool {
		return r.id.After(values.At(env, w.Key).Version)
	}) {
		s.contradict(r, committed)
	}
}

// learn takes a transaction's part that comes after the server had to vote, or was told the
// decision.
func (s *server) learn(env *protocol.Env[message], r *record, t store.Txn) {
	r.known, r.priority, r.reads, r.writes = true, t.Priority, t.Reads, t.Writes
	if r.state == committed {
		s.apply(env, r)
	}
	s.save(env, r)
}

// fetch asks another site what a committed transaction writes, and all when it has been asked about
// in vain. A site that voted yes knows it: most often all others have.
func (s *server) fetch(env *protocol.Env[message], r *record) {
	peers := s.peers
	if r.waits == 0 && len(peers) > 0 {
		i := env.Rand.IntN(len(peers))
		peers = peers[i : i+1]
	}
	for _, p := range peers {
		env.Send(p, fetch{r.id})
	}
}

func (s *server) onFetch(env *protocol.Env[message], from protocol.ID, m fetch) {
	if !s.isPeer(from) {
		return
	}
	r := s.txns[m.ID]
	switch {
	case r != nil && r.known:
		env.Send(from, content{ID: m.ID, Writes: s.writes(env, r)})
	case m.ID.Time <= s.old && !s.newcomer.syncing && s.forgotten(m.ID) == old:
		// Whoever voted yes knows the content until it forgets the transaction. If it was told of
		// it again since, it is where it would be without.
		env.Send(from, content{ID: m.ID, Old: true})
	}
}

func (s *server) onContent(env *protocol.Env[message], from protocol.ID, m content) {
	r := s.txns[m.ID]
	if !s.isPeer(from) || r == nil || r.now() != wanting {
		return
	}
	if m.Old {
		// A majority that knows nothing includes a site that voted yes and has forgotten it: so all
		// sites have applied it, this one too. The same is true of all that are left and not new,
		// as this one did not vote yes: one of them did at least, and newcomers cannot say before
		// they have copied this one.
		r.olds |= 1 << s.shards[from].Site
		if bits.OnesCount(uint(r.olds)) < s.cfg.Layout.Majority() && slices.ContainsFunc(s.peers, func(p protocol.ID) bool {
			site := s.shards[p].Site
			return r.olds&(1<<site) == 0 && !s.cfg.IsNew(site)
		}) {
			return
		}
	}
	t := store.Txn{ID: r.id, Priority: r.priority, Writes: m.Writes}
	if m.Old {
		t.Writes = nil
	}
	if t.Validate() != nil || !s.mine(t) {
		return
	}
	s.learn(env, r, t)
	for _, i := range s.cfg.Layout.Unfenced() { // one of them told the decision, and waits
		s.tell(env, s.cfg.Layout.Coordinator(i, r.id), r)
	}
}
