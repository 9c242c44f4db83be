package tapir

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storedeploy"
	"github.com/foresay/foresay/store/storetest"
)

// A machine is a server with its disk, for tests that talk to it.
type machine struct {
	t   *testing.T
	cfg store.Config
	*server
	disk storetest.KeySpace
	env  *protocol.Env[store.Message]
}

// clock is what machines' clocks show at first.
const clock = time.Hour

// newMachine returns the first server of a shard with three copies. It is started, and admitted.
func newMachine(t *testing.T) *machine { return newMachineOf(t, 3) }

// newMachineOf is newMachine with so many copies.
func newMachineOf(t *testing.T, copies int) *machine {
	m := &machine{t: t, cfg: store.Config{ID: 11, Layout: storedeploy.Layout(copies, 1)}, disk: storetest.KeySpace{}}
	m.restart(clock)
	for _, id := range m.group[1:] {
		m.tell(id, welcome{Disk: m.self.Disk})
	}
	return m
}

// restart has the server start on what is on its disk.
func (m *machine) restart(now time.Duration) {
	m.t.Helper()
	var err error
	if m.server, err = newServer(m.cfg); err != nil {
		m.t.Fatal(err)
	}
	m.env = protocol.NewEnv[store.Message](m.disk, 1, rand.New(rand.NewPCG(1, 1)))
	m.env.Begin(now)
	m.Start(m.env, nil)
	m.write()
}

// tell has a message come, and tells what the server has on disk then.
func (m *machine) tell(from protocol.ID, msg store.Message) {
	m.t.Helper()
	m.env.Begin(m.env.Now)
	m.Receive(m.env, from, msg)
	m.write()
}

func (m *machine) write() {
	m.t.Helper()
	for _, e := range m.env.Out {
		switch e.Kind {
		case protocol.KindPut:
			m.disk[string(e.Key)] = slices.Clone(e.Value)
		case protocol.KindDelete:
			delete(m.disk, string(e.Key))
		}
	}
	if err := m.Check(); err != nil {
		m.t.Error(err)
	}
}

// propose has the coordinator of the first site ask for a vote.
func (m *machine) propose(t store.Txn, b ballot) answer {
	m.t.Helper()
	m.tell(10, propose{ID: t.ID, Shards: []uint32{0}, Ballot: b, Has: true, Part: t})
	got := sent[answer](m.env)
	if len(got) != 1 {
		m.t.Fatalf("to a Prepare, the server says %+v", m.env.Out)
	}
	return got[0]
}

func (m *machine) commit(t store.Txn) {
	m.t.Helper()
	m.tell(10, decide{ID: t.ID, Shards: []uint32{0}, Commit: true, Has: true, Part: t})
}

// join has the machine and another server begin a view after a restart.
func (m *machine) join(all ...entry) {
	m.t.Helper()
	for m.leader(m.view) == m.cfg.ID {
		m.tell(21, viewChange{m.view + 1})
	}
	m.tell(m.leader(m.view), startView{m.view, m.group, piece{Of: 1, Entries: all}})
	if !m.takesPart() {
		m.t.Fatal("it does not take part")
	}
}

// soon is a transaction's time at which it is neither old nor ahead.
const soon = uint64(clock + time.Second)

// TestServer has a server vote once, and keep to the latest ballot that it has heard of.
func TestServer(t *testing.T) {
	m := newMachine(t)
	first, second := ballot{By: 9}, ballot{Round: 1, By: 5}
	r, w := reading(soon, "k"), writing(soon-1, "k")
	if a := m.propose(r, first); a.Vote != prepared || a.VotedAt != first {
		t.Fatalf("the first one is answered %+v", a)
	}
	if a := m.propose(w, first); a.Vote != abstain {
		t.Fatalf("what conflicts is answered %+v", a)
	}
	m.tell(10, decide{ID: r.ID, Shards: []uint32{0}, Reason: store.Locked})
	if a := m.propose(w, second); a.Vote != abstain || a.Promised != second {
		t.Errorf("when it is asked again, with nothing in the way, it says %+v", a)
	}
	if a := m.propose(w, first); a.Promised != second {
		t.Errorf("an earlier ballot is promised: %+v", a)
	}
	take := func(b ballot, v viewNumber) int {
		m.tell(10, accept{ID: w.ID, Shards: []uint32{0}, View: v, Ballot: b})
		return len(sent[confirm](m.env))
	}
	if take(first, 0) != 0 {
		t.Error("a result of an earlier ballot is accepted")
	}
	if take(second, 1) != 0 {
		t.Error("a result of another view is accepted")
	}
	if take(second, 0) != 1 {
		t.Error("a result is not accepted")
	}
	backward := reading(soon-2, "m")
	backward.Reads[0].Version = at(soon - 1)
	if a := m.propose(backward, first); a.Vote != retry || a.Hint != soon-1 {
		t.Errorf("what comes before what it has read is answered %+v", a)
	}
	ahead := writing(uint64(clock+m.cfg.MaxAhead+2*time.Minute), "l")
	if a := m.propose(ahead, first); a.Vote != refused || a.Reason != store.Ahead {
		t.Errorf("what is far ahead is answered %+v", a)
	}
}

// TestHint has a client whose clock is far behind read, and then choose a timestamp that servers
// vote for.
func TestHint(t *testing.T) {
	m := newMachine(t)
	m.env.Begin(clock)
	m.retain(m.env)
	m.write()
	m.tell(200, store.ReadRequest{Ref: 1, Key: "k"})
	got := sent[store.ReadReply](m.env)
	if len(got) != 1 {
		t.Fatalf("it says %+v", m.env.Out)
	}
	if a := m.propose(writing(got[0].Hint+1, "k"), ballot{By: 9}); a.Vote != prepared {
		t.Errorf("with a timestamp above the hint, it says %+v", a)
	}
	if a := m.propose(writing(1, "k"), ballot{By: 9}); a.Vote != refused || a.Reason != store.Old {
		t.Errorf("with one far behind, it says %+v", a)
	}
}

// TestRestart has a server start again with what it has promised.
func TestRestart(t *testing.T) {
	m := newMachine(t)
	b := ballot{By: 9}
	w, r := writing(soon, "k"), reading(soon+5, "l")
	m.propose(w, b)
	m.tell(10, accept{ID: w.ID, Shards: []uint32{0}, Ballot: b, Yes: true})
	m.commit(r)
	m.join()
	view := m.view
	m.propose(w, b)
	m.tell(10, accept{ID: w.ID, Shards: []uint32{0}, View: view, Ballot: b, Yes: true})

	m.restart(clock)
	if m.view <= view || m.takesPart() {
		t.Errorf("it was in view %d, and is in %d, taking part: %v", view, m.view, m.takesPart())
	}
	if got := m.txns[w.ID]; got == nil || !got.holds() || got.accepted != b || !got.yes || !got.has {
		t.Fatalf("what it has accepted is %+v", got)
	}
	m.join(had(w, took(1, true)))
	if a := m.propose(writing(soon+1, "l"), b); a.Vote != retry || a.Hint != soon+5 {
		t.Errorf("a write below a read is answered %+v", a)
	}

	m.env.Begin(2 * clock)
	m.retain(m.env)
	m.write()
	m.restart(clock)
	m.join()
	if a := m.propose(writing(soon+9, "m"), b); a.Vote != refused || a.Reason != store.Old {
		t.Errorf("what it may have forgotten is answered %+v", a)
	}
}

// TestForgotten has a server asked about what it has carried out and forgotten: it does not vote
// for it, and nobody takes it that it was aborted.
func TestForgotten(t *testing.T) {
	m := newMachine(t)
	w := writing(soon, "k")
	m.propose(w, ballot{By: 9})
	m.commit(w)
	m.tell(10, done{ID: w.ID})
	m.env.Begin(2 * clock)
	m.retain(m.env)
	m.write()
	if len(m.txns) > 0 {
		t.Fatalf("it has %+v", m.txns)
	}
	m.tell(10, propose{ID: w.ID, Shards: []uint32{0}, Ballot: ballot{Round: 1, By: 9}})
	got := sent[answer](m.env)
	if len(got) != 1 || !got[0].Forgot || got[0].Vote != unvoted {
		t.Fatalf("it says %+v", got)
	}
	if a := m.propose(w, ballot{Round: 2, By: 9}); a.Vote != refused || a.Reason != store.Old {
		t.Errorf("when it is given the part, it says %+v", a)
	}
	c, err := newCoordinator(store.Config{ID: 10, Layout: m.cfg.Layout})
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
	env.Begin(0)
	c.Receive(env, 200, store.CommitRequest{Txn: w, Recover: true})
	for _, id := range []protocol.ID{11, 21} {
		a := got[0]
		a.Promised = c.entries[w.ID].ballot
		c.Receive(env, id, a)
	}
	c.Expire(env, stepTimer{w.ID})
	for _, id := range []protocol.ID{11, 21} {
		c.Receive(env, id, confirm{ID: w.ID, Ballot: c.entries[w.ID].ballot})
	}
	if told := sent[store.Decided](env); len(told) != 1 || told[0].Verdict != store.Unknown {
		t.Errorf("the client is told %+v", told)
	}
}

// TestStaleView has a coordinator tell a server that the group has a later view than its own.
func TestStaleView(t *testing.T) {
	c, err := newCoordinator(store.Config{ID: 10, Layout: storedeploy.Layout(3, 1)})
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
	env.Begin(0)
	w := writing(5, "k")
	c.Receive(env, 200, store.CommitRequest{Txn: w})
	for i, id := range []protocol.ID{11, 21, 31} {
		c.Receive(env, id, answer{ID: w.ID, View: viewNumber(2 - i/2), Promised: c.entries[w.ID].ballot, Vote: prepared,
			VotedAt: c.entries[w.ID].ballot})
	}
	if got := sent[viewChange](env); len(got) != 1 || got[0].View != 2 {
		t.Errorf("the server in view 1 is told %+v", got)
	}
	if len(sent[store.Decided](env)) > 0 {
		t.Error("answers of two views make a fast quorum")
	}
}

// TestCopy has a server that was away copy what another one holds, in pages.
func TestCopy(t *testing.T) {
	from, to := newMachine(t), newMachine(t)
	to.cfg.ID = 31
	const keys = 3*pageValues + 7
	for i := range uint64(keys) {
		from.commit(writing(soon+i, store.Key(fmt.Sprint("k", i))))
	}
	w := writing(soon+keys, "away")
	from.propose(w, ballot{By: 9})
	from.commit(w)
	from.tell(10, done{ID: w.ID, But: []protocol.ID{31}})
	from.env.Begin(from.env.Now)
	from.sweep(from.env)
	owed := sent[behind](from.env)
	if len(owed) != 1 || from.owed[31] != owed[0].Serial {
		t.Fatalf("it says %+v, and owes %v", owed, from.owed)
	}
	to.tell(21, owed[0])
	for pages := 0; ; pages++ {
		asked := sent[askPage](to.env)
		if len(asked) == 0 {
			break
		}
		from.tell(31, asked[0])
		to.tell(21, sent[page](from.env)[0])
	}
	for i := range uint64(keys) {
		if key := store.Key(fmt.Sprint("k", i)); values.At(to.disk, key).Version != at(soon+i) {
			t.Fatalf("%q is %+v", key, values.At(to.disk, key))
		}
	}
	end := sent[caughtUp](to.env)
	if len(end) != 1 || values.At(to.disk, "away").Version != w.ID {
		t.Fatalf("at the end it says %+v", to.env.Out)
	}
	from.tell(31, end[0])
	if len(from.owed) > 0 {
		t.Errorf("it owes %v still", from.owed)
	}
}

// TestShadow has one of five servers vote after an abort that others may not have carried out: its
// vote is for no fast quorum. One of three may, as each fast quorum has all.
func TestShadow(t *testing.T) {
	b := ballot{By: 9}
	for _, copies := range []int{3, 5} {
		m := newMachineOf(t, copies)
		first, second, third := reading(soon, "k"), writing(soon-1, "k"), writing(soon-2, "k")
		m.propose(first, b)
		m.tell(10, decide{ID: first.ID, Shards: []uint32{0}, Reason: store.Locked})
		m.restart(clock)
		m.join()
		if a := m.propose(second, b); a.Vote != prepared || (a.VotedAt == b) != (copies == 3) {
			t.Errorf("of %d, the server says %+v", copies, a)
		}
		m.tell(10, done{ID: first.ID})
		if a := m.propose(third, b); a.Vote != prepared || a.VotedAt != b {
			t.Errorf("of %d, when all have carried out the abort, the server says %+v", copies, a)
		}
	}
}

// TestCommitCarriesItsPart has a server hear of a transaction by its commit alone: it missed what
// was prepared, and carries the commit out all the same.
func TestCommitCarriesItsPart(t *testing.T) {
	m := newMachine(t)
	txn := store.Txn{ID: store.TxnID{Time: uint64(clock), Client: 7},
		Writes: []store.Write{{Key: "k", Bytes: []byte("x")}}}
	m.tell(10, decide{ID: txn.ID, Shards: []uint32{0}, Commit: true, Has: true, Part: txn})
	if v := values.At(m.env, "k"); string(v.Bytes) != "x" || v.Version != txn.ID {
		t.Errorf("the server holds %+v", v)
	}
}

// TestCorruptIdentity: a server that cannot read who its disk is takes no part, and says why.
func TestCorruptIdentity(t *testing.T) {
	m := newMachine(t)
	m.disk[selfKey] = m.disk[selfKey][:1]
	m.restart(clock)
	if m.takesPart() || !strings.Contains(m.self.Refused, "the server's identity on disk") {
		t.Errorf("takes part: %v, refused as %q", m.takesPart(), m.self.Refused)
	}
	for _, id := range m.group[1:] {
		m.tell(id, welcome{Disk: m.self.Disk})
	}
	if len(m.disk[selfKey]) != 1 || m.admitted() {
		t.Errorf("the identity is %x, the disk is admitted: %v", m.disk[selfKey], m.admitted())
	}
}
