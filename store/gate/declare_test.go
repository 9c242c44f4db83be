package gate

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// TestDeclare: a declaration goes to the coordinator that the commit goes to, and its answer to all
// who wait for it, and to nobody who waits for the outcome.
func TestDeclare(t *testing.T) {
	b := newBench(t, 3)
	id := store.TxnID{Time: 9, Client: 1}
	m := store.DeclareRequest{ID: id, Reads: []store.Key{"a", "b"}, Writes: []store.Key{"a"}, Serializable: true}
	sent := b.give(protocol.App, Declare{1, m})
	if len(sent) != 1 || sent[0].To != 10 || !cmp.Equal(sent[0].Msg, store.Message(m)) {
		t.Fatalf("the site is told %v", sent)
	}
	b.give(protocol.App, Declare{2, m})
	txn := store.Txn{ID: id, Writes: []store.Write{{Key: "a"}}}
	want := store.Message(store.CommitRequest{Txn: txn, Serializable: true, Explain: true})
	sent = b.give(protocol.App, Commit{Ref: 3, Txn: txn, Serializable: true, Explain: true})
	if len(sent) != 1 || !cmp.Equal(sent[0].Msg, want) {
		t.Errorf("a commit tells the site %v, want %v", sent, want)
	}
	if sent := b.give(protocol.App, Declare{4, m}); len(sent) != 1 || !sent[0].Msg.(Refused).Full {
		t.Errorf("a fourth call is answered with %v", sent)
	}
	reply := store.DeclareReply{ID: id, Values: []store.Held{{Site: 2}, {Large: true}}}
	if sent := b.give(20, reply); len(sent) > 0 {
		t.Errorf("another site's coordinator is believed: %v", sent)
	}
	sent = b.give(10, reply)
	if len(sent) != 2 || !cmp.Equal(sent[0].Msg, store.Message(DeclareDone{1, reply})) ||
		!cmp.Equal(sent[1].Msg, store.Message(DeclareDone{2, reply})) {
		t.Errorf("the answers are %v", sent)
	}
	if sent := b.give(10, store.Decided{ID: id, Verdict: store.Committed}); len(sent) != 1 ||
		sent[0].Msg.(CommitDone).Ref != 3 {
		t.Errorf("the outcome is told as %v", sent)
	}
	sent = b.give(protocol.App, Abandon{ID: id})
	if len(sent) != 1 || sent[0].To != 10 || sent[0].Msg != store.Message(store.AbandonRequest{ID: id}) {
		t.Errorf("an end is told as %v", sent)
	}
	if err := b.gate.Check(); err != nil || b.gate.Open() != 0 {
		t.Errorf("%d calls are open: %v", b.gate.Open(), err)
	}
}

// TestDeclareSteps: the answer to a step is for who has asked for that one.
func TestDeclareSteps(t *testing.T) {
	b := newBench(t, 3)
	id := store.TxnID{Time: 9, Client: 1}
	for step := uint32(1); step <= 2; step++ {
		b.give(protocol.App, Declare{uint64(step), store.DeclareRequest{ID: id, Reads: []store.Key{"a"}, Step: step}})
	}
	for _, step := range []uint32{2, 1} {
		reply := store.DeclareReply{ID: id, Step: step, Values: []store.Held{{Site: step}}}
		sent := b.give(10, reply)
		if len(sent) != 1 || !cmp.Equal(sent[0].Msg, store.Message(DeclareDone{uint64(step), reply})) {
			t.Errorf("step %d is answered as %v", step, sent)
		}
	}
	if err := b.gate.Check(); err != nil || b.gate.Open() != 0 {
		t.Errorf("%d calls are open: %v", b.gate.Open(), err)
	}
}

// TestBadDeclarations: what makes no sense is refused.
func TestBadDeclarations(t *testing.T) {
	id := store.TxnID{Time: 9, Client: 1}
	long := store.Key(make([]byte, store.MaxKeyBytes+1))
	for _, m := range []store.DeclareRequest{
		{Reads: []store.Key{"a"}}, {ID: id}, {ID: id, Reads: []store.Key{"a", "a"}}, {ID: id, Writes: []store.Key{"b", "a"}},
		{ID: id, Reads: []store.Key{long}}, {ID: id, Reads: make([]store.Key, store.MaxAccesses+1)},
		{ID: id, Reads: []store.Key{"a"}, Step: store.MaxAccesses + 1}, {ID: id, Reads: []store.Key{"a"}, Step: 1, MaxAge: 1},
	} {
		b := newBench(t, 3)
		sent := b.give(protocol.App, Declare{1, m})
		if len(sent) != 1 || sent[0].To != protocol.App || sent[0].Msg.(Refused).Detail == "" {
			t.Errorf("%.60v is answered with %v", m, sent)
		}
	}
}
