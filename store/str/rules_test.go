package str

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storedeploy"
)

// alone is a node of which a test is all others. It never hears of an end of a call, so that it has
// on disk what it has written.
type alone struct {
	t   *testing.T
	env *protocol.Env[store.Message]
	l   store.Layout
	had int // of what it has sent
}

// newAlone returns what calls a node in: the second of two shards has no copy at site a, which is
// that of coordinator 10 and server 11.
func newAlone(t *testing.T) *alone {
	t.Helper()
	l := storedeploy.CopiesAt(storedeploy.Layout(4, 2), [][]int{{0, 1, 2}, {1, 2, 3}})
	return &alone{t: t, env: protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(1, 1))), l: l}
}

// said returns what the node has sent since the last time, but for what groups say.
func (a *alone) said() (out []store.Message) {
	for _, e := range a.env.Out[a.had:] {
		if _, ok := e.Msg.(grouped); !ok && e.Kind == protocol.KindSend {
			out = append(out, e.Msg)
		}
	}
	a.had = len(a.env.Out)
	return out
}

// key returns a key of a shard.
func (a *alone) key(shard int, name string) store.Key {
	for i := 0; ; i++ {
		if k := store.Key(fmt.Sprint(name, i)); a.l.ShardOf(k) == shard {
			return k
		}
	}
}

func only[M store.Message](said []store.Message) (out []M) {
	for _, m := range said {
		if m, ok := m.(M); ok {
			out = append(out, m)
		}
	}
	return out
}

// soloCoordinator is coordinator 10, in mode internal.
type soloCoordinator struct {
	*alone
	*coordinator
}

func newSoloCoordinator(t *testing.T) *soloCoordinator {
	t.Helper()
	a := newAlone(t)
	c, err := newCoordinator(store.Config{ID: 10, Layout: a.l, RoundTrip: 100 * time.Millisecond}, modes()[0])
	if err != nil {
		t.Fatal(err)
	}
	c.Start(a.env, nil)
	return &soloCoordinator{a, c}
}

func txnID(n uint64) store.TxnID { return store.TxnID{Time: n, Client: store.ClientID(n)} }

// begins has a transaction begin at a time, which is its snapshot and its name, and read a key.
func (c *soloCoordinator) begins(at uint64, key store.Key) []store.Message {
	c.env.Now = max(c.env.Now, time.Duration(at))
	c.Receive(c.env, protocol.ID(200+at), store.DeclareRequest{ID: txnID(at), Reads: []store.Key{key}, Step: 1})
	if t := c.txns[txnID(at)]; t == nil || t.at != clock.Stamp(at) {
		c.t.Fatalf("%d has not begun: %+v", at, t)
	}
	return c.said()
}

// reads has it read another key, in its second step.
func (c *soloCoordinator) reads(at uint64, key store.Key) []store.Message {
	c.Receive(c.env, protocol.ID(200+at), store.DeclareRequest{ID: txnID(at), Reads: []store.Key{key}, Step: 2, At: at})
	return c.said()
}

// commits has it write keys, and server 11 certify it.
func (c *soloCoordinator) commits(at uint64, stamp clock.Stamp, keys ...store.Key) []store.Message {
	return c.asks(at, stamp, store.CommitRequest{Txn: writesOf(at, keys...)})
}

// writesOf returns a transaction that writes keys.
func writesOf(at uint64, keys ...store.Key) store.Txn {
	slices.Sort(keys)
	txn := store.Txn{ID: txnID(at)}
	for _, k := range keys {
		txn.Writes = append(txn.Writes, store.Write{Key: k, Bytes: fmt.Append(nil, at)})
	}
	return txn
}

// asks has its client ask for the commit, and server 11 certify it.
func (c *soloCoordinator) asks(at uint64, stamp clock.Stamp, m store.CommitRequest) []store.Message {
	c.Receive(c.env, protocol.ID(200+at), m)
	if len(only[certify](c.said())) == 1 {
		c.Receive(c.env, 11, certified{Shard: 0, ID: m.Txn.ID, Stamp: stamp})
	}
	return c.said()
}

func (c *soloCoordinator) local(t *testing.T, at uint64) clock.Stamp {
	t.Helper()
	x := c.txns[txnID(at)]
	if x == nil || x.stage != locally {
		t.Fatalf("%d is not committed locally: %+v", at, x)
	}
	return x.local
}

// values returns what clients are told that they have read.
func values(said []store.Message) (out []string) {
	for _, m := range only[store.DeclareReply](said) {
		for _, v := range m.Values {
			out = append(out, string(v.Value.Bytes))
		}
	}
	return out
}

func expectValues(t *testing.T, said []store.Message, want ...string) {
	t.Helper()
	if got := values(said); !slices.Equal(got, want) {
		t.Errorf("read %q, want %q, of %+v", got, want, said)
	}
}

// TestReadsElsewhereAreNoted is S4's counterexample: a snapshot has read a remote key, and must not
// see half of who writes that and a key of the site's.
func TestReadsElsewhereAreNoted(t *testing.T) {
	c := newSoloCoordinator(t)
	remote, near := c.key(1, "k"), c.key(0, "m")
	c.begins(6, near)
	asked := only[readAt](c.begins(20, remote))
	if len(asked) == 0 {
		t.Fatalf("a remote key is not asked for: %+v", asked)
	}
	c.Receive(c.env, c.reads1(asked[0].Ref), found{Ref: asked[0].Ref})
	expectValues(t, c.said(), "")
	c.commits(6, 7, remote, near)
	if at := c.local(t, 6); at <= 20 {
		t.Errorf("it is committed locally at %v, and was not seen as of 20", at)
	}
	expectValues(t, c.reads(20, near))
}

// reads1 returns whom a read was sent to.
func (c *soloCoordinator) reads1(ref uint64) protocol.ID { return c.coordinator.reads[ref].to }

// TestConflictAcrossReads is S3's counterexample: who has read by way of another one what is final
// since does not read what may conflict with that; and what does is refused at once, if the other
// one was of this coordinator.
func TestConflictAcrossReads(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprint("late=", late), func(t *testing.T) {
			c := newSoloCoordinator(t)
			k, a, b, m := c.key(1, "k"), c.key(0, "a"), c.key(0, "b"), c.key(0, "m")
			c.begins(5, a)
			c.begins(7, m)
			c.begins(8, m)
			c.commits(5, 6, k, a)
			expectValues(t, c.begins(10, a), "5")
			c.commits(10, 11, b)
			if late {
				c.commit(c.env, c.txns[txnID(5)], 9)
			}
			expectValues(t, c.begins(20, b), "10")
			if !late {
				c.commit(c.env, c.txns[txnID(5)], 9)
			}
			c.commits(8, 9, k)
			if x := c.txns[txnID(8)]; x.stage != over || x.reason != store.StaleWrite {
				t.Errorf("it writes what its snapshot lacks a version of, and is in stage %d: %v", x.stage, x.reason)
			}
			c.commits(7, 8, c.key(1, "z"), m)
			c.local(t, 7)
			expectValues(t, c.reads(20, m))
			c.abort(c.env, c.txns[txnID(7)], store.StaleWrite)
			if c.txns[txnID(20)].stage != over {
				t.Error("it has read what is aborted, and goes on")
			}
		})
	}
}

// TestStackedWrites has a transaction be certified on top of one that it has not read, and that
// turns out to be later than its snapshot (S8).
func TestStackedWrites(t *testing.T) {
	c := newSoloCoordinator(t)
	a := c.key(0, "a")
	c.begins(5, c.key(0, "b"))
	c.commits(5, 6, a)
	c.begins(10, c.key(0, "c"))
	c.commits(10, 11, a)
	c.local(t, 10)
	c.commit(c.env, c.txns[txnID(5)], 12)
	if x := c.txns[txnID(10)]; x.stage != over || x.reason != store.StaleRead {
		t.Errorf("it stands on what is later than its snapshot, and is in stage %d: %v", x.stage, x.reason)
	}
}

// TestBoundOfDependents has what depends on a local commit be read no longer than that: behind the
// bound nobody would see the one, and all the other.
func TestBoundOfDependents(t *testing.T) {
	c := newSoloCoordinator(t)
	a, b := c.key(0, "a"), c.key(0, "b")
	c.begins(5, b)
	c.commits(5, 6, a)
	end := uint64(c.txns[txnID(5)].bound)
	expectValues(t, c.begins(end-10, a), "5")
	c.commits(end-10, clock.Stamp(end-9), b)
	expectValues(t, c.begins(end, b), fmt.Sprint(end-10))
	expectValues(t, c.begins(end+1, b))
}

// TestOwnCommits has a coordinator refuse what its own latest commit has overtaken, whatever the
// servers of its site know of that (S3).
func TestOwnCommits(t *testing.T) {
	c := newSoloCoordinator(t)
	a, b := c.key(0, "a"), c.key(0, "b")
	c.begins(5, b)
	c.begins(7, b)
	c.commits(5, 6, a)
	c.commit(c.env, c.txns[txnID(5)], 9)
	c.said()
	c.commits(7, 8, a)
	if x := c.txns[txnID(7)]; x.stage != over || x.reason != store.StaleWrite {
		t.Errorf("it is in stage %d: %v", x.stage, x.reason)
	}
}

// TestSessionSnapshots has a snapshot not be below what its session has seen (S12).
func TestSessionSnapshots(t *testing.T) {
	c := newSoloCoordinator(t)
	c.env.Now = 10
	c.Receive(c.env, 200, store.DeclareRequest{ID: txnID(1), Reads: []store.Key{"k"}, Step: 1, NotBefore: 30})
	if x := c.txns[txnID(1)]; x == nil || x.at != 30 {
		t.Errorf("it has begun as %+v, want it at 30", x)
	}
}

// TestBeginsAnew gives a coordinator that was started again what goes on with a transaction of
// before.
func TestBeginsAnew(t *testing.T) {
	c := newSoloCoordinator(t)
	a := c.key(0, "a")
	for _, m := range []store.DeclareRequest{{Step: 2, At: 5}, {Step: 1, At: 5}, {Step: 2}} {
		m.ID, m.Reads = txnID(5), []store.Key{a}
		c.Receive(c.env, 200, m)
		if c.txns[m.ID] != nil {
			t.Errorf("%+v has begun a transaction", m)
		}
	}
	c.begins(7, a)
	c.Receive(c.env, 207, store.DeclareRequest{ID: txnID(7), Reads: []store.Key{a}, Step: 2, At: 6})
	if len(c.txns[txnID(7)].steps) != 1 {
		t.Error("it goes on as of another snapshot")
	}
	txn := store.Txn{ID: txnID(7), Reads: []store.Read{{Key: a, Version: store.Version{Time: 3, Client: 3}}},
		Writes: []store.Write{{Key: a}}}
	c.Receive(c.env, 207, store.CommitRequest{Txn: txn})
	if d := only[store.Decided](c.said()); len(d) != 1 || d[0].Reason != store.StaleRead {
		t.Errorf("what it has not read here: %+v", d)
	}
}

// soloServer is server 11.
type soloServer struct {
	*alone
	*server
}

func newSoloServer(t *testing.T) *soloServer {
	t.Helper()
	return newSoloServerOf(t, modes()[0])
}

func newSoloServerOf(t *testing.T, mode variant) *soloServer {
	t.Helper()
	a := newAlone(t)
	s, err := newServer(store.Config{ID: 11, Layout: a.l, RoundTrip: 100 * time.Millisecond}, mode)
	if err != nil {
		t.Fatal(err)
	}
	a.env.Now = time.Second
	s.Start(a.env, nil)
	s.reads.Recorded(clock.Stamp(time.Hour))
	return &soloServer{a, s}
}

// part is what a transaction writes, a key.
func (s *soloServer) part(n uint64, key store.Key) part {
	return part{ID: txnID(n), At: clock.Stamp(n), Local: clock.Stamp(n + 1), Origin: 20, Shards: []uint32{0},
		Writes: []store.Write{{Key: key, Bytes: fmt.Append(nil, n)}}, Readers: []protocol.ID{11, 21, 31}}
}

// certifies asks for the word of a coordinator's site.
func (s *soloServer) certifies(n uint64, key store.Key, over ...store.TxnID) []certified {
	s.Receive(s.env, 10, certify{Shard: 0, ID: txnID(n), At: clock.Stamp(n), Keys: []store.Key{key}, Over: over})
	return only[certified](s.said())
}

// TestWaitsGoToSmallerSnapshots has a transaction wait for one with a smaller snapshot only (S7).
func TestWaitsGoToSmallerSnapshots(t *testing.T) {
	s := newSoloServer(t)
	a := s.key(0, "a")
	if got := s.certifies(100, a); len(got) != 1 || got[0].Stamp <= 100 {
		t.Fatalf("the first is certified so: %+v", got)
	}
	if got := s.certifies(50, a); len(got) != 1 || got[0].Reason != store.Locked {
		t.Errorf("one with a smaller snapshot: %+v", got)
	}
	late := uint64(s.held[txnID(100)].stamp) + 100
	if got := s.certifies(late, a); len(got) != 1 || got[0].Reason != store.NoReason || got[0].Stamp != 0 {
		t.Errorf("one with a larger snapshot: %+v", got)
	}
	s.Receive(s.env, 10, release{Shard: 0, ID: txnID(100)})
	if got := only[certified](s.said()); len(got) != 1 || got[0].ID != txnID(late) || got[0].Stamp == 0 {
		t.Errorf("the other one is gone: %+v", got)
	}
}

// TestReadsWait has a read wait for who may be in its snapshot, and look again when that is known
// (S9).
func TestReadsWait(t *testing.T) {
	for _, test := range []struct {
		commit bool
		at     clock.Stamp
		want   string
	}{{true, 3000, "2000"}, {true, 6000, ""}, {false, 0, ""}} {
		s := newSoloServer(t)
		a := s.key(0, "a")
		s.noted = 0
		s.isLogged(s.env, raft.Position{Index: 1, Term: 1}, s.part(2000, a))
		if h := s.held[txnID(2000)]; h.stamp > 5000 {
			t.Fatalf("it is stamped %v", h.stamp)
		}
		s.said()
		s.answer(s.env, 10, readAt{Ref: 7, Key: a, At: 5000})
		if got := s.said(); len(got) > 0 {
			t.Errorf("a read does not wait: %+v", got)
		}
		s.Receive(s.env, 20, outcome{Shard: 0, ID: txnID(2000), Commit: test.commit, At: test.at})
		if got := only[found](s.said()); len(got) != 1 || string(got[0].Value.Bytes) != test.want {
			t.Errorf("commit %v at %v: the read has %+v", test.commit, test.at, got)
		}
	}
}

// TestDisplaced has a transaction be prepared in place of one that is certified at the site: nobody
// gets a word of it before the site's coordinator has let go (S10).
func TestDisplaced(t *testing.T) {
	s := newSoloServer(t)
	a := s.key(0, "a")
	s.certifies(100, a)
	s.isLogged(s.env, raft.Position{Index: 1, Term: 1}, s.part(200, a))
	said := s.said()
	if d, w := only[displaced](said), only[word](said); len(d) != 1 || d[0].ID != txnID(100) || len(w) > 0 {
		t.Errorf("said %+v", said)
	}
	s.Receive(s.env, 20, wordWanted{Shard: 0, ID: txnID(200)})
	if w := only[word](s.said()); len(w) > 0 {
		t.Errorf("who asks gets %+v", w)
	}
	s.Receive(s.env, 10, release{Shard: 0, ID: txnID(100)})
	if w := only[word](s.said()); len(w) != 1 || w[0].ID != txnID(200) {
		t.Errorf("once it is let go: %+v", w)
	}
	stamp := s.held[txnID(100)].stamp
	s.noted += 1000
	s.isLogged(s.env, raft.Position{Index: 2, Term: 1}, s.part(100, a))
	if h := s.held[txnID(100)]; h.stamp != stamp {
		t.Errorf("it is prepared all the same, and stamped %v, want %v", h.stamp, stamp)
	}
}

// TestOverwritten has the word that went along with a transaction stand when its entry is
// overwritten, until the group has refused it.
func TestOverwritten(t *testing.T) {
	s := newSoloServer(t)
	a := s.key(0, "a")
	stamp := s.certifies(100, a)[0].Stamp
	p := s.part(100, a)
	p.Origin = 10
	s.isLogged(s.env, raft.Position{Index: 1, Term: 1}, p)
	s.applied(s.env, raft.Position{Index: 1, Term: 2})
	s.noted += 1000
	s.isLogged(s.env, raft.Position{Index: 2, Term: 2}, p)
	if h := s.held[txnID(100)]; h.stamp != stamp {
		t.Errorf("it is stamped %v, want %v", h.stamp, stamp)
	}
}

// TestServesAgain has a member that counts as a reader again not show what commits without it: it
// may be in any later snapshot than its own.
func TestServesAgain(t *testing.T) {
	s := newSoloServer(t)
	a := s.key(0, "a")
	s.noted = 5000
	s.isLogged(s.env, raft.Position{Index: 1, Term: 1}, s.part(200, a))
	h := s.held[txnID(200)]
	if s.servesAgain(s.env); h.stamp <= 201 || h.shownFrom() != 201 {
		t.Errorf("it is stamped %v, and shown from %v", h.stamp, h.shownFrom())
	}
}

// TestClocks has commits be above the clocks of all replicas in mode clocksi-rep.
func TestClocks(t *testing.T) {
	for i, want := range []clock.Stamp{101, clock.Stamp(time.Second) + 1} {
		s := newSoloServerOf(t, modes()[i])
		if got := s.certifies(100, s.key(0, "a")); len(got) != 1 || got[0].Stamp != want {
			t.Errorf("mode %s certifies so: %+v, want %v", modes()[i].name, got, want)
		}
	}
}

// TestSameTimestamp has who finishes a transaction find its coordinator's timestamp when all of the
// coordinator's site is gone (S20).
func TestSameTimestamp(t *testing.T) {
	at := raft.Position{Index: 3, Term: 1}
	readers := []protocol.ID{11, 21, 31}
	w := &words{of: map[protocol.ID]word{}}
	lead := word{At: at, Stamp: 40, Readers: readers, Members: readers, Serving: readers}
	w.add(21, lead)
	w.add(31, word{At: at, Stamp: 50, Readers: readers})
	if _, _, ok := w.stamp(); ok {
		t.Error("a commit without the word of one that serves reads")
	}
	if _, ok := w.rescueStamp(nil); ok {
		t.Error("it is finished without that word")
	}
	got, ok := w.rescueStamp([]sureWord{{11, 60}})
	w.add(11, word{At: at, Stamp: 60, Readers: readers})
	if want, certain, all := w.stamp(); !ok || !all || !certain || got != want {
		t.Errorf("it is finished at %v, and its coordinator has %v", got, want)
	}
	w.add(11, word{At: raft.Position{Index: 3, Term: 2}, Stamp: 60})
	if _, _, ok := w.stamp(); ok {
		t.Error("a word of another entry counts")
	}
}

// TestDroppedReader has a commit without a reader that is dropped come above what it may have
// served (S19), and have the first shard agree.
func TestDroppedReader(t *testing.T) {
	at := raft.Position{Index: 3, Term: 1}
	w := &words{of: map[protocol.ID]word{}}
	all, left := []protocol.ID{11, 21, 31}, []protocol.ID{21, 31}
	w.add(21, word{At: at, Stamp: 40, Readers: all, Members: all, Serving: left, Past: 90})
	w.add(31, word{At: at, Stamp: 50, Readers: all})
	if stamp, certain, ok := w.stamp(); !ok || certain || stamp != 91 {
		t.Errorf("stamped %v, certain %v, %v", stamp, certain, ok)
	}
	if _, ok := w.rescueStamp(nil); ok {
		t.Error("who does not know what its coordinator has finishes it")
	}
}

// TestClientNotices has a client give up a transaction that goes on as of another snapshot.
func TestClientNotices(t *testing.T) {
	a := newAlone(t)
	c, err := newClient(store.Config{ID: 200, Layout: a.l, RoundTrip: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	c.Start(a.env, nil)
	k, l := a.key(0, "k"), a.key(0, "l")
	c.take(a.env, store.Declare{Ref: 1, Reads: []store.Key{k}})
	asked := only[store.DeclareRequest](a.said())
	if len(asked) != 1 || asked[0].At != 0 {
		t.Fatalf("it begins so: %+v", asked)
	}
	id := asked[0].ID
	c.Receive(a.env, 10, store.DeclareReply{ID: id, Step: 1, At: 50, Values: make([]store.Held, 1)})
	c.take(a.env, store.Declare{Ref: 2, Begun: 1, Reads: []store.Key{l}})
	if asked := only[store.DeclareRequest](a.said()); len(asked) != 1 || asked[0].At != 50 || asked[0].Step != 2 {
		t.Errorf("it goes on so: %+v", asked)
	}
	c.Receive(a.env, 10, store.DeclareReply{ID: id, Step: 2, At: 60, Values: make([]store.Held, 1)})
	said := a.said()
	got := only[store.Declared](said)
	if len(got) != 1 || got[0].OK || len(only[store.AbandonRequest](said)) != 1 {
		t.Errorf("as of another snapshot: %+v", said)
	}
}

// TestStackedEnds has a leader propose what is certified on top of another one before the end of
// that, or behind it, and not between its proposal and what that does.
func TestStackedEnds(t *testing.T) {
	s := newSoloServer(t)
	a := s.key(0, "a")
	s.isLogged(s.env, raft.Position{Index: 1, Term: 1}, s.part(2000, a))
	second := wanted{id: txnID(9000), at: 9000, keys: []store.Key{a}, over: []store.TxnID{txnID(2000)}, log: true}
	if why, waits := s.judge(s.env, second); why != store.NoReason || waits {
		t.Errorf("on top of what is in the log: %v, waits: %v", why, waits)
	}
	s.proposed[txnID(2000)] = true
	if why, waits := s.judge(s.env, second); why != store.NoReason || !waits {
		t.Errorf("the other one's end is proposed: %v, waits: %v", why, waits)
	}
}

// TestAdmittedReaders has a leader count on who is admitted by an entry before its own, but for
// those that are to leave, also if an earlier one is carried out meanwhile.
func TestAdmittedReaders(t *testing.T) {
	s := newSoloServer(t)
	all := []protocol.ID{11, 21, 31}
	s.state.books.deaf, s.state.books.leaving = []protocol.ID{21, 31}, []protocol.ID{31}
	s.isToServe(reader{Server: 21, Serves: true}, 5)
	s.isToServe(reader{Server: 31, Serves: true}, 6)
	s.isToServe(reader{Server: 21, Serves: true}, 7)
	s.serves(reader{Server: 21, Serves: true}, 5)
	if got := s.readers(all); !slices.Equal(got, []protocol.ID{11, 21}) {
		t.Errorf("%v serve reads", got)
	}
	s.isToServe(reader{Server: 31, Serves: true, Leaves: true}, 8) // its move is taken back
	s.serves(reader{Server: 21, Serves: true}, 7)
	if got := s.readers(all); !slices.Equal(got, []protocol.ID{11, 31}) {
		t.Errorf("%v serve reads", got)
	}
}

// TestLeftOut has a part that comes behind the end of a reader in the log need no word of it, and
// be above what it may have served. A part before that in the log needs its word, as long as the
// floor is not there (S19, seed 43226).
func TestLeftOut(t *testing.T) {
	s := newSoloServer(t)
	all := []protocol.ID{11, 21, 31}
	s.ceiling = 90
	if got := s.pastAtEnd(s.env); got != 0 {
		t.Errorf("the floor is %v", got)
	}
	s.isToServe(reader{Server: 31}, 5)
	if got, floor := s.readers(all), s.pastAtEnd(s.env); !slices.Equal(got, []protocol.ID{11, 21}) || floor != 90 {
		t.Errorf("what comes then is to be read by %v, above %v", got, floor)
	}
	if got := s.serving(all); !slices.Equal(got, all) {
		t.Errorf("only %v serve reads", got)
	}
	s.isToServe(reader{Server: 31, Serves: true}, 6)
	if got := s.readers(all); !slices.Equal(got, all) {
		t.Errorf("it is admitted again, and what comes then is to be read by %v", got)
	}
}

// TestNoReaders has a commit be above what was served before, where nobody serves reads any more.
func TestNoReaders(t *testing.T) {
	at := raft.Position{Index: 3, Term: 2}
	w := &words{of: map[protocol.ID]word{}}
	w.add(11, word{At: at, Stamp: 40, Above: 90, Members: []protocol.ID{11}})
	if stamp, certain, ok := w.stamp(); stamp != 91 || !certain || !ok {
		t.Errorf("the commit is at %v, certain %v, %v; want 91", stamp, certain, ok)
	}
	if stamp, ok := w.rescueStamp(nil); stamp != 91 || !ok {
		t.Errorf("who finishes it commits at %v, %v; want 91", stamp, ok)
	}
}

// TestForgottenTentative has what was certified at the site, and is given up there, be overtaken
// by no commit that its coordinator was told would wait for it.
func TestForgottenTentative(t *testing.T) {
	s := newSoloServer(t)
	a := s.key(0, "a")
	s.Receive(s.env, 10, certify{Shard: 0, ID: txnID(100), At: 100, Keys: []store.Key{a}})
	said := only[certified](s.said())
	if len(said) != 1 || said[0].Until != clock.Stamp(time.Hour) {
		t.Fatalf("it is vouched for so: %+v", said)
	}
	s.env.Now += 25 * s.cfg.RoundTrip
	s.sweep(s.env)
	if s.held[txnID(100)] == nil {
		t.Error("it is dropped before the group has refused it")
	}
	s.isOver(s.env, txnID(100), result{State: aborted, Reason: store.Fenced})
	if got := s.certifies(200, a); len(got) != 1 || got[0].Stamp <= said[0].Until {
		t.Errorf("another one is certified so: %+v", got)
	}
}
