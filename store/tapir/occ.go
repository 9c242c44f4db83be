package tapir

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// conflict reports whether two transactions cannot both be committed: in the order of their
// timestamps, which is the order in which transactions are serialized, one has written between what
// the other one read and the other one. Two that write the same key have no conflict.
func conflict(t, u store.Txn) bool { return passes(t, u) || passes(u, t) }

// passes reports whether reader has read a version that writer replaces before it.
func passes(reader, writer store.Txn) bool {
	if !reader.ID.After(writer.ID) {
		return false
	}
	for _, r := range reader.Reads {
		if writer.ID.After(r.Version) && writes(writer, r.Key) {
			return true
		}
	}
	return false
}

func writes(t store.Txn, key store.Key) bool {
	_, ok := slices.BinarySearchFunc(t.Writes, key, func(w store.Write, k store.Key) int {
		return compareKeys(w.Key, k)
	})
	return ok
}

func compareKeys(a, b store.Key) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// held are the transactions that hold, by the keys that they read or write.
type held map[store.Key][]*record

func (h held) add(r *record) {
	for _, k := range keysOf(r.part) {
		h[k] = append(h[k], r)
	}
}

func (h held) remove(r *record) {
	for _, k := range keysOf(r.part) {
		if h[k] = slices.DeleteFunc(h[k], func(o *record) bool { return o == r }); len(h[k]) == 0 {
			delete(h, k)
		}
	}
}

// keysOf returns the keys that a transaction accesses, each once.
func keysOf(t store.Txn) []store.Key {
	keys := make([]store.Key, 0, len(t.Reads)+len(t.Writes))
	for _, r := range t.Reads {
		keys = append(keys, r.Key)
	}
	for _, w := range t.Writes {
		keys = append(keys, w.Key)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// conflicting returns a transaction that another one cannot be committed with, or nil.
func (h held) conflicting(t store.Txn) *record {
	for _, k := range keysOf(t) {
		for _, r := range h[k] {
			if r.id != t.ID && conflict(r.part, t) {
				return r
			}
		}
	}
	return nil
}

// check is TAPIR-OCC-CHECK, with the timestamp being that of the transaction's ID. What
// the figure leaves out is in DESIGN.md.
func (s *server) check(env *protocol.Env[store.Message], t store.Txn) (v vote, why store.Reason, hint uint64) {
	switch {
	case s.full():
		return refused, store.Overloaded, 0
	case t.ID.Time <= s.old:
		return refused, store.Old, 0
	case t.ID.Time > uint64(max(env.Now+s.cfg.MaxAhead, 0)):
		return refused, store.Ahead, 0
	}
	for _, r := range t.Reads {
		switch {
		case r.Version.Compare(t.ID) >= 0:
			v, hint = retry, max(hint, r.Version.Time)
		case values.At(env, r.Key).Version.After(r.Version):
			return refused, store.StaleRead, 0
		}
	}
	if s.held.conflicting(t) != nil {
		return abstain, store.Locked, 0
	}
	for _, w := range t.Writes {
		if latest := values.At(env, w.Key).Version; !t.ID.After(latest) {
			v, hint = retry, max(hint, latest.Time)
		}
		if read := s.lastRead[w.Key]; read.After(t.ID) {
			v, hint = retry, max(hint, read.Time)
		}
	}
	if v == retry {
		return retry, store.StaleWrite, hint
	}
	return prepared, store.NoReason, 0
}

// release ends that.
func (s *server) release(r *record) {
	if r.holds() {
		s.held.remove(r)
	}
}

// noteReads remembers the reads of a transaction that is committed, or may be: later ones must not
// write below it.
func (s *server) noteReads(env *protocol.Env[store.Message], t store.Txn) {
	for _, r := range t.Reads {
		if t.ID.After(s.lastRead[r.Key]) {
			s.lastRead[r.Key] = t.ID
			env.Put([]byte(readPrefix+string(r.Key)), versionLayout.Encode(t.ID))
		}
	}
}

// shadow has a transaction that is aborted, and that this server has voted for, keep others that
// conflict with it from the fast path until all have carried out the abort. A server that has not
// may bring it into a merge as accepted. With four servers and more the others there may have too
// few votes to tell whether it, or one that came after it, is the one that is gone by; what a
// majority has accepted they cannot miss.
func (s *server) shadow(r *record) {
	if r.shadows() && s.fast+s.slow-len(s.group) < s.slow {
		s.shadows.add(r)
	}
}

// doom takes back the yes to transactions that conflict with one that is committed: they cannot be,
// as somebody in each majority has voted for the other one, and so not for them. From now on a
// coordinator or a merge that looks for votes does not find this one.
func (s *server) doom(env *protocol.Env[store.Message], t store.Txn) {
	for r := s.held.conflicting(t); r != nil; r = s.held.conflicting(t) {
		s.release(r)
		r.vote, r.reason, r.accepted, r.yes = refused, store.StaleRead, ballot{}, false
		s.save(env, r)
	}
}
