package tapir

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storedeploy"
)

// newTestServer returns the first server of a shard with so many copies, as admitted, and an env.
func newTestServer(t *testing.T, copies int) (*server, *protocol.Env[store.Message]) {
	t.Helper()
	s, err := newServer(store.Config{ID: 11, Layout: storedeploy.Layout(copies, 1)})
	if err != nil {
		t.Fatal(err)
	}
	s.self.Joined, s.members = true, s.group
	env := protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
	env.Begin(1000)
	return s, env
}

// at returns the ID of a transaction.
func at(time uint64) store.TxnID { return store.TxnID{Time: time, Client: 1} }

// writing and reading return transactions' parts: reading one reads version 0 of a key.
func writing(time uint64, key store.Key) store.Txn {
	return store.Txn{ID: at(time), Writes: []store.Write{{Key: key}}}
}

func reading(time uint64, key store.Key) store.Txn {
	return store.Txn{ID: at(time), Reads: []store.Read{{Key: key}}}
}

// had is a server's record of a transaction.
func had(t store.Txn, change func(*entry)) entry {
	e := entry{ID: t.ID, Shards: []uint32{0}, Has: true, Part: t, Promised: ballot{By: 9}}
	change(&e)
	return e
}

func voted(v vote) func(*entry) { return func(e *entry) { e.Vote = v } }

func ended(as end, why store.Reason) func(*entry) {
	return func(e *entry) { e.Vote, e.End, e.Reason = prepared, as, why }
}

func took(round uint32, yes bool) func(*entry) {
	return func(e *entry) {
		e.Vote, e.Promised = prepared, ballot{Round: round, By: 9}
		e.Accepted, e.Yes = e.Promised, yes
	}
}

// TestLastView tells a server of a view after which there is none: it does not go there.
func TestLastView(t *testing.T) {
	const last = ^viewNumber(0)
	for _, m := range []store.Message{viewChange{last}, doView{View: last, Piece: piece{Of: 1}},
		startView{View: last, Members: []protocol.ID{11, 21, 31}, Piece: piece{Of: 1}}} {
		for _, from := range []protocol.ID{10, 21, 31} {
			s, env := newTestServer(t, 3)
			s.Receive(env, from, m)
			if s.view != 0 {
				t.Errorf("after %+v from %d it is in view %d", m, from, s.view)
			}
		}
	}
}

// TestMerge has the leader of a view put together what a majority has, in situations that seldom
// come about by chance.
func TestMerge(t *testing.T) {
	w, r := writing(5, "k"), reading(6, "k")
	type record struct {
		normal viewNumber
		all    []entry
	}
	for _, tc := range []struct {
		name   string
		copies int
		had    []record
		yes    []uint64 // times of those that are committed, or accepted with a yes
		no     []uint64 // of those that are aborted, or accepted with a no
	}{
		{"two votes of three may be of a fast quorum", 3,
			[]record{{0, []entry{had(w, voted(prepared))}}, {0, []entry{had(w, voted(prepared))}}}, []uint64{5}, nil},
		{"one vote of two of three is not", 3,
			[]record{{0, []entry{had(w, voted(prepared))}}, {0, []entry{had(w, voted(abstain))}}}, nil, []uint64{5}},
		{"two votes of three of five may be", 5,
			[]record{{0, []entry{had(w, voted(prepared))}}, {0, []entry{had(w, voted(prepared))}}, {}}, []uint64{5}, nil},
		{"two votes of five of five are not", 5,
			[]record{{0, []entry{had(w, voted(prepared))}}, {0, []entry{had(w, voted(prepared))}}, {}, {}, {}},
			nil, []uint64{5}},
		{"votes of a view before the latest do not count", 3,
			[]record{{1, []entry{had(w, voted(prepared))}}, {2, []entry{had(w, voted(prepared))}}},
			nil, []uint64{5}},
		{"nor does what was accepted there", 3, []record{{1, []entry{had(w, took(3, true))}}, {2, nil}}, nil, nil},
		{"the accepted result of the latest ballot counts", 3,
			[]record{{0, []entry{had(w, took(1, false))}}, {0, []entry{had(w, took(2, true))}}}, []uint64{5}, nil},
		{"also if it is a no to what all have voted for", 3,
			[]record{{0, []entry{had(w, took(2, false))}}, {0, []entry{had(w, took(1, true))}}}, nil, []uint64{5}},
		{"what conflicts with what is committed was not gone by", 5, []record{
			{0, []entry{had(w, ended(committed, 0))}}, {0, []entry{had(r, voted(prepared))}},
			{0, []entry{had(r, voted(prepared))}},
		}, []uint64{5}, []uint64{6}},
		{"nor what conflicts with what is accepted", 5, []record{
			{0, []entry{had(w, voted(prepared)), had(r, voted(abstain))}}, {0, []entry{had(w, voted(prepared))}},
			{0, []entry{had(r, took(0, true))}},
		}, []uint64{6}, []uint64{5}},
		{"a decision counts, of whatever view", 3,
			[]record{{1, []entry{had(w, ended(aborted, store.Locked))}}, {2, []entry{had(w, voted(prepared))}}},
			nil, []uint64{5}},
		{"a commit counts more than an abort for being old", 3,
			[]record{{1, []entry{had(w, ended(aborted, store.Old))}}, {1, []entry{had(w, ended(committed, 0))}}},
			[]uint64{5}, nil},
		{"in any order", 3,
			[]record{{1, []entry{had(w, ended(committed, 0))}}, {1, []entry{had(w, ended(aborted, store.Old))}}},
			[]uint64{5}, nil},
		{"a server has each transaction once", 3,
			[]record{{0, []entry{had(w, voted(prepared)), had(w, voted(prepared))}}, {}}, nil, []uint64{5}},
	} {
		s, _ := newTestServer(t, tc.copies)
		s.change.got = map[protocol.ID]*gathers{}
		for i, r := range tc.had {
			s.change.got[s.group[i]] = &gathers{normal: r.normal, pieces: map[uint32][]entry{0: r.all}, of: 1}
		}
		var yes, no []uint64
		for _, e := range s.merge() {
			if e.End == undecided && e.Accepted == (ballot{}) {
				t.Errorf("%s: %v has no result", tc.name, e.ID)
			}
			if e.End == committed || e.End == undecided && e.Yes {
				yes = append(yes, e.ID.Time)
			} else {
				no = append(no, e.ID.Time)
			}
		}
		if !slices.Equal(yes, tc.yes) || !slices.Equal(no, tc.no) {
			t.Errorf("%s: yes to %v and no to %v, want %v and %v", tc.name, yes, no, tc.yes, tc.no)
		}
	}
}

// TestPieces sends a record larger than a message may be in pieces, which come in any order and
// twice.
func TestPieces(t *testing.T) {
	var all []entry
	for i := range uint64(40) {
		w := writing(i+1, "k")
		w.Writes[0].Bytes = make([]byte, 200<<10)
		all = append(all, had(w, voted(prepared)))
	}
	pieces := cut(all)
	var g gathers
	for _, p := range slices.Backward(pieces) {
		size := 0
		for _, e := range p.Entries {
			size += store.ContentBytes(e.Part.Reads, e.Part.Writes)
		}
		if size > pieceBytes || len(p.Entries) == 0 {
			t.Errorf("a piece has %d transactions of %d bytes", len(p.Entries), size)
		}
		if whole := g.add(p); whole != (p.N == 0) {
			t.Errorf("whole is %v with piece %d of %d, backward", whole, p.N, p.Of)
		}
		g.add(p)
	}
	if got := g.record(); len(pieces) < 8 || !slices.EqualFunc(got, all, func(a, b entry) bool { return a.ID == b.ID }) {
		t.Errorf("%d transactions in %d pieces, want %d in 8 at least", len(got), len(pieces), len(all))
	}
	if none := cut(nil); len(none) != 1 || !new(gathers).add(none[0]) {
		t.Errorf("an empty record has %d pieces", len(none))
	}
	for _, bad := range []piece{{N: 1, Of: 1}, {N: 0, Of: 0}, {N: 0, Of: maxPieces + 1}} {
		if new(gathers).add(bad) {
			t.Errorf("piece %d of %d makes a record whole", bad.N, bad.Of)
		}
	}
}

// sent returns what an env has to send of a kind.
func sent[M store.Message](env *protocol.Env[store.Message]) (out []M) {
	for _, e := range env.Out {
		if m, ok := e.Msg.(M); ok && e.Kind == protocol.KindSend {
			out = append(out, m)
		}
	}
	return out
}

// TestChange has a server tell nobody that it has carried out a decision while its view changes,
// and neither vote nor accept: the leader of the next view has its record already.
func TestChange(t *testing.T) {
	s, env := newTestServer(t, 3)
	const coordinator, leader = protocol.ID(10), protocol.ID(21)
	w := writing(5, "k")
	ask := propose{ID: w.ID, Shards: []uint32{0}, Ballot: ballot{By: 9}, Has: true, Part: w}
	s.Receive(env, coordinator, ask)
	s.Receive(env, leader, viewChange{View: 1})
	if got := sent[doView](env); len(got) != 1 || len(got[0].Piece.Entries) != 1 {
		t.Fatalf("the leader is given %+v", got)
	}
	env.Begin(1100)
	s.Receive(env, coordinator, ask)
	s.Receive(env, coordinator, accept{ID: w.ID, Shards: ask.Shards, View: 1, Ballot: ask.Ballot, Yes: true})
	s.Receive(env, coordinator, decide{ID: w.ID, Shards: ask.Shards, Commit: true, Has: true, Part: w})
	if len(sent[answer](env))+len(sent[confirm](env))+len(sent[carried](env)) > 0 {
		t.Errorf("while the view changes, it says %+v", env.Out)
	}
	env.Begin(1200)
	s.Receive(env, leader, startView{View: 1, Members: []protocol.ID{21, 31}, Piece: piece{Of: 1}})
	if s.takesPart() {
		t.Error("it takes part in a view that it is no member of")
	}
	s.Receive(env, leader, startView{View: 1, Members: []protocol.ID{11, 21}, Piece: piece{Of: 1}})
	s.Receive(env, coordinator, decide{ID: w.ID, Shards: ask.Shards, Commit: true, Has: true, Part: w})
	if got := sent[carried](env); !s.takesPart() || len(got) != 1 || got[0].View != 1 {
		t.Errorf("in the view, it says %+v", got)
	}
}

// TestLeaderWaits has the leader of a view wait for the records of all before it begins the view
// without some, and who comes late have it begin another one.
func TestLeaderWaits(t *testing.T) {
	s, env := newTestServer(t, 3)
	s.Receive(env, 21, viewChange{View: 3})
	s.Receive(env, 21, doView{View: 3, Piece: piece{Of: 1}})
	if s.takesPart() {
		t.Fatal("it begins without the third server at once")
	}
	s.Expire(env, ripeTimer{3})
	got := sent[startView](env)
	if !s.takesPart() || len(got) != 1 || !slices.Equal(got[0].Members, []protocol.ID{11, 21}) {
		t.Fatalf("when it has waited, it begins with %+v", got)
	}
	env.Begin(1100)
	s.Receive(env, 21, doView{View: 3, Piece: piece{Of: 1}})
	if got := sent[startView](env); len(got) != 1 {
		t.Errorf("a member that has not heard of it is told %+v", got)
	}
	s.Receive(env, 31, doView{View: 3, Piece: piece{Of: 1}})
	if s.view != 4 || s.takesPart() {
		t.Errorf("one that comes late has it in view %d, taking part: %v", s.view, s.takesPart())
	}
}

// TestSync has a server take over a record: what is accepted with a yes holds, what it voted for
// besides does not, and what is not on it is forgotten.
func TestSync(t *testing.T) {
	s, env := newTestServer(t, 3)
	struck, no, yes := writing(5, "a"), writing(6, "b"), writing(7, "c")
	for _, w := range []store.Txn{struck, no} {
		s.Receive(env, 10, propose{ID: w.ID, Shards: []uint32{0}, Ballot: ballot{By: 9}, Has: true, Part: w})
	}
	s.Receive(env, 21, viewChange{View: 1})
	s.Receive(env, 21, startView{View: 1, Members: s.group, Piece: piece{Of: 1, Entries: []entry{
		had(no, took(1, false)), had(yes, took(1, true)),
	}}})
	held := func(w store.Txn) bool { return s.txns[w.ID] != nil && s.txns[w.ID].holds() }
	if s.txns[struck.ID] != nil || s.txns[no.ID] == nil || held(no) || !held(yes) {
		t.Errorf("it has %+v", s.txns)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}
