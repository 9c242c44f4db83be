package carousel

import (
	"iter"
	"slices"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
)

// space is a key space in memory.
type space struct {
	has    map[string][]byte
	sorted []string
}

func (s *space) Get(key []byte) ([]byte, bool) {
	v, ok := s.has[string(key)]
	return v, ok
}

func (s *space) Scan(lo, hi []byte) iter.Seq2[[]byte, []byte] {
	first, _ := slices.BinarySearch(s.sorted, string(lo))
	return func(yield func([]byte, []byte) bool) {
		for _, k := range slices.Clone(s.sorted[first:]) {
			if hi != nil && k >= string(hi) || !yield([]byte(k), s.has[k]) {
				return
			}
		}
	}
}

func (s *space) Put(key, value []byte) {
	if i, found := slices.BinarySearch(s.sorted, string(key)); !found {
		s.sorted = slices.Insert(s.sorted, i, string(key))
	}
	s.has[string(key)] = slices.Clone(value)
}

func (s *space) Delete(key []byte) {
	if i, found := slices.BinarySearch(s.sorted, string(key)); found {
		s.sorted = slices.Delete(s.sorted, i, i+1)
		delete(s.has, string(key))
	}
}

// machine is a group's state that remembers three ends, with its disk.
type machine struct {
	*state
	disk *space
	at   raft.Position
}

func newMachine() *machine {
	m := &machine{state: newState(nil, 3), disk: &space{has: map[string][]byte{}}}
	m.Load(m.disk)
	return m
}

// apply applies entries, and loads the state again.
func (m *machine) apply(t *testing.T, entries ...store.Message) {
	t.Helper()
	for _, e := range entries {
		b, err := m.format.Append(nil, e)
		if err != nil {
			t.Fatal(err)
		}
		m.at.Index++
		m.Apply(m.disk, m.at, b)
	}
	m.Load(m.disk)
}

func txnID(n uint64) store.TxnID { return store.TxnID{Time: n, Client: 1} }

func yes(n, step uint64, key store.Key) prepared {
	return prepared{Part: partID{txnID(n), uint32(step)}, Ballot: ballot{Yes: true, Stamp: n,
		footprint: footprint{Writes: []store.Read{{Key: key}}}}}
}

func no(n, step uint64) prepared {
	return prepared{Part: partID{txnID(n), uint32(step)}, Ballot: ballot{Reason: store.Locked}}
}

func commitOf(n uint64, writes ...store.Write) ended {
	return ended{finish{ID: txnID(n), Commit: true, Version: store.Version{Time: n, Client: 1}, Writes: writes}}
}

// TestParts: what the group has said first on a part stands, a no ends the transaction, and what
// was prepared is free in the end, whether it is written or not (C13).
func TestParts(t *testing.T) {
	m := newMachine()
	write := store.Write{Key: "k", Bytes: []byte("x")}
	m.apply(t, yes(1, 1, "k"), yes(1, 2, "l"), no(1, 1), commitOf(1, write), yes(1, 3, "k"))
	if v := m.values.Newest(m.disk, "k"); string(v.Bytes) != "x" || len(m.locks) > 0 || len(m.parts) > 0 {
		t.Errorf("the key is %q, %d keys are locked", v.Bytes, len(m.locks))
	}
	m.apply(t, no(2, 2), yes(2, 1, "k"), commitOf(2, store.Write{Key: "k", Delete: true}))
	if v := m.values.Newest(m.disk, "k"); string(v.Bytes) != "x" || len(m.locks) > 0 {
		t.Errorf("a transaction that a no has ended: the key is %q, %d keys are locked", v.Bytes, len(m.locks))
	}
	if b, ok := m.word(partID{txnID(2), 1}); !ok || b.Yes {
		t.Errorf("the word on another part of it is %+v, known %v", b, ok)
	}
}

// TestNoToAFurtherPart: a yes that was told stands, whatever the partition says to later parts of
// the transaction: its commit request may name the first one alone. A run whose code took another
// way than the one that ended may have asked for the others.
func TestNoToAFurtherPart(t *testing.T) {
	m := newMachine()
	m.apply(t, yes(5, 1, "k"), no(5, 2), closed{At: 9})
	first, _ := m.word(partID{txnID(5), 1})
	second, _ := m.word(partID{txnID(5), 2})
	if !first.Yes || second.Yes || second.Reason != store.Locked {
		t.Errorf("the words are %+v and %+v", first, second)
	}
	if at := m.values.Closed(m.disk); at != 4 {
		t.Errorf("timestamps up to %d are closed, with a part that may be committed at 5", at)
	}
	m.apply(t, commitOf(5, store.Write{Key: "k", Bytes: []byte("x")}))
	if v := m.values.Newest(m.disk, "k"); string(v.Bytes) != "x" || len(m.locks)+len(m.parts) > 0 {
		t.Errorf("after the commit the key is %q, %d keys are locked, %d parts left", v.Bytes, len(m.locks), len(m.parts))
	}
	m.apply(t, closed{At: 9})
	if at := m.values.Closed(m.disk); at != 9 {
		t.Errorf("timestamps up to %d are closed, want 9", at)
	}
}

// TestChecks: what was read is right while its version is the newest and nobody is prepared to
// write the key (C4).
func TestChecks(t *testing.T) {
	m := newMachine()
	check := func(when string, version store.Version, want store.Reason) {
		t.Helper()
		if got := m.check(m.disk, []store.Read{{Key: "j"}, {Key: "k", Version: version}}); got != want {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	first := store.Version{Time: 1, Client: 1}
	check("nobody has written it", store.Version{}, store.NoReason)
	m.apply(t, yes(1, 1, "k"))
	check("somebody is prepared to write it", store.Version{}, store.Locked)
	m.apply(t, commitOf(1, store.Write{Key: "k", Bytes: []byte("x")}))
	check("it was written", store.Version{}, store.StaleRead)
	check("it was written, and read again", first, store.NoReason)
	m.apply(t, yes(2, 1, "k"), no(2, 2))
	check("who is prepared to write it was refused another key", first, store.Locked)
	m.apply(t, ended{finish{ID: txnID(2), Reason: store.Locked}})
	check("who was prepared to write it has ended", first, store.NoReason)
}

// TestRecords: of a commit request and an abort that nobody's vote says, the first on record counts
// (C10, C11).
func TestRecords(t *testing.T) {
	m := newMachine()
	commit := committing{commitRequest{txnID(1), commitRecord{Parts: []partRef{{0, 1}}}}}
	alone := decided{ID: txnID(1), Reason: store.Fenced, Shards: []uint32{1}, Alone: true}
	m.apply(t, begun{beginRequest{txnID(1), []uint32{2}}}, commit, alone)
	if r := m.records[txnID(1)]; r.commit == nil || r.end != nil {
		t.Errorf("the commit request comes first: the record is %+v", r)
	}
	m.apply(t, decided{ID: txnID(1), Reason: store.Locked}, done{txnID(1)}, commit)
	if o, over := m.gone.get(txnID(1)); !over || o.commit || len(m.records) > 0 {
		t.Errorf("the end is %+v, known %v", o, over)
	}
	commit.ID, alone.ID = txnID(2), txnID(2)
	m.apply(t, alone, commit)
	if r := m.records[txnID(2)]; r.commit != nil || r.end == nil {
		t.Errorf("the abort comes first: the record is %+v", r)
	}
}

// TestRemembering: of what is older than what is forgotten nothing begins, but what has begun goes
// on.
func TestRemembering(t *testing.T) {
	m := newMachine()
	ends := func(first, last uint64) (out []store.Message) {
		for n := first; n <= last; n++ {
			out = append(out, no(n, 1))
		}
		return out
	}
	m.apply(t, yes(2, 1, "k"))
	m.apply(t, ends(3, 9)...)
	if got := len(m.ends.ends); got != 3 {
		t.Errorf("%d ends are remembered, want 3", got)
	}
	for n := uint64(3); n < 10; n++ { // a leader asks that before it says anything
		if !m.knows(partID{txnID(n), 1}) {
			t.Errorf("transaction %d may begin again", n)
		}
	}
	m.apply(t, yes(2, 2, "l"), commitOf(2, store.Write{Key: "k", Bytes: []byte("x")}))
	if v := m.values.Newest(m.disk, "k"); string(v.Bytes) != "x" || len(m.locks) > 0 {
		t.Errorf("what was prepared before is committed: the key is %q, %d keys are locked", v.Bytes, len(m.locks))
	}
}

// TestRememberingRecords is TestRemembering for coordinators.
func TestRememberingRecords(t *testing.T) {
	m := newMachine()
	record := func(n uint64) store.Message {
		return committing{commitRequest{txnID(n), commitRecord{Parts: []partRef{{0, 1}}}}}
	}
	m.apply(t, record(2))
	for n := uint64(3); n < 10; n++ {
		m.apply(t, record(n), decided{ID: txnID(n), Reason: store.Locked}, done{txnID(n)})
	}
	m.apply(t, record(5), begun{beginRequest{txnID(4), nil}}, decided{ID: txnID(3), Alone: true})
	if len(m.records) != 1 {
		t.Errorf("there are %d records, want one: what is forgotten must not begin", len(m.records))
	}
	m.apply(t, decided{ID: txnID(2), Commit: true, Version: store.Version{Time: 9}})
	if r := m.records[txnID(2)]; r == nil || r.end == nil || !r.end.commit {
		t.Fatalf("what was recorded before is decided: the record is %+v", r)
	}
	m.apply(t, done{txnID(2)})
	if len(m.records) != 0 {
		t.Errorf("%d records are left", len(m.records))
	}
}

// TestRefuses: why a leader refuses a part. That the ID is ahead of its clock is a reason for the
// first part of a transaction only.
func TestRefuses(t *testing.T) {
	m := newMachine()
	s := &server{cfg: store.Config{MaxAhead: 10}, state: m.state}
	s.participant.reset()
	env := protocol.NewEnv[store.Message](m.disk, 1, nil)
	ask := func(n uint64, step uint32, writes ...store.Key) store.Reason {
		return s.refuses(env, prepareRequest{Part: partID{txnID(n), step}, Writes: writes})
	}
	if got := ask(10, 1, "k"); got != store.NoReason {
		t.Errorf("as far ahead as is allowed: the reason is %v", got)
	}
	if got := ask(11, 1, "k"); got != store.Ahead {
		t.Errorf("further ahead: the reason is %v, want ahead", got)
	}
	flies := yes(20, 1, "k")
	s.flying[flies.Part] = &flies
	s.flyingLocks.add(flies.Part.ID, flies.Ballot.footprint)
	if got := ask(20, 2, "l"); got != store.NoReason {
		t.Errorf("a further part of one that is proposed is refused: %v", got)
	}
	if got := ask(5, 1, "k"); got != store.Locked {
		t.Errorf("a key of what is proposed: the reason is %v, want locked", got)
	}
	refuses := no(40, 2)
	refuses.Part.ID.Time = 9
	s.flying[refuses.Part] = &refuses
	if got := ask(9, 1, "o"); got != store.Locked {
		t.Errorf("a further part of one that is about to be refused: the reason is %v, want locked", got)
	}
	m.apply(t, yes(30, 1, "m"))
	if got := ask(30, 2, "n"); got != store.NoReason {
		t.Errorf("a further part of one that is prepared is refused: %v", got)
	}
	if got := ask(5, 1, "m"); got != store.Locked {
		t.Errorf("a key of what is prepared: the reason is %v, want locked", got)
	}
}

// TestWhatWasSaidIsPrepared: a yes is one when it is agreed on, although so many ends have been
// forgotten since it was said that the transaction may be over. What has ended stays so.
func TestWhatWasSaidIsPrepared(t *testing.T) {
	m := newMachine()
	m.apply(t, no(4, 1), no(5, 1), no(6, 1), no(7, 1), yes(3, 1, "k"), yes(5, 1, "l"))
	if !m.ends.isOld(txnID(3)) {
		t.Error("no ends are forgotten: this shows nothing")
	}
	if len(m.parts) != 1 || m.parts[partID{txnID(3), 1}] == nil {
		t.Errorf("%d parts are prepared, want that of the first transaction", len(m.parts))
	}
	m.apply(t, commitOf(3, store.Write{Key: "k", Bytes: []byte("x")}))
	if v := m.values.Newest(m.disk, "k"); string(v.Bytes) != "x" || len(m.locks) > 0 {
		t.Errorf("the key is %q, %d keys are locked", v.Bytes, len(m.locks))
	}
}

// TestFits: what a new leader may prepare that is on lists. What is outdated, read or written, the
// old leader has not prepared (C5).
func TestFits(t *testing.T) {
	m := newMachine()
	m.apply(t, yes(2, 1, "k"), commitOf(2, store.Write{Key: "k"}), yes(3, 1, "l"))
	at := func(key store.Key, n uint64) []store.Read {
		return []store.Read{{Key: key, Version: store.Version{Time: n, Client: store.ClientID(min(n, 1))}}}
	}
	for _, tc := range []struct {
		name string
		id   uint64
		f    footprint
		want bool
	}{
		{"it reads the newest version", 9, footprint{Reads: at("k", 2)}, true},
		{"it reads an outdated version", 9, footprint{Reads: at("k", 0)}, false},
		{"it writes over the newest version", 9, footprint{Writes: at("k", 2)}, true},
		{"it writes over an outdated version", 9, footprint{Writes: at("k", 0)}, false},
		{"another one has the key", 9, footprint{Writes: at("l", 0)}, false},
		{"it has ended", 2, footprint{Writes: at("k", 2)}, false},
		{"the group has prepared it", 3, footprint{Writes: at("l", 0)}, false},
	} {
		if got := m.fits(m.disk, pending{Part: partID{txnID(tc.id), 1}, Term: 2, footprint: tc.f}); got != tc.want {
			t.Errorf("%s: it fits is %v, want %v", tc.name, got, tc.want)
		}
	}
}
