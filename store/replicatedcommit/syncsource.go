package replicatedcommit

import (
	"math"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// Bounds of a page. One entry is sent whatever its size.
const (
	maxPageBytes   = 256 << 10
	maxPageEntries = 2048
	maxOwedBytes   = 64 << 10 // of a page for a server that was away: nobody waits for it
	maxOwedEntries = 512
	// What is looked through for such a page is bounded apart from what is in it: often nearly
	// everything is older than what is owed.
	owedScan      = 8 // as many keys for each that there is room for
	owedScanBytes = 1 << 20
)

// startEpoch notes the epoch that the server is started with, and up to which version transactions
// of earlier ones can be here.
func (s *server) startEpoch(env *protocol.Env[message]) {
	last, inherited, ok := readEpoch(env)
	if s.inherited = inherited; ok && last == s.cfg.Epoch {
		return
	}
	s.inherited = max(s.inherited, s.old)
	for id := range s.txns { //pure:ok the greatest is the same in any order
		s.inherited = max(s.inherited, id.Time)
	}
	env.Put([]byte(epochKey), epochLayout.Encode(epochs{s.cfg.Epoch, s.inherited}))
}

// epochs is what is on disk of them.
type epochs struct {
	last      uint64 // with which the server was started
	inherited uint64 // up to which version transactions of earlier ones can be here
}

var epochLayout = wirefmt.NewLayout("replicatedcommit: the epoch on disk", func(c *wirefmt.Coder, e *epochs) {
	wirefmt.Uint(c, &e.last)
	wirefmt.Uint(c, &e.inherited)
})

func readEpoch(env *protocol.Env[message]) (epoch, inherited uint64, ok bool) {
	b, ok := env.Get([]byte(epochKey))
	if !ok {
		return 0, 0, false
	}
	e, err := epochLayout.Decode(b)
	if err != nil {
		panic(err.Error()) // which runners stop at
	}
	return e.last, e.inherited, true
}

// oldSettled reports whether all transactions of earlier epochs that are remembered here are
// carried out. Once they are, they stay so.
func (s *server) oldSettled() bool {
	if s.settled {
		return true
	}
	for id, r := range s.txns { //pure:ok all or not all is the same in any order
		if id.Time <= s.inherited && !r.settled() {
			return false
		}
	}
	s.settled = true
	return true
}

// onCopy gives a newcomer a page. Who has not copied enough itself, or waits for old decisions,
// does not answer: the newcomer asks again.
func (s *server) onCopy(env *protocol.Env[message], from protocol.ID, m askPage) {
	if !s.isPeer(from) || s.newcomer.syncing || m.Stage >= copied || m.Since == 0 && !s.oldSettled() {
		return
	}
	p := page{Stage: m.Stage, From: m.From, Round: m.Round, Old: s.old, Debts: s.debtList()}
	if m.Stage == copyTxns {
		s.addTxns(env, &p)
	} else {
		s.addValues(env, &p, m.Since)
	}
	env.Send(from, p)
}

// addTxns fills a page with transactions of earlier epochs that are carried out. Of later ones the
// newcomer is told, or owed them, as any site is: nobody counts a vote of the lost one for these.
func (s *server) addTxns(env *protocol.Env[message], p *page) {
	size, end := 0, afterTxns(s.inherited)
	for k, b := range env.Scan([]byte(txnPrefix+p.From), end) {
		if p.Scanned > 0 && (p.Scanned == s.page || size+len(k)+len(b) > maxPageBytes) {
			p.Next = string(k[len(txnPrefix):])
			return
		}
		p.Scanned++
		size += s.addTxn(env, p, b)
	}
}

// addValues fills a page with values that were written by transactions later than since, of which
// there may be few among many.
func (s *server) addValues(env *protocol.Env[message], p *page, since uint64) {
	most, count, scan, scanBytes := maxPageBytes, s.page, s.page, math.MaxInt
	if since > 0 {
		most, count, scanBytes = maxOwedBytes, min(s.page, maxOwedEntries), owedScanBytes
		scan = owedScan * count
	}
	size, scanned := 0, 0
	for k, b := range env.Scan([]byte(valuePrefix+p.From), afterPrefix(valuePrefix)) {
		key, bytes := store.Key(k[len(valuePrefix):]), len(k)+len(b)
		v := values.Parse(key, b)
		owed := v.Version.Time > since
		full := owed && len(p.Values) > 0 && (len(p.Values) == count || size+bytes > most)
		if full || p.Scanned > 0 && (p.Scanned == scan || scanned+bytes > scanBytes) {
			p.Next = string(key)
			return
		}
		p.Scanned, scanned = p.Scanned+1, scanned+bytes
		if owed {
			size += bytes
			p.Values = append(p.Values, keyValue{key, v})
		}
	}
}

// addTxn adds a transaction from the disk to a page if it is carried out, and returns how many
// bytes that is.
func (s *server) addTxn(env *protocol.Env[message], p *page, b []byte) int {
	r, err := readRecord(env, b)
	if err != nil {
		panic(err.Error()) // it could be read before
	}
	if !r.settled() {
		return 0
	}
	p.Txns = append(p.Txns, settledTxn{
		Txn: store.Txn{ID: r.id, Priority: r.priority, Writes: r.writes}, Shards: r.shards, Commit: r.state == committed,
		Old: r.tookForOld(), Done: s.doneEverywhere(r.id),
	})
	return len(b) + store.ContentBytes(nil, r.writes)
}

// doneEverywhere reports whether a transaction is known to be carried out by all servers, those
// that were away and have copied it since included.
func (s *server) doneEverywhere(id store.TxnID) bool {
	r := s.txns[id]
	return r != nil && r.done && len(r.but) == 0 && !r.tookForOld()
}

// afterTxns returns the key above all transactions up to a time.
func afterTxns(time uint64) []byte {
	if time == math.MaxUint64 {
		return afterPrefix(txnPrefix)
	}
	return txnKey(store.TxnID{Time: time + 1})
}

// afterPrefix returns a key above all that begin with a prefix, which does not end in 0xff.
func afterPrefix(prefix string) []byte {
	end := []byte(prefix)
	end[len(end)-1]++
	return end
}
