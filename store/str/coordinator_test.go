package str

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// TestVouchedCommits has what is certified at the site be shown together with no later commit than
// its server vouches for: one above that may have overtaken it, without that server.
func TestVouchedCommits(t *testing.T) {
	c := newSoloCoordinator(t)
	a, b, m := c.key(0, "a"), c.key(0, "b"), c.key(0, "m")
	c.begins(5, m)
	c.Receive(c.env, 205, store.CommitRequest{Txn: store.Txn{ID: txnID(5), Writes: []store.Write{{Key: a}}}})
	c.said()
	c.Receive(c.env, 11, certified{Shard: 0, ID: txnID(5), Stamp: 6, Until: 30})
	c.local(t, 5)
	finds := func(at, version uint64) []store.Message {
		c.begins(at, b)
		for ref, r := range c.coordinator.reads {
			if r.t.id == txnID(at) {
				v := store.Version{Time: version, Client: 1}
				c.Receive(c.env, r.to, found{Ref: ref, Value: store.Value{Version: v, Present: true, Bytes: []byte("b")}})
			}
		}
		c.said()
		return c.reads(at, a)
	}
	expectValues(t, finds(40, 30), "")
	expectValues(t, finds(50, 31))
	c.Expire(c.env, txnTimer{txnID(5)})
	if asked := only[certify](c.said()); len(asked) != 1 || asked[0].ID != txnID(5) {
		t.Errorf("its server is asked %+v", asked)
	}
	c.Receive(c.env, 11, certified{Shard: 0, ID: txnID(5), Stamp: 6, Until: 31})
	expectValues(t, c.said(), "")
}

// TestFinishedMeanwhile has a coordinator that lacks words find out that somebody else has finished
// its transaction: the members have forgotten it.
func TestFinishedMeanwhile(t *testing.T) {
	c := newSoloCoordinator(t)
	a := c.key(0, "a")
	c.begins(5, a)
	asked := only[kit.Ask](c.commits(5, 6, a))
	if len(asked) != 1 {
		t.Fatalf("it is certified so: %+v", asked)
	}
	c.Receive(c.env, 11, told{asked[0].Ref, result{State: prepared}})
	asked = nil
	for range finishedLooks {
		c.Expire(c.env, txnTimer{txnID(5)})
		asked = append(asked, only[kit.Ask](c.said())...)
	}
	if len(asked) != 1 {
		t.Fatalf("the group is asked %+v", asked)
	}
	c.Receive(c.env, 11, told{asked[0].Ref, result{State: committed, At: 9}})
	if d := only[store.Decided](c.said()); len(d) != 1 || d[0].Verdict != store.Committed || d[0].Version.Time != 9 {
		t.Errorf("its client is told %+v", d)
	}
}

// TestFinishedInOrder has a coordinator find out that somebody else has committed a transaction
// and, before it, one that it depends on: whether these are committed still as far as it knows, or
// are aborted, its clients are told in that order, and no snapshot has the first one meanwhile.
func TestFinishedInOrder(t *testing.T) {
	for _, gaveUp := range []bool{false, true} {
		t.Run(fmt.Sprint("aborted=", gaveUp), func(t *testing.T) {
			c := newSoloCoordinator(t)
			a, b := c.key(0, "a"), c.key(0, "b")
			c.begins(5, b)
			first := only[kit.Ask](c.commits(5, 6, a))
			expectValues(t, c.begins(10, a), "5")
			second := only[kit.Ask](c.commits(10, 11, b))
			if gaveUp {
				c.abort(c.env, c.txns[txnID(5)], store.Locked)
				asked := only[kit.Ask](c.said())
				second, first = asked[:1], asked[1:]
			}
			c.Receive(c.env, 11, told{second[0].Ref, result{State: committed, At: 12}})
			c.Receive(c.env, 11, told{second[0].Ref, result{State: committed, At: 12}})
			if d := only[store.Decided](c.said()); len(d) > 0 {
				t.Errorf("before the first one: %+v", d)
			}
			expectValues(t, c.begins(20, a))
			if !gaveUp { // it was prepared before somebody else came
				c.Receive(c.env, 11, told{first[0].Ref, result{State: prepared}})
				c.Expire(c.env, txnTimer{txnID(5)})
				if first = only[kit.Ask](c.said()); len(first) != 1 {
					t.Fatalf("the group is asked %+v", first)
				}
			}
			c.Receive(c.env, 11, told{first[0].Ref, result{State: committed, At: 8}})
			d := only[store.Decided](c.said())
			if len(d) != 2 || d[0].ID != txnID(5) || d[0].Version.Time != 8 || d[1].ID != txnID(10) ||
				d[0].Verdict != store.Committed || d[1].Verdict != store.Committed {
				t.Errorf("clients are told %+v", d)
			}
		})
	}
}

// TestCommitsAnew has a coordinator that was started again, and has begun a transaction anew, ask
// what became of the commit that was asked for before: it may be prepared as of another snapshot.
func TestCommitsAnew(t *testing.T) {
	for _, silent := range []bool{false, true} {
		c := newSoloCoordinator(t)
		c.begins(7, c.key(0, "a"))
		if silent {
			c.end(c.env, c.txns[txnID(7)])
		}
		txn := store.Txn{ID: txnID(7), Writes: []store.Write{{Key: c.key(0, "a")}}}
		c.Receive(c.env, 207, store.CommitRequest{Txn: txn, Recover: true})
		said := c.said()
		if len(only[certify](said))+len(only[store.Decided](said)) > 0 || c.rescue[txn.ID] == nil {
			t.Errorf("given up before: %v; it says %+v", silent, said)
		}
	}
}

// TestLocalAboveReads has a transaction be committed locally above the snapshots in which what it
// overwrites was read at its coordinator, also once that is final.
func TestLocalAboveReads(t *testing.T) {
	for _, final := range []bool{false, true} {
		c := newSoloCoordinator(t)
		a, b := c.key(0, "a"), c.key(0, "b")
		c.begins(5, b)
		c.begins(10, b)
		c.commits(5, 6, a)
		expectValues(t, c.begins(20, a), "5")
		if final {
			c.commit(c.env, c.txns[txnID(5)], 9)
			c.said()
		}
		c.commits(10, 11, a)
		if at := c.local(t, 10); at <= 20 {
			t.Errorf("final %v: it is committed locally at %v, and was not seen as of 20", final, at)
		}
	}
}

// TestCertifiedApart has a transaction that a silent server of the site does not certify be
// committed locally above all snapshots: that server may have served reads of its keys.
func TestCertifiedApart(t *testing.T) {
	c := newSoloCoordinator(t)
	a := c.key(0, "a")
	c.begins(5, a)
	c.begins(30, a)
	c.Receive(c.env, 205, store.CommitRequest{Txn: store.Txn{ID: txnID(5), Writes: []store.Write{{Key: a}}}})
	for range 2 {
		c.Expire(c.env, txnTimer{txnID(5)})
	}
	if at := c.local(t, 5); at <= 30 {
		t.Errorf("it is committed locally at %v", at)
	}
}

// TestBoundHides has a snapshot that is beyond the bound of a version, and not beyond that of the
// one under it, wait for that one. A server that has neither shows nothing of it, and what else the
// same transaction has written is shown here.
func TestBoundHides(t *testing.T) {
	for _, final := range []bool{false, true} {
		c := newSoloCoordinator(t)
		a, b, half := c.key(0, "a"), c.key(0, "b"), c.key(0, "half")
		c.begins(5, b)
		c.commits(5, 6, b)
		c.begins(8, c.key(0, "m"))
		c.commits(8, 9, a, half)
		expectValues(t, c.begins(10, b), "5")
		c.commits(10, 11, a)
		at := uint64(c.txns[txnID(10)].bound) + 1
		expectValues(t, c.begins(at, half), "8")
		c.reads(at, a)
		c.begins(at+1, a)
		finds := func() []store.Message {
			for _, ref := range slices.Sorted(maps.Keys(c.coordinator.reads)) {
				c.Receive(c.env, c.reads1(ref), found{Ref: ref})
			}
			return c.said()
		}
		expectValues(t, finds())
		if final { // later than both snapshots
			c.commit(c.env, c.txns[txnID(8)], clock.Stamp(at+2))
			c.said()
			expectValues(t, finds(), "")
			continue
		}
		c.abort(c.env, c.txns[txnID(10)], store.Lapsed)
		for _, ref := range slices.Sorted(maps.Keys(c.coordinator.reads)) {
			c.Expire(c.env, readTimer{ref})
		}
		expectValues(t, c.said(), "8", "8")
	}
}

// TestReadsAnew has a read that is on its way see what is committed locally meanwhile.
func TestReadsAnew(t *testing.T) {
	c := newSoloCoordinator(t)
	a := c.key(0, "a")
	c.begins(5, c.key(0, "m"))
	expectValues(t, c.begins(20, a))
	expectValues(t, c.commits(5, 6, a), "5")
}

// TestLocalAfterWord has a transaction wait with its local commit while the first shard of another
// one, which it is on top of, decides at which timestamp that is final: servers may show that.
func TestLocalAfterWord(t *testing.T) {
	for _, final := range []clock.Stamp{10, 11} {
		c := newSoloCoordinator(t)
		a := c.key(0, "a")
		c.begins(5, c.key(0, "m"))
		c.commits(5, 6, a)
		c.begins(10, c.key(0, "m"))
		on, t10 := c.txns[txnID(5)], c.txns[txnID(10)]
		on.agreed = true
		c.commits(10, 11, a)
		if c.Expire(c.env, txnTimer{t10.id}); t10.stage != certifying || t10.apart || len(only[certify](c.said())) != 1 {
			t.Fatalf("it is in stage %d", t10.stage)
		}
		c.commit(c.env, on, final)
		if want := final == 10; (t10.stage == locally) != want || (t10.stage == over) == want {
			t.Errorf("the other one is final at %d, and it is in stage %d", final, t10.stage)
		}
	}
}

// TestSilentSite has a coordinator ask other servers than those of a site that does not answer,
// before each read and call has found that out, and until the site is heard again.
func TestSilentSite(t *testing.T) {
	c := newSoloCoordinator(t)
	remote := c.key(1, "k")
	gone := c.l.Sites[1].Shards[1]
	c.away = []time.Duration{0, 1, 2, 3} // site b is the nearest with a copy
	asked := func(at uint64) protocol.ID {
		reads := only[readAt](c.begins(at, remote))
		if len(reads) != 1 {
			t.Fatalf("a read is %+v", reads)
		}
		return c.reads1(reads[0].Ref)
	}
	if to := asked(5); to != gone {
		t.Fatalf("%d is asked", to)
	}
	for range 5 {
		c.env.Now += c.coordinator.cfg.RoundTrip / 2
		for _, site := range []int{2, 3} {
			c.heard(c.l.Sites[site].Shards[1])
		}
		c.Expire(c.env, pingTimer{})
	}
	if again := only[readAt](c.said()); len(again) != 1 || c.reads1(again[0].Ref) == gone {
		t.Errorf("the read is asked for again so: %+v", again)
	}
	if to := asked(uint64(c.env.Now) + 1); to == gone {
		t.Error("a silent server is asked")
	}
	c.Receive(c.env, gone, pong{})
	if to := asked(uint64(c.env.Now) + 2); to != gone {
		t.Errorf("%d is asked, and the nearest is there again", to)
	}
}

// TestSuspect has a coordinator without transactions finish what another site's has left, soon
// after the site has become silent, and not before.
func TestSuspect(t *testing.T) {
	c := newSoloCoordinator(t)
	trip := c.coordinator.cfg.RoundTrip
	p := part{ID: txnID(5), At: 5, Local: 6, Shards: []uint32{0}, Origin: c.l.Sites[1].Coordinators[0],
		Writes: []store.Write{{Key: c.key(0, "a")}}}
	pings := func() { // and sites c and d answer
		c.Expire(c.env, pingTimer{})
		for _, site := range []int{2, 3} {
			c.heard(c.l.Sites[site].Shards[1])
		}
	}
	for range 8 {
		c.env.Now += pingTrips * trip
		pings()
		c.heard(c.l.Sites[1].Shards[1])
	}
	c.env.Now += 2 * trip
	for i := range 8 {
		c.said()
		from := len(c.env.Out)
		c.Receive(c.env, c.l.Sites[0].Shards[0], suspect{p})
		finishes := len(only[kit.Ask](c.said())) > 0
		if finishes != c.silent[1] || finishes && i < 3 {
			t.Fatalf("after %d half round trips it finishes the transaction: %t, and the site is silent: %t", i, finishes,
				c.silent[1])
		}
		if finishes {
			return
		}
		soon := func(e protocol.Effect[store.Message]) bool { return e.Timer == pingTimer{} && e.Delay <= trip/2 }
		if i == 0 && !slices.ContainsFunc(c.env.Out[from:], soon) {
			t.Error("it asks nobody who is silent")
		}
		pings()
		c.env.Now += trip / 2
	}
	t.Error("it does not find out that the site is silent")
}

// TestRescueByWords has whoever finishes a transaction commit it as soon as it knows as much as the
// transaction's own coordinator would, and all servers hear of that at once. If its client's word
// was out, only the first shard knows whether that has come.
func TestRescueByWords(t *testing.T) {
	format := wirefmt.NewFormat("str", 1, commandKinds()...)
	for _, held := range []bool{false, true} {
		c := newSoloCoordinator(t)
		readers := []protocol.ID{11, 21, 31}
		p := part{ID: txnID(5), At: 5, Local: 6, Shards: []uint32{0}, Origin: c.l.Sites[1].Coordinators[0], Held: held,
			Writes: []store.Write{{Key: c.key(0, "a")}}}
		c.Receive(c.env, 11, orphan{p})
		if wanted := only[wordWanted](c.said()); len(wanted) != len(readers) {
			t.Fatalf("members are asked %+v", wanted)
		}
		for i, id := range readers {
			m := word{ID: p.ID, At: raft.Position{Index: 4, Term: 1}, Stamp: clock.Stamp(7 + i), Readers: readers}
			if id == 21 {
				m.Members = readers
			}
			c.Receive(c.env, id, m)
		}
		asked := only[kit.Ask](c.said())
		if held {
			if len(asked) > 0 {
				t.Errorf("what may lack its client's word is finished: %+v", asked)
			}
			continue
		}
		if len(asked) != 1 {
			t.Fatalf("the first shard is asked %+v", asked)
		}
		if m, err := format.Decode(asked[0].Command); err != nil || !m.(decide).Commit || m.(decide).At != 9 {
			t.Fatalf("the first shard is asked %+v, %v", m, err)
		}
		c.Receive(c.env, 11, told{asked[0].Ref, result{State: committed, At: 9}})
		over := only[outcome](c.said())
		if len(over) != len(readers) || !over[0].Commit || over[0].At != 9 || over[0].Read != c.boundOf(9) {
			t.Errorf("servers hear %+v", over)
		}
	}
}

// TestManyWaysBack: each of many transactions depends on the two before it, so that there are more
// ways from the last to the first than anybody can go.
func TestManyWaysBack(t *testing.T) {
	var all []*txn
	for i := range 100 {
		x := &txn{id: store.TxnID{Client: 1, Time: uint64(i)}, on: map[store.TxnID]*txn{}}
		for _, on := range all[max(i-2, 0):] {
			x.on[on.id] = on
		}
		all = append(all, x)
	}
	last := all[len(all)-1]
	if last.awaitsWord() {
		t.Error("nobody's word is to come")
	}
	if all[0].agreed = true; !last.awaitsWord() || all[0].awaitsWord() {
		t.Error("the first one's word is to come")
	}
}
