package gate

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storedeploy"
)

// bench calls a gate by hand.
type bench struct {
	*testing.T
	gate *Gate
	env  *protocol.Env[store.Message]
}

func newBench(t *testing.T, maxWaiting int) *bench {
	g, err := New(store.Config{ID: 99, Layout: storedeploy.Layout(3, 2), MaxWaiting: maxWaiting}, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t, g, protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(1, 2)))}
	b.env.Begin(0)
	g.Start(b.env, nil)
	return b
}

// give hands the gate a message and returns what it sends.
func (b *bench) give(from protocol.ID, msg store.Message) []protocol.Effect[store.Message] {
	return b.do(func() { b.gate.Receive(b.env, from, msg) })
}

func (b *bench) do(f func()) (sent []protocol.Effect[store.Message]) {
	b.Helper()
	b.env.Begin(0)
	f()
	for _, e := range b.env.Out {
		if e.Kind == protocol.KindSend {
			sent = append(sent, e)
		}
	}
	if err := b.gate.Check(); err != nil {
		b.Error(err)
	}
	return sent
}

func (b *bench) wantApp(sent []protocol.Effect[store.Message], want ...store.Message) {
	b.Helper()
	var got []store.Message
	for _, e := range sent {
		if e.To == protocol.App {
			got = append(got, e.Msg)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.Errorf("the application is told (-want +got):\n%s", diff)
	}
}

func TestReads(t *testing.T) {
	b := newBench(t, 2)
	sent := b.give(protocol.App, Read{Ref: 1, Key: "k"})
	site := b.gate.cfg.Layout.Sites[0]
	shard := site.Shards[b.gate.cfg.Layout.ShardOf("k")]
	if len(sent) != 1 || sent[0].To != shard {
		t.Fatalf("a read goes to %v, want %d", sent, shard)
	}
	reply := store.ReadReply{Ref: sent[0].Msg.(store.ReadRequest).Ref,
		Value: store.Value{Present: true, Bytes: []byte("v")}}
	b.wantApp(b.give(21, reply)) // of another site
	b.wantApp(b.give(shard, reply), ReadDone{1, reply})
	b.wantApp(b.give(shard, reply)) // it was answered
	// Of two that wait, one is taken back, which makes room.
	b.give(protocol.App, Read{Ref: 2, Key: "k"})
	b.give(protocol.App, Read{Ref: 3, Key: "k"})
	b.wantApp(b.give(protocol.App, Read{Ref: 4, Key: "k"}), Refused{Ref: 4, Full: true, Detail: "2 reads wait"})
	b.give(protocol.App, Cancel{2})
	b.wantApp(b.give(protocol.App, Read{Ref: 5, Key: "k"}))
	long := b.give(protocol.App, Read{Ref: 6, Key: store.Key(strings.Repeat("k", store.MaxKeyBytes+1))})
	b.wantApp(long, Refused{Ref: 6, Detail: "a key of 4097 bytes (the limit is 4096)"})
	for _, e := range b.give(77, Read{Ref: 7, Key: "k"}) {
		t.Errorf("somebody else's question has the effect %v", e)
	}
}

func TestCommits(t *testing.T) {
	b := newBench(t, 3)
	txn := func(time uint64) store.Txn {
		return store.Txn{ID: store.TxnID{Time: time, Client: 1}, Writes: []store.Write{{Key: "k"}}}
	}
	const coordinator = 10
	sent := b.give(protocol.App, Commit{Ref: 1, Txn: txn(5)})
	if len(sent) != 1 || sent[0].To != coordinator {
		t.Fatalf("a commit goes to %v", sent)
	}
	b.give(protocol.App, Commit{Ref: 2, Txn: txn(5), Recover: true}) // it is repeated, and wants the decision
	vote := store.SiteVote{ID: txn(5).ID, Yes: true}
	b.wantApp(b.give(20, vote)) // of another site
	b.wantApp(b.give(coordinator, vote), CommitDone{Ref: 1, Vote: vote})
	decided := store.Decided{ID: txn(5).ID, Verdict: store.Committed}
	b.wantApp(b.give(coordinator, decided), CommitDone{Ref: 2, Known: true, Decided: decided})
	b.wantApp(b.give(coordinator, decided))

	// Without a decision the vote is the answer after a while, or as soon as it comes later.
	b.give(protocol.App, Commit{Ref: 3, Txn: txn(6), Recover: true})
	b.give(protocol.App, Commit{Ref: 4, Txn: txn(7), Recover: true})
	vote6, vote7 := store.SiteVote{ID: txn(6).ID}, store.SiteVote{ID: txn(7).ID, Yes: true}
	b.wantApp(b.give(coordinator, vote6))
	b.wantApp(b.do(func() { b.gate.Expire(b.env, voteTimer{3}) }), CommitDone{Ref: 3, Vote: vote6})
	b.wantApp(b.do(func() { b.gate.Expire(b.env, voteTimer{4}) }))
	b.wantApp(b.give(coordinator, vote7), CommitDone{Ref: 4, Vote: vote7})

	bad := b.give(protocol.App, Commit{Ref: 5,
		Txn: store.Txn{ID: txn(1).ID, Writes: []store.Write{{Key: "b"}, {Key: "a"}}}})
	if len(bad) != 1 || bad[0].To != protocol.App || !strings.Contains(bad[0].Msg.(Refused).Detail, "comes after") {
		t.Errorf("a transaction out of order has the effects %v", bad)
	}
}

// TestGateEmpty: what has no accesses is nothing that a site could vote on, so no coordinator would
// answer.
func TestEmpty(t *testing.T) {
	b := newBench(t, 3)
	sent := b.give(protocol.App, Commit{Ref: 1, Txn: store.Txn{ID: store.TxnID{Time: 1, Client: 1}}})
	b.wantApp(sent, Refused{Ref: 1, Detail: "a transaction that neither reads nor writes"})
	if len(sent) != 1 || len(b.gate.commits) != 0 {
		t.Errorf("it sends %v, and %d wait", sent, len(b.gate.commits))
	}
}

// TestGateNobodyAnswers: coordinators and shards may ignore what they are asked, and nobody need
// take it back. Then the gate does.
func TestNobodyAnswers(t *testing.T) {
	b := newBench(t, 3)
	txn := store.Txn{ID: store.TxnID{Time: 5, Client: 1}, Writes: []store.Write{{Key: "k"}}}
	for _, m := range []store.Message{Read{Ref: 1, Key: "k"}, Commit{Ref: 2, Txn: txn},
		Commit{Ref: 3, Txn: txn, Recover: true}} {
		b.give(protocol.App, m)
		var ends []protocol.Effect[store.Message]
		for _, e := range b.env.Out {
			if e.Kind == protocol.KindAfter && e.Delay.Truncate(time.Millisecond) == 8*b.gate.cfg.RoundTrip {
				ends = append(ends, e)
			}
		}
		if len(ends) != 1 {
			t.Fatalf("%#v has the timers %v", m, ends)
		}
		var ref uint64
		switch m := m.(type) {
		case Read:
			ref = m.Ref
		case Commit:
			ref = m.Ref
		}
		expire := func() { b.gate.Expire(b.env, ends[0].Timer) }
		b.wantApp(b.do(expire), Refused{Ref: ref, Late: true, Detail: "nobody at the site answers"})
		b.wantApp(b.do(expire))
	}
	if n := len(b.gate.reads) + len(b.gate.commits); n != 0 {
		t.Errorf("%d entries are left", n)
	}
	// What is answered or taken back needs no timer any more.
	b.give(protocol.App, Read{Ref: 4, Key: "k"})
	b.give(protocol.App, Cancel{4})
	if !slices.ContainsFunc(b.env.Out, func(e protocol.Effect[store.Message]) bool {
		return e.Kind == protocol.KindStop && e.Timer == endTimer{4}
	}) {
		t.Errorf("the timer of what was taken back goes on: %v", b.env.Out)
	}
}

func TestConfig(t *testing.T) {
	fenced := storedeploy.Layout(3, 2)
	fenced.Sites[1].Fenced = true
	for _, tc := range []struct {
		cfg  store.Config
		site int
		want string
	}{
		{store.Config{ID: 11, Layout: storedeploy.Layout(3, 2)}, 0, "another node"},
		{store.Config{ID: 10, Layout: storedeploy.Layout(3, 2)}, 0, "another node"},
		{store.Config{ID: 99, Layout: storedeploy.Layout(3, 2)}, 3, "does not take part"},
		{store.Config{ID: 99, Layout: storedeploy.Layout(3, 2)}, -1, "does not take part"},
		{store.Config{ID: 99, Layout: fenced}, 1, "does not take part"},
		{store.Config{Layout: storedeploy.Layout(3, 2)}, 0, "ID is 0"},
	} {
		if _, err := New(tc.cfg, tc.site); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("New(%+v, %d) returned %v, want an error with %q", tc.cfg.ID, tc.site, err, tc.want)
		}
	}
}
