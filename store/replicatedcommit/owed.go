package replicatedcommit

import (
	"fmt"
	"maps"
	"slices"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

type (
	// owing tells a server that was away that others have carried out transactions which it has
	// not, and may have forgotten them. It is repeated until Paid says that the server has copied
	// what they wrote.
	owing struct {
		Serial uint64 // of the debt: it changes with each transaction
		Since  uint64 // all of the transactions have later versions
		To     uint64 // sites whose servers of the receiver's shard the sender owes something, as bits
	}

	// paid answers it. A Serial other than the debt's, such as 0, asks what is owed. Behind says
	// that the debt is not paid yet, and that the sender is a newcomer which has not voted for
	// anything.
	paid struct {
		Serial uint64
		Behind bool
	}

	// debt is what a server owes another one: transactions with versions later than Since, and up
	// to Upto.
	debt struct {
		Server      protocol.ID
		Since, Upto uint64
	}
)

// oweTimer has the server tell those that it owes something.
type oweTimer struct{}

// An owedRange is what a server that is away has to learn. It is bounded however long the server is
// away: a range of versions, and then a copy of what was written by them.
type owedRange struct {
	since, upto uint64
	serial      uint64
	kept        bool // on disk. Invariant: it is if a transaction of it is forgotten
	told        int  // how often its time to be told has come
	// the server is a newcomer that has not voted for any transaction of it: it can copy them
	// whenever it likes
	behind bool
}

// debtLayout is what is on disk of a debt.
var debtLayout = wirefmt.NewLayout("replicatedcommit: a debt on disk", func(c *wirefmt.Coder, d *owedRange) {
	wirefmt.Uint(c, &d.since)
	wirefmt.Uint(c, &d.upto)
})

// oweOthersEvery is how many times the servers of other shards are told less often what they are
// owed than those of the own: they ask all when they are told first.
const oweOthersEvery = 16

// startDebts reads what the server owes. What it owes to servers of sites that are fenced or
// replaced is void.
func (s *server) startDebts(env *protocol.Env[message]) {
	var void []protocol.ID
	for k, b := range env.Scan([]byte(debtPrefix), afterPrefix(debtPrefix)) {
		peer, ok := parsePeerKey(debtPrefix, k)
		if !ok {
			continue
		}
		if _, ok := s.shards[peer]; !ok {
			void = append(void, peer)
			continue
		}
		d, err := debtLayout.Decode(b)
		if err != nil {
			panic(fmt.Sprintf("server %d: %v", peer, err)) // which runners stop at
		}
		d.serial, d.kept = env.Rand.Uint64(), true
		s.debts[peer] = &d
	}
	for _, peer := range void {
		env.Delete(peerKey(debtPrefix, peer))
	}
	if len(s.debts) > 0 {
		env.After(4*s.cfg.RoundTrip, oweTimer{})
	}
}

// mayOwe reports whether all servers of a list have a part of a transaction, and this one is not
// among them.
func (s *server) mayOwe(r *record, but []protocol.ID) bool {
	return !slices.ContainsFunc(but, func(id protocol.ID) bool {
		p, ok := s.shards[id]
		return !ok || id == s.cfg.ID || !slices.Contains(r.shards, uint32(p.Index))
	})
}

// owe notes that some servers have not carried out a transaction which all others have. They are
// owed it whatever their shard: see Gone.
func (s *server) owe(env *protocol.Env[message], r *record, but []protocol.ID) {
	r.but = nil
	for _, id := range but {
		r.but = append(r.but, id)
		s.extend(env, id, r.id.Time-1, r.id.Time)
	}
}

// extend adds a range of versions to what is owed to a server.
func (s *server) extend(env *protocol.Env[message], peer protocol.ID, since, upto uint64) *owedRange {
	d := s.debts[peer]
	if d == nil {
		d = &owedRange{since: since, upto: upto, serial: env.Rand.Uint64()}
		s.debts[peer] = d
		env.After(4*s.cfg.RoundTrip, oweTimer{})
	}
	d.since, d.upto = min(d.since, since), max(d.upto, upto)
	d.serial++
	d.behind = false
	return d
}

// keepDebts writes what is owed to servers to the disk, as transactions that they lack are
// forgotten with the same write.
func (s *server) keepDebts(env *protocol.Env[message], servers map[protocol.ID]bool) {
	for _, id := range slices.Sorted(maps.Keys(servers)) {
		s.keepDebt(env, id, s.debts[id])
	}
}

func (s *server) keepDebt(env *protocol.Env[message], peer protocol.ID, d *owedRange) {
	d.kept = true
	env.Put(peerKey(debtPrefix, peer), debtLayout.Encode(*d))
}

// forgotten returns what is said of a transaction up to old that is not remembered: Gone if a
// server may be owed it, which has to copy what it wrote before anybody can take this server's
// having forgotten for a refusal.
func (s *server) forgotten(id store.TxnID) txnState {
	for _, d := range s.debts { //pure:ok one or none is the same in any order
		if d.since < id.Time && id.Time <= d.upto && !d.behind {
			return gone
		}
	}
	return old
}

// debtList returns what the server owes, for a newcomer that copies it: what it does not know of
// may be forgotten here.
func (s *server) debtList() []debt {
	var all []debt
	for _, peer := range slices.Sorted(maps.Keys(s.debts)) {
		d := s.debts[peer]
		all = append(all, debt{peer, d.since, d.upto})
	}
	return all
}

// inherit takes over what a server owes that is copied.
func (s *server) inherit(env *protocol.Env[message], all []debt) {
	for _, m := range all {
		if _, ok := s.shards[m.Server]; ok && m.Server != s.cfg.ID {
			s.keepDebt(env, m.Server, s.extend(env, m.Server, m.Since, m.Upto))
		}
	}
}

// tellDebts tells others what they are owed.
func (s *server) tellDebts(env *protocol.Env[message]) {
	if len(s.debts) == 0 || s.admission.refused != "" {
		return
	}
	env.After(4*s.cfg.RoundTrip, oweTimer{})
	for _, id := range slices.Sorted(maps.Keys(s.debts)) {
		d := s.debts[id]
		if d.told++; s.isPeer(id) || d.told%oweOthersEvery == 1 {
			s.tellDebt(env, id, d)
		}
	}
}

func (s *server) tellDebt(env *protocol.Env[message], id protocol.ID, d *owedRange) {
	if !s.admission.admitted || s.newcomer.syncing {
		return
	}
	to := uint64(0)
	for other := range s.debts { //pure:ok a sum is the same in any order
		if p := s.shards[other]; p.Index == s.shards[id].Index {
			to |= 1 << p.Site
		}
	}
	env.Send(id, owing{d.serial, d.since, to})
}

// onPaid ends a debt, unless it has become more since it was told.
func (s *server) onPaid(env *protocol.Env[message], from protocol.ID, m paid) {
	d := s.debts[from]
	if d == nil {
		return
	}
	if m.Behind {
		d.behind = d.behind || d.serial == m.Serial
		return
	}
	if m.Serial == 0 || d.serial != m.Serial {
		s.tellDebt(env, from, d)
		return
	}
	delete(s.debts, from)
	if d.kept {
		env.Delete(peerKey(debtPrefix, from))
	}
	for _, id := range s.done {
		r := s.txns[id]
		r.but = slices.DeleteFunc(r.but, func(id protocol.ID) bool { return id == from })
	}
}

// checkDebts returns an error unless all that is left to others is owed to them.
func (s *server) checkDebts() error {
	for _, id := range s.done {
		for _, server := range s.txns[id].but {
			if d := s.debts[server]; d == nil || id.Time <= d.since || id.Time > d.upto {
				return fmt.Errorf("replicatedcommit: server %d: server %d has not carried out %v, and the debt is %+v", s.cfg.ID,
					server, id, d)
			}
		}
	}
	return nil
}
