package replicatedcommit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storetest"
	"github.com/foresay/foresay/wan"
)

// otherTraffic has transactions of another key committed for so many seconds.
func (s *script) otherTraffic(seconds int) {
	for i := range seconds {
		s.done(200, s.submit(200, fmt.Sprint(i), "o"))
		s.run(time.Second)
	}
}

// TestAbortOfWhatIsGone: a site that was away aborts for itself what the others have committed and
// forgotten. Nobody is told that this is the outcome, after a restart of that site either.
func TestAbortOfWhatIsGone(t *testing.T) {
	s := newScript(t, nil)
	for _, id := range s.Nodes() {
		s.Sim.Cut(id, 202) // the client hears nothing
	}
	ref := s.submit(202, "first", "k")
	s.run(30 * time.Millisecond) // c has voted yes, and hears of no other vote
	s.crashSite(2)
	d, _ := s.done(202, ref)
	s.otherTraffic(20)
	if len(s.Versions["k"]) != 1 {
		t.Fatalf("it was not committed: %v", s.Versions)
	}
	s.restartSite(2)
	c := s.Layout.Sites[2].Shards[s.Layout.ShardOf("k")]
	settled := func() bool {
		r := s.Sim.Get(c).(*server).txns[d.Txn.ID]
		return r != nil && r.settled()
	}
	if err := s.Sim.RunUntil(20*time.Second, settled); err != nil {
		t.Fatal(err)
	}
	s.Sim.Heal()
	s.crashSite(2)
	s.restartSite(2)
	s.run(100 * time.Millisecond)
	s.ref++
	s.Sim.Deliver(202, store.Query{Ref: s.ref, Txn: d.Txn})
	if again, _ := s.done(202, s.ref); again.Outcome.Verdict != store.Unknown {
		t.Errorf("the client that asks for a committed transaction is told %+v", again.Outcome)
	}
}

// TestNewcomersRefuseNothingThatIsGone: of five sites two are away while a transaction is carried
// out at the others, and forgotten. Then two of these are replaced. What the third one owes is not
// for the newcomers to refuse.
func TestNewcomersRefuseNothingThatIsGone(t *testing.T) {
	s := &script{t: t, answers: map[protocol.ID][]message{}}
	w, err := newWorld(storetest.Scenario{Seed: 1, Keys: 1, Sites: 5, App: s.hear})
	if err != nil {
		t.Fatal(err)
	}
	s.world = w
	for i, site := range w.Layout.Sites {
		w.Add(protocol.ID(200+i), wan.Site(site.Name))
	}
	s.run(time.Second)
	first, _ := s.done(200, s.submit(200, "first", "k"))
	want(t, first, store.Committed)
	s.run(time.Second)
	a, d, e := s.SiteNodes(0), s.SiteNodes(3), s.SiteNodes(4)
	// Who has read the first value overwrites it: its votes are those of a and e.
	s.cut(slices.Concat(a, e, []protocol.ID{204}), slices.Concat(s.SiteNodes(1), s.SiteNodes(2), d))
	s.Sim.Get(204).(*client).See(uint64(time.Hour + 45*time.Second))
	s.ref++
	s.Sim.Deliver(204, store.Submit{Ref: s.ref, Reads: []store.Read{{Key: "k", Version: first.Txn.ID}},
		Writes: []store.Write{{Key: "k", Bytes: []byte("stale")}}})
	s.run(70 * time.Millisecond)
	s.crashSite(4)
	ref := s.submit(203, "second", "k")
	s.run(30 * time.Millisecond)
	s.crashSite(3)
	second, _ := s.done(203, ref)
	want(t, second, store.Committed)
	s.run(60 * time.Millisecond)
	s.Sim.Heal()
	s.crashSite(3)
	s.crashSite(4)
	s.otherTraffic(20)
	for i := range 5 {
		s.Sim.Crash(protocol.ID(200+i), sim.KeepNone)
	}
	if err := s.replace(change{[]int{1, 2}, false}); err != nil {
		t.Fatal(err)
	}
	s.cut(slices.Concat(s.SiteNodes(1)[:1], s.SiteNodes(2)[:1]), d[1:])
	s.cut(slices.Concat(a[1:], e[1:]), d[1:])
	s.cut(a[1:], e[1:])
	aborted := func() bool { // at d, without a copy
		n, _ := s.Sim.Get(d[1+s.Layout.ShardOf("k")]).(*server)
		return n != nil && n.txns[second.Txn.ID] != nil && n.txns[second.Txn.ID].state == aborted
	}
	if err := s.Sim.RunUntil(20*time.Second, aborted); err == nil {
		t.Error("a site aborts what it has not copied")
	}
	for _, x := range e[1:] {
		for _, y := range d[1:] {
			s.Sim.Mend(x, y)
		}
	}
	s.run(10 * time.Second)
	s.Sim.Heal()
	if err := s.Sim.RunUntil(2*time.Minute, s.Quiet); err != nil {
		t.Errorf("%v: %v", err, s.Unquiet())
	}
	if err := s.EqualSites(); err != nil {
		t.Error(err)
	}
	for _, v := range s.Versions["k"] {
		if v == "stale" {
			t.Error("a transaction whose client was told that it is committed is lost")
		}
	}
}

// TestPagesOfAnEarlierCopy: a page that was asked for by a copy that was given up pays no debt.
func TestPagesOfAnEarlierCopy(t *testing.T) {
	n, err := newServer(store.Config{ID: 31, Layout: layout(3, 1), RoundTrip: roundTrip})
	if err != nil {
		t.Fatal(err)
	}
	n.admission.admitted = true
	env := protocol.NewEnv[message](nil, 1, rand.New(rand.NewPCG(1, 1)))
	step := func(call func()) (asked askPage, payments []uint64) {
		env.Begin(time.Hour)
		call()
		for _, out := range env.Out {
			switch m := out.Msg.(type) {
			case askPage:
				asked = m
			case paid:
				payments = append(payments, m.Serial)
			}
		}
		return asked, payments
	}
	step(func() { n.Start(env, nil) })
	step(func() { n.Receive(env, 11, owing{Serial: 5, Since: 1000, To: 1 << 2}) })
	first, _ := step(func() { n.Expire(env, catchUpTimer{}) })
	for range catchUpTries {
		step(func() { n.Expire(env, catchUpTimer{}) })
	}
	step(func() { n.Receive(env, 11, owing{Serial: 5, Since: 1000, To: 1 << 2}) })
	step(func() { n.Receive(env, 21, owing{Serial: 9, Since: 599, To: 1 << 2}) })
	second, _ := step(func() { n.Expire(env, catchUpTimer{}) })
	if first.Since != 1000 || second.Since != 599 {
		t.Fatalf("it asks for %+v, then for %+v", first, second)
	}
	values := []keyValue{{"x", store.Value{Version: store.TxnID{Time: 1001, Client: 1}, Present: true}}}
	if _, paid := step(func() {
		n.Receive(env, 11, page{Stage: copyValues, Round: first.Round, Values: values})
	}); len(paid) > 0 {
		t.Errorf("a page of the first copy pays the debts %d", paid)
	}
	if _, paid := step(func() {
		n.Receive(env, 21, page{Stage: copyValues, Round: second.Round, Values: values})
	}); len(paid) != 2 {
		t.Errorf("the second copy pays the debts %d", paid)
	}
}

// TestCommitOfWhatWasGone: a server that aborted what others have forgotten, and is told later that
// it was committed, says what it holds, so that nobody asks for ever. That it holds what the
// transaction wrote is checked.
func TestCommitOfWhatWasGone(t *testing.T) {
	for _, copied := range []bool{true, false} {
		b := newServerBench(t)
		id := store.TxnID{Time: uint64(b.now), Client: 1}
		b.give(10, prepare{Txn: store.Txn{ID: id, Writes: []store.Write{{Key: "k", Bytes: []byte("v")}}},
			Shards: []uint32{0}})
		if copied {
			b.do(func() {
				b.server.takeValues(b.env, []keyValue{{"k", store.Value{Version: id, Present: true, Bytes: []byte("v")}}})
			})
		}
		b.give(10, decide{ID: id, Shards: []uint32{0}, Old: true})
		b.env.Begin(b.now)
		b.server.Receive(b.env, 20, decide{ID: id, Shards: []uint32{0}, Commit: true})
		answered := slices.ContainsFunc(b.env.Out, func(e protocol.Effect[message]) bool {
			v, ok := e.Msg.(vote)
			return ok && e.To == 20 && v.State == aborted && v.Reason == store.Old
		})
		if !answered || (b.server.Check() == nil) != copied {
			t.Errorf("copied: %v: it answers %v, and says %v", copied, answered, b.server.Check())
		}
	}
}

// TestNewcomersCopyAbortsOfWhatIsGone: what a source aborted as others had forgotten it is no abort
// for the newcomer's clients either, nor does it contradict a source that knows of the commit.
func TestNewcomersCopyAbortsOfWhatIsGone(t *testing.T) {
	b := newServerBench(t)
	id := store.TxnID{Time: uint64(b.now), Client: 1}
	txn := store.Txn{ID: id, Writes: []store.Write{{Key: "k", Bytes: []byte("v")}}}
	b.give(10, prepare{Txn: txn, Shards: []uint32{0}})
	b.give(10, decide{ID: id, Shards: []uint32{0}, Old: true})
	b.server.inherited = id.Time // it is of an earlier epoch
	b.give(21, askPage{Stage: copyTxns})
	var last page
	for _, e := range b.env.Out {
		if p, ok := e.Msg.(page); ok {
			last = p
		}
	}
	if len(last.Txns) != 1 {
		t.Fatalf("the page has %+v", last)
	}
	newcomer := newServerBench(t)
	newcomer.do(func() { newcomer.server.takeSettled(newcomer.env, last.Txns[0]) })
	newcomer.do(func() {
		newcomer.server.takeSettled(newcomer.env, settledTxn{Txn: txn, Shards: []uint32{0}, Commit: true})
	})
	if r := newcomer.server.txns[id]; r.reason != store.Old || r.state != aborted || newcomer.server.Check() != nil {
		t.Errorf("the newcomer has %+v, and says %v", r, newcomer.server.Check())
	}
}

// TestLooksTellOfAbortsOfWhatIsGone: a newcomer that takes over an abort which rests on what is
// gone, from a shard or from its coordinator, says so: the transaction may have been committed.
func TestLooksTellOfAbortsOfWhatIsGone(t *testing.T) {
	b := newServerBench(t)
	id := store.TxnID{Time: uint64(b.now), Client: 1}
	b.give(10, decide{ID: id, Shards: []uint32{0}, Old: true}) // it has not heard of it before
	b.give(21, look{ID: id})
	var sights []seen
	for _, e := range b.env.Out {
		if m, ok := e.Msg.(seen); ok {
			sights = append(sights, m)
		}
	}
	if want := (seen{ID: id, State: aborted, Old: true}); len(sights) != 1 || sights[0] != want {
		t.Fatalf("it answers %+v, want %+v", sights, want)
	}
	for old, want := range map[bool]store.Reason{true: store.Old, false: store.Fenced} {
		newcomer := newServerBench(t)
		newcomer.server.newcomer.looks = map[store.TxnID]*search{id: {shards: []uint32{0}, seen: map[protocol.ID]bool{}}}
		newcomer.give(21, seen{ID: id, State: aborted, Old: old})
		if r := newcomer.server.txns[id]; r == nil || r.state != aborted || r.reason != want {
			t.Errorf("old %v: the newcomer has %+v, want the reason %v", old, r, want)
		}
	}
}

// TestAbortOfWhatIsGoneWaitsForAll: two of five sites have voted for a transaction that the others
// carry out and forget while both are away. One of them copies what it missed, a server of the
// other one cannot yet. Neither takes it for aborted before that has copied too: the abort of the
// first would be the outcome for the second.
func TestAbortOfWhatIsGoneWaitsForAll(t *testing.T) {
	s := &script{t: t, answers: map[protocol.ID][]message{}}
	w, err := newWorld(storetest.Scenario{Seed: 1, Keys: 1, Sites: 5, App: s.hear})
	if err != nil {
		t.Fatal(err)
	}
	s.world = w
	for i, site := range w.Layout.Sites {
		w.Add(protocol.ID(200+i), wan.Site(site.Name))
	}
	s.run(time.Second)
	shard, other := s.Layout.ShardOf("k"), store.Key("l")
	for i := 0; s.Layout.ShardOf(other) == shard; i++ {
		other = store.Key(fmt.Sprint("l", i))
	}
	s.submit(203, "first", "k", other)
	s.run(80 * time.Millisecond) // all have voted, and d and e have heard of no other vote
	s.crashSite(3)
	s.crashSite(4)
	s.otherTraffic(20)
	if len(s.Versions["k"]) != 1 {
		t.Fatalf("it was not committed: %v", s.Versions)
	}
	s.restartSite(3)
	s.restartSite(4)
	s.run(roundTrip * 5 / 4) // they are admitted
	for _, site := range s.Layout.Sites[:4] {
		s.cut(s.Layout.Sites[4].Shards[1-shard:][:1], site.Shards)
	}
	if s.Sim.RunUntil(20*time.Second, func() bool { return s.uncopied() != nil }) == nil {
		t.Error(s.uncopied())
	}
	s.Sim.Heal()
	s.settle()
}

// TestCommitIsKnown: an abort that rests on forgetting is no outcome where a shard knows of the
// commit, or of another reason.
func TestCommitIsKnown(t *testing.T) {
	for _, tc := range []struct {
		name  string
		votes []vote // of the sites
		want  txnState
		why   store.Reason
	}{
		{"commit", []vote{{State: aborted, Reason: store.Old}, {State: yes}, {State: committed}}, committed, store.NoReason},
		{"commit without contents", []vote{{State: aborted, Reason: store.Old}, {State: wanting}, {State: yes}}, committed,
			store.NoReason},
		{"abort", []vote{{State: aborted, Reason: store.Old}, {State: yes}, {State: aborted, Reason: store.Locked}}, aborted,
			store.Locked},
		{"abort before", []vote{{State: aborted, Reason: store.Locked}, {State: yes}, {State: aborted, Reason: store.Old}},
			aborted, store.Locked},
		{"forgotten", []vote{{State: yes}, {State: gone}, {State: aborted, Reason: store.Old}}, aborted, store.Old},
	} {
		e := newEntry(store.TxnID{Time: 1}, []uint32{0}, layout(3, 1))
		for i, v := range tc.votes {
			e.rows[i].take(0, v)
		}
		if got, why := e.tally(2); got != tc.want || why != tc.why {
			t.Errorf("%s: it is %v for the reason %v, want %v and %v", tc.name, got, why, tc.want, tc.why)
		}
	}
}
