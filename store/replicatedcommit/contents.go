package replicatedcommit

import (
	"fmt"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// What a transaction reads and writes is on disk with its record. If it is large it has a key of
// its own there, so that the decision is written without it. It is in memory until the decision is
// carried out; who asks for it later is answered from the disk.

// ownKeyBytes is above how many bytes contents have a key of their own.
const ownKeyBytes = 4 << 10

func contentsKey(id store.TxnID) []byte { return append([]byte(contentsPrefix), txnKey(id)...) }

// save writes what is known of a transaction, and keeps no more of it in memory than is needed.
func (s *server) save(env *protocol.Env[message], r *record) {
	if s.txns[r.id] == nil {
		s.opened(env, r.id)
	}
	s.txns[r.id] = r
	if !r.ownKey && store.ContentBytes(r.reads, r.writes) > ownKeyBytes {
		r.ownKey = true
		env.Put(contentsKey(r.id), store.EncodeTxn(store.Txn{ID: r.id, Reads: r.reads, Writes: r.writes}))
	}
	env.Put(txnKey(r.id), r.bytes())
	s.marked(env)
	s.shed(r)
}

// shed drops a transaction's contents from memory when they are not needed any more.
func (s *server) shed(r *record) {
	if r.settled() && r.known {
		r.reads, r.writes, r.shed = nil, nil, true
	}
}

// readRecord returns a transaction from what is on disk under its key, with its contents.
func readRecord(env *protocol.Env[message], b []byte) (*record, error) {
	r, err := parseRecord(b)
	if err != nil || !r.ownKey {
		return r, err
	}
	contents, _ := env.Get(contentsKey(r.id))
	t, err := store.DecodeTxn(contents)
	if err != nil {
		return nil, fmt.Errorf("replicatedcommit: the contents of transaction %v on disk: %w", r.id, err)
	}
	r.reads, r.writes = t.Reads, t.Writes
	return r, nil
}

// writes returns what a transaction writes that is known here.
func (s *server) writes(env *protocol.Env[message], r *record) []store.Write {
	if !r.shed {
		return r.writes
	}
	b, _ := env.Get(txnKey(r.id))
	stored, err := readRecord(env, b)
	if err != nil {
		panic(err.Error()) // it was written by this server, or read at its start
	}
	return stored.writes
}

// remove forgets a transaction.
func (s *server) remove(env *protocol.Env[message], id store.TxnID) {
	if r := s.txns[id]; r != nil && r.ownKey {
		env.Delete(contentsKey(id))
	}
	delete(s.txns, id)
	env.Delete(txnKey(id))
}
