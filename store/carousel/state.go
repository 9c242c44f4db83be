package carousel

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/mvcc"
)

// remembered is how many ended transactions a partition remembers at least, as a participant and as
// a coordinator each. It is the same at all members, as what they remember is.
const remembered = 100_000

// state is what a partition's group agrees on, in the key space. What is in memory follows from it.
type state struct {
	format  *wirefmt.Format[store.Message]
	values  mvcc.Store
	applied func(store.Key, store.Value) // nil: nobody
	// remembers is how many ends it remembers.
	remembers int

	parts map[partID]*part
	locks locks // of parts
	// latest is the latest version of a transaction that was carried out here, also of one that has
	// only read: what is prepared afterwards is later.
	latest uint64
	// sure is the latest version of a transaction of which a part was recovered. A coordinator that
	// has died since may have told an earlier one, and at that no snapshot here shows the transaction.
	sure uint64
	// ends are those of transactions in which the partition took part.
	ends remembering
	// records are transactions that the group coordinates and that are not done; gone are the ends
	// of those that are.
	records map[store.TxnID]*txnRecord
	gone    remembering

	// checks are the answers to checked entries of this call, by where they are in the log.
	checks map[uint64]store.Reason
	// more says that the last collection has left something to collect.
	more bool
}

// A part is what the partition has prepared for a transaction, and does not know the end of, or has
// refused beside what it has prepared.
type part struct {
	id        partID
	coord     uint32
	ballot    ballot // Invariant: a yes, or the transaction has another part with a yes
	recovered bool
}

// A txnRecord is what a coordinator's group knows of a transaction.
type txnRecord struct {
	id     store.TxnID
	shards []uint32      // that may have prepared
	commit *commitRecord // nil: no commit request yet
	end    *outcome      // nil: not decided, or as a function of what is durable
}

// An outcome is how a transaction has ended.
type outcome struct {
	commit  bool
	version store.Version
	reason  store.Reason
}

// Keys begin with what they are.
const (
	valuesPart = "v"
	partsPart  = "p"
	endsPart   = "e"
	recordPart = "r"
	gonePart   = "g"
	oldPart    = "o" // and the part that has forgotten
	latestKey  = "t"
	sureKey    = "s"
)

// newState returns a group's state that remembers so many ends, in each role.
func newState(applied func(store.Key, store.Value), remembers int) *state {
	s := &state{format: codec(), values: mvcc.New([]byte(valuesPart)), applied: applied, remembers: remembers}
	s.reset()
	return s
}

func (s *state) reset() {
	s.parts, s.locks, s.latest, s.sure = map[partID]*part{}, locks{}, 0, 0
	s.records, s.checks = map[store.TxnID]*txnRecord{}, map[uint64]store.Reason{}
	s.ends, s.gone = newRemembering(endsPart, s.remembers), newRemembering(gonePart, s.remembers)
}

// Load implements raft.Machine.
func (s *state) Load(keys protocol.Keys) {
	s.reset()
	for k, b := range keys.Scan([]byte(partsPart), []byte(partsPart+"\xff")) {
		m := mustDecode(partLayout, b)
		p := &part{id: parsePartKey(k), coord: m.coord, ballot: m.ballot, recovered: m.recovered}
		s.parts[p.id] = p
		s.locks.add(p.id.ID, p.ballot.footprint)
	}
	for k, b := range keys.Scan([]byte(recordPart), []byte(recordPart+"\xff")) {
		r := mustDecode(recordLayout, b)
		r.id, _ = store.ParseTxnKey(len(recordPart), k)
		s.records[r.id] = &r
	}
	s.ends.load(keys)
	s.gone.load(keys)
	if b, ok := keys.Get([]byte(sureKey)); ok {
		s.sure = mustDecode(latestLayout, b)
	}
	if b, ok := keys.Get([]byte(latestKey)); ok {
		s.latest = mustDecode(latestLayout, b)
		return
	}
	for _, o := range s.ends.ends { //pure:ok the latest of all
		s.latest = max(s.latest, o.version.Time) // an earlier version of the program did not keep it
	}
}

// mustDecode decodes what this or an earlier version of the program has encoded.
func mustDecode[T any](l *wirefmt.Layout[T], b []byte) T {
	v, err := l.Decode(b)
	if err != nil {
		panic(fmt.Sprintf("carousel: the state cannot be read: %v", err))
	}
	return v
}

// Apply implements raft.Machine.
func (s *state) Apply(st raft.State, at raft.Position, entry []byte) {
	switch m, _ := s.format.Decode(entry); m := m.(type) {
	case prepared:
		s.prepare(st, m)
	case ended:
		s.finish(st, m.finish)
	case checked:
		s.checks[at.Index] = s.check(st, m.Reads)
	case raised:
		s.values.RaiseCeiling(st, m.Ceiling)
	case closed:
		s.close(st, m)
	case begun:
		s.begin(st, m.beginRequest)
	case committing:
		s.commit(st, m.commitRequest)
	case decided:
		s.decide(st, m)
	case done:
		s.forget(st, m.ID)
	}
}

// prepare takes the leader's word on a part. A no is the transaction's end here, unless the
// partition has said yes to another part of it before: that stands, as the commit request may name
// that one and not this one. The leader knew whether the transaction was over when it said its
// word, which others may have heard since: that ends are forgotten meanwhile does not undo it.
func (s *state) prepare(st raft.State, m prepared) {
	if _, over := s.ends.get(m.Part.ID); over || s.parts[m.Part] != nil {
		return // what was said first stands
	}
	if !m.Ballot.Yes && len(s.partsOf(m.Part.ID)) == 0 {
		s.ends.put(st, m.Part.ID, outcome{reason: m.Ballot.Reason})
		return
	}
	if s.locks.conflict(m.Part.ID, m.Ballot.footprint) {
		panic(fmt.Sprintf("carousel: %v was prepared against its conflicts", m.Part))
	}
	p := &part{m.Part, m.Coord, m.Ballot, m.Recovered}
	s.parts[p.id] = p
	s.locks.add(p.id.ID, p.ballot.footprint)
	st.Put(partKey(p.id), partLayout.Encode(partContents{p.coord, p.ballot, p.recovered}))
}

// isOver reports whether a transaction has ended here, or may have: its end may be forgotten. That
// is not so of one that has a part.
func (s *state) isOver(id store.TxnID) bool {
	_, over := s.ends.get(id)
	return over || s.ends.isOld(id) && len(s.partsOf(id)) == 0
}

// isGone tells the same of a transaction that the group coordinates. One that has a record has not.
func (s *state) isGone(id store.TxnID) bool {
	_, over := s.gone.get(id)
	return over || s.gone.isOld(id) && s.records[id] == nil
}

// knows reports whether the group has said its word on a part.
func (s *state) knows(id partID) bool { return s.parts[id] != nil || s.isOver(id.ID) }

// release frees the keys of a transaction.
func (s *state) release(st raft.State, id store.TxnID) {
	for _, p := range s.partsOf(id) {
		s.locks.remove(id, p.ballot.footprint)
		delete(s.parts, p.id)
		st.Delete(partKey(p.id))
	}
}

// partsOf returns the parts of a transaction, in order.
func (s *state) partsOf(id store.TxnID) (out []*part) {
	for step := uint32(1); step <= maxSteps; step++ {
		if p := s.parts[partID{id, step}]; p != nil {
			out = append(out, p)
		}
	}
	return out
}

// hasYes reports whether the partition has said yes to a part of a transaction that has not ended.
func (s *state) hasYes(id store.TxnID) bool {
	return slices.ContainsFunc(s.partsOf(id), func(p *part) bool { return p.ballot.Yes })
}

// finish carries out how a transaction has ended. Keys that were prepared and are not written are
// free like the others.
func (s *state) finish(st raft.State, m finish) {
	if s.isOver(m.ID) {
		return
	}
	if m.Commit && slices.ContainsFunc(s.partsOf(m.ID), func(p *part) bool { return p.recovered }) {
		s.sure = max(s.sure, m.Version.Time)
		st.Put([]byte(sureKey), latestLayout.Encode(s.sure))
	}
	if m.Commit && len(s.partsOf(m.ID)) > 0 {
		if at := s.values.Closed(st); len(m.Writes) > 0 && m.Version.Time <= uint64(at) {
			panic(fmt.Sprintf("carousel: %v is committed at %v, which was closed, up to %d", m.ID, m.Version, at))
		}
		for _, w := range m.Writes {
			v := store.Value{Version: m.Version, Present: !w.Delete, Bytes: w.Bytes}
			if err := s.values.Put(st, w.Key, v); err != nil {
				panic(fmt.Sprintf("carousel: %v: %v", m.ID, err)) // the horizon is below what is prepared
			}
			if s.applied != nil {
				s.applied(w.Key, v)
			}
		}
		if m.Version.Time > s.latest {
			s.latest = m.Version.Time
			st.Put([]byte(latestKey), latestLayout.Encode(s.latest))
		}
	}
	s.release(st, m.ID)
	s.ends.put(st, m.ID, outcome{m.Commit, m.Version, m.Reason})
}

// check says whether what was read is what there is, and stays so.
func (s *state) check(keys protocol.Keys, reads []store.Read) store.Reason {
	for _, r := range reads {
		switch {
		case s.values.Newest(keys, r.Key).Version != r.Version:
			return store.StaleRead
		case s.locks.writes(r.Key):
			return store.Locked
		}
	}
	return store.NoReason
}

// begin notes which partitions a transaction that still reads prepares at.
func (s *state) begin(st raft.State, m beginRequest) {
	if s.isGone(m.ID) {
		return
	}
	r := s.records[m.ID]
	if r == nil {
		r = &txnRecord{id: m.ID}
		s.records[m.ID] = r
	}
	r.shards = union(r.shards, m.Shards)
	s.write(st, r)
}

// commit takes a commit request, unless the transaction was aborted before.
func (s *state) commit(st raft.State, m commitRequest) {
	if s.isGone(m.ID) {
		return
	}
	r := s.records[m.ID]
	if r == nil {
		r = &txnRecord{id: m.ID}
		s.records[m.ID] = r
	}
	if r.commit != nil || r.end != nil {
		return
	}
	record := m.commitRecord
	r.commit, r.shards = &record, union(r.shards, record.shards())
	s.write(st, r)
}

// shards returns the partitions that have parts.
func (m commitRecord) shards() (out []uint32) {
	for _, p := range m.Parts {
		out = union(out, []uint32{p.Shard})
	}
	return out
}

// decide records a transaction's end. An abort that is no function of votes comes too late once
// there is a commit request: somebody may have been told that it is committed.
func (s *state) decide(st raft.State, m decided) {
	if s.isGone(m.ID) {
		return
	}
	r := s.records[m.ID]
	if r == nil {
		r = &txnRecord{id: m.ID}
		s.records[m.ID] = r
	}
	if r.end != nil || m.Alone && r.commit != nil {
		return
	}
	r.end, r.shards = &outcome{m.Commit, m.Version, m.Reason}, union(r.shards, m.Shards)
	s.write(st, r)
}

// forget keeps of a transaction only how it has ended.
func (s *state) forget(st raft.State, id store.TxnID) {
	r := s.records[id]
	if r == nil || r.end == nil {
		return
	}
	delete(s.records, id)
	st.Delete(store.TxnKey(recordPart, id))
	s.gone.put(st, id, *r.end)
}

func (s *state) write(st raft.State, r *txnRecord) {
	st.Put(store.TxnKey(recordPart, r.id), recordLayout.Encode(*r))
}

// union returns the shards, or keys, of both lists, in order and each once.
func union[T cmp.Ordered](a, b []T) []T {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// remembering is how transactions have ended. The ones whose IDs are the lowest are forgotten
// first.
type remembering struct {
	part  string
	limit int
	ends  map[store.TxnID]outcome
	// old is the time of the latest one that was forgotten. Invariant: none of up to it begins any
	// more.
	old uint64
}

func newRemembering(part string, limit int) remembering {
	return remembering{part: part, limit: limit, ends: map[store.TxnID]outcome{}}
}

func (m *remembering) load(keys protocol.Keys) {
	for k, b := range keys.Scan([]byte(m.part), []byte(m.part+"\xff")) {
		id, _ := store.ParseTxnKey(len(m.part), k)
		m.ends[id] = mustDecode(outcomeLayout, b)
	}
	if b, ok := keys.Get([]byte(oldPart + m.part)); ok {
		m.old = mustDecode(oldLayout, b)
	}
}

func (m *remembering) get(id store.TxnID) (outcome, bool) {
	o, ok := m.ends[id]
	return o, ok
}

// isOld reports whether the end of a transaction may be forgotten.
func (m *remembering) isOld(id store.TxnID) bool {
	_, ok := m.ends[id]
	return !ok && id.Time <= m.old
}

func (m *remembering) put(st raft.State, id store.TxnID, o outcome) {
	m.ends[id] = o
	st.Put(store.TxnKey(m.part, id), outcomeLayout.Encode(o))
	if len(m.ends) <= m.limit {
		return
	}
	for k := range st.Scan([]byte(m.part), []byte(m.part+"\xff")) {
		first, _ := store.ParseTxnKey(len(m.part), k)
		delete(m.ends, first)
		st.Delete(slices.Clone(k))
		m.old = max(m.old, first.Time)
		st.Put([]byte(oldPart+m.part), oldLayout.Encode(m.old))
		return
	}
}

func partKey(p partID) []byte {
	return binary.BigEndian.AppendUint32(store.TxnKey(partsPart, p.ID), p.Step)
}

func parsePartKey(k []byte) partID {
	id, step := store.ParseTxnKey(len(partsPart), k)
	return partID{id, binary.BigEndian.Uint32(step)}
}

type partContents struct {
	coord     uint32
	ballot    ballot
	recovered bool
}

var partLayout = wirefmt.NewLayout("carousel: a part", func(c *wirefmt.Coder, m *partContents) {
	wirefmt.Uint32(c, &m.coord)
	ballotFields(c, &m.ballot)
	wirefmt.Bool(c, &m.recovered)
})

var latestLayout = wirefmt.NewLayout("carousel: the latest version", wirefmt.Uint[uint64])

// oldLayout is that of the time up to which ends may be forgotten.
var oldLayout = wirefmt.NewLayout("carousel: what is old", wirefmt.Uint[uint64])

var outcomeLayout = wirefmt.NewLayout("carousel: an outcome", outcomeFields)

func outcomeFields(c *wirefmt.Coder, o *outcome) {
	wirefmt.Bool(c, &o.commit)
	store.VersionFields(c, &o.version)
	store.ReasonFields(c, &o.reason)
}

var recordLayout = wirefmt.NewLayout("carousel: a record", func(c *wirefmt.Coder, r *txnRecord) {
	store.ShardsFields(c, &r.shards)
	commits, ends := r.commit != nil, r.end != nil
	if wirefmt.Bool(c, &commits); commits {
		if c.Reading() {
			r.commit = &commitRecord{}
		}
		recordFields(c, r.commit)
	}
	if wirefmt.Bool(c, &ends); ends {
		if c.Reading() {
			r.end = &outcome{}
		}
		outcomeFields(c, r.end)
	}
})
