package carousel

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/quorum"
	"github.com/foresay/foresay/store"
)

// The rules that decide: functions of what is known, without effects.

// A partRef names what a transaction prepares at a partition in one step. Steps are numbered from 1
// on at each partition.
type partRef struct{ Shard, Step uint32 }

// A partID names a part within its partition.
type partID struct {
	ID   store.TxnID
	Step uint32
}

// A footprint is which keys a part reads and is to write, with the versions that they had when it
// was prepared. Those of keys that are only written count too: a replica that lags must not help
// to prepare a blind write over what it has not seen.
type footprint struct {
	Reads  []store.Read
	Writes []store.Read
}

func (f footprint) equal(g footprint) bool {
	return slices.Equal(f.Reads, g.Reads) && slices.Equal(f.Writes, g.Writes)
}

// writes reports whether a key is among those that are to be written.
func (f footprint) writes(key store.Key) bool {
	return slices.ContainsFunc(f.Writes, func(w store.Read) bool { return w.Key == key })
}

// A ballot is how a partition has prepared a part, for good.
type ballot struct {
	Yes    bool
	Reason store.Reason // of a no
	Stamp  uint64       // of a yes: the transaction's version is not below it
	footprint
}

// A tally is what members of a partition have said about a part.
type tally struct {
	durable *ballot // the group has agreed on it
	fast    map[protocol.ID]fastVote
	stored  map[protocol.ID]storedVote
	// known says that its word is known, quick that the fast path was there first.
	known, quick bool
}

// agreed returns the word on the part that a majority of members have on their disks, as one entry
// of the log: at one place, and of one term. Each has stored it while it was in that term, so the
// group has agreed on it, by Raft's own rule, whoever leads by now and whether or not that is known
// to anybody else. Copies of what a leader has said in one term and of what another one has said in
// the next do not count together: either may be overwritten.
//
// The members that count are those that the words name: see DESIGN.md, "Members that change".
func (t *tally) agreed() (b ballot, ok bool) {
	for _, v := range t.stored { //pure:ok what a majority has, no other majority has otherwise
		n, members := 0, len(v.Members)
		for from, w := range t.stored { //pure:ok they are counted
			if w.At == v.At && slices.Contains(v.Members, from) {
				n++
			}
		}
		if n > members/2 {
			return v.Ballot, true
		}
	}
	return ballot{}, false
}

// ballot returns how the partition has prepared the part, ok is false if that is not known yet. The
// fast path is taken if a supermajority with the leader has prepared alike: in one term, on the
// same versions of keys that are read and of those that are written. Of 2f+1 members that is
// ⌈3f/2⌉+1 [Carousel §3.2.2].
func (t *tally) ballot() (b ballot, durable, ok bool) {
	if t.durable != nil {
		return *t.durable, true, true
	}
	for _, lead := range t.fast { //pure:ok one member leads in a term, and others of the term have to agree with it
		if !lead.Leader {
			continue
		}
		n, members := 0, len(lead.Members)
		for from, v := range t.fast { //pure:ok they are counted
			if slices.Contains(lead.Members, from) && v.Term == lead.Term && v.Footprint.equal(lead.Footprint) {
				n++
			}
		}
		if n >= quorum.Fast(members) {
			return ballot{Yes: true, Stamp: lead.Stamp, footprint: lead.Footprint}, false, true
		}
	}
	return ballot{}, false, false
}

// know notes whether the fast path was there first.
func (t *tally) know(durable bool) {
	if !t.known {
		t.known, t.quick = true, !durable
	}
}

// A verdict is what a coordinator knows of a transaction's end.
type verdict uint8

const (
	waits verdict = iota
	commits
	aborts
)

// decide returns how a transaction ends, as a function of what is durable: the record of its commit
// request in the coordinator's group, and the partitions' ballots. So every coordinator that knows
// enough says the same, whatever it has not seen.
//
// A no to one of the request's parts is enough for an abort, and a no to any other part is none:
// the next coordinator may not hear of it. A commit needs a yes for each of the parts, and what the
// client has read has to be what the partitions found: it may have read from a replica that lags.
func decide(m *commitRecord, ballots map[partRef]ballot) (v verdict, why store.Reason, stamp uint64) {
	if m == nil {
		return waits, store.NoReason, 0
	}
	if why, ok := refused(m.Parts, ballots); ok {
		return aborts, why, 0
	}
	versions, writable := map[store.Key]store.Version{}, map[store.Key]bool{}
	for _, p := range m.Parts {
		b, ok := ballots[p]
		if !ok {
			return waits, store.NoReason, 0
		}
		stamp = max(stamp, b.Stamp)
		for _, r := range b.Reads {
			versions[r.Key] = r.Version
		}
		for _, w := range b.footprint.Writes {
			writable[w.Key] = true
		}
	}
	for _, r := range m.Reads {
		if at, ok := versions[r.Key]; !ok || at != r.Version {
			return aborts, store.StaleRead, 0
		}
	}
	for _, w := range m.Writes {
		if !writable[w.Key] {
			return aborts, store.StaleWrite, 0 // it was not prepared, so others may be writing it
		}
	}
	return commits, store.NoReason, stamp
}

// refused returns why the first of some parts that is refused is.
func refused(parts []partRef, ballots map[partRef]ballot) (why store.Reason, ok bool) {
	for _, p := range parts {
		if b, known := ballots[p]; known && !b.Yes {
			return b.Reason, true
		}
	}
	return store.NoReason, false
}

// A pending is an entry of a member's pending-transaction list: what it has prepared on the fast
// path, and does not know the group's word on.
type pending struct {
	Part  partID
	Term  uint64 // in which it has said so
	Coord uint32
	footprint
}

// recover returns which parts a new leader has to prepare because they may be prepared on the fast
// path already [Carousel §3.2.3, steps 3 and 4]: those that a majority of f+1 members' lists have,
// from one term and on the same versions, that conflict with nothing that the log has prepared, and
// whose versions are still the newest. The lists are as of the moment at which their members
// promised to say nothing more in earlier terms.
//
// A supermajority leaves out ⌊f/2⌋ members, so f+1-⌊f/2⌋ of any f+1 lists have what was prepared by
// one: that is a majority of them, and so it is of even numbers of members by quorum.Fast. Two that
// conflict cannot both be in a majority of the lists, as no list has both.
func recover(lists [][]pending, fits func(pending) bool) []pending {
	var out []pending
	seen := map[partID]bool{}
	for _, list := range lists {
		for _, p := range list {
			if n := having(lists, p); seen[p.Part] || n < len(lists)/2+1 || !fits(p) {
				continue
			}
			seen[p.Part] = true
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b pending) int { return comparePartIDs(a.Part, b.Part) })
	return out
}

// having counts the lists that have an entry.
func having(lists [][]pending, p pending) (n int) {
	for _, list := range lists {
		if slices.ContainsFunc(list, func(q pending) bool {
			return q.Part == p.Part && q.Term == p.Term && q.footprint.equal(p.footprint)
		}) {
			n++
		}
	}
	return n
}

func comparePartIDs(a, b partID) int {
	if c := a.ID.Compare(b.ID); c != 0 {
		return c
	}
	return int(a.Step) - int(b.Step)
}

// locks says which transactions have keys. The parts of one transaction do not conflict.
type locks map[store.Key]*lock

type lock struct {
	writer  store.TxnID
	readers []store.TxnID // a transaction is in it once for each of its parts that read the key
}

// conflict reports whether another transaction has a key that this one reads or writes.
func (l locks) conflict(id store.TxnID, f footprint) bool {
	return l.meets(f, func(other store.TxnID) bool { return other != id })
}

// meets reports whether one of the transactions for which a function says so has a key, to write
// it, that is read or written here, or reads one that is written here.
func (l locks) meets(f footprint, counts func(store.TxnID) bool) bool {
	for _, r := range f.Reads {
		if k := l[r.Key]; k != nil && !k.writer.IsZero() && counts(k.writer) {
			return true
		}
	}
	for _, w := range f.Writes {
		k := l[w.Key]
		if k == nil {
			continue
		}
		if !k.writer.IsZero() && counts(k.writer) || slices.ContainsFunc(k.readers, counts) {
			return true
		}
	}
	return false
}

func (l locks) add(id store.TxnID, f footprint) {
	at := func(key store.Key) *lock {
		k := l[key]
		if k == nil {
			k = &lock{}
			l[key] = k
		}
		return k
	}
	for _, r := range f.Reads {
		k := at(r.Key)
		k.readers = append(k.readers, id)
	}
	for _, w := range f.Writes {
		at(w.Key).writer = id
	}
}

// remove takes away what add has added.
func (l locks) remove(id store.TxnID, f footprint) {
	drop := func(key store.Key) {
		if k := l[key]; k != nil && k.writer.IsZero() && len(k.readers) == 0 {
			delete(l, key)
		}
	}
	for _, r := range f.Reads {
		if k := l[r.Key]; k != nil {
			if i := slices.Index(k.readers, id); i >= 0 {
				k.readers = slices.Delete(k.readers, i, i+1)
			}
			drop(r.Key)
		}
	}
	for _, w := range f.Writes {
		if k := l[w.Key]; k != nil && k.writer == id {
			k.writer = store.TxnID{}
			drop(w.Key)
		}
	}
}

// writes reports whether a transaction has a key to write it.
func (l locks) writes(key store.Key) bool {
	k := l[key]
	return k != nil && !k.writer.IsZero()
}
