package carousel

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storetest"
	"github.com/foresay/foresay/wan"
)

// leader is a server that takes itself for a leader of a term, and has no group that hears of it.
func leader(t *testing.T, ceiling clock.Stamp) *alone {
	t.Helper()
	a := newAlone(t)
	a.call(func(env *protocol.Env[store.Message]) {
		a.state.values.RaiseCeiling(a.written(env), ceiling)
		a.serve(env, 3)
	})
	return a
}

// ownState is a server's state as the group's entries write it.
type ownState struct {
	protocol.Keys
	disk   *space
	prefix string
}

func (w ownState) Put(key, value []byte) { w.disk.Put([]byte(w.prefix+string(key)), value) }

func (w ownState) Delete(key []byte) { w.disk.Delete([]byte(w.prefix + string(key))) }

func (a *alone) written(env *protocol.Env[store.Message]) raft.State {
	var at whereIs
	a.group.StateIn(&at).Get(nil)
	return ownState{a.group.State(env), a.disk, string(at)}
}

// whereIs is the key that was asked for last.
type whereIs string

func (w *whereIs) Get(key []byte) ([]byte, bool) {
	*w = whereIs(key)
	return nil, false
}

func (w *whereIs) Scan([]byte, []byte) iter.Seq2[[]byte, []byte] {
	return func(func([]byte, []byte) bool) {}
}

const second = clock.Stamp(time.Second)

// at has a server be asked for a snapshot of keys, and returns what it answers: that it waits, why
// it does not serve, or what it serves.
func (a *alone) at(m snapshotRequest, keys ...store.Key) string {
	m.ID, m.Values = txnID(99), true
	for _, k := range keys {
		m.Reads = append(m.Reads, store.Read{Key: k})
	}
	out := "waits"
	for _, said := range a.call(func(env *protocol.Env[store.Message]) {
		env.Now = time.Duration(second)
		a.Receive(env, 10, m)
	}) {
		if r, ok := said.(snapshotReply); ok {
			if out = r.Reason.String(); r.Reason == store.NoReason {
				out = ""
				for _, v := range r.Values {
					out += fmt.Sprintf("%s@%d ", v.Bytes, v.Version.Time)
				}
			}
		}
	}
	return out
}

// put writes a version of a key.
func (a *alone) put(key store.Key, time clock.Stamp) {
	a.call(func(env *protocol.Env[store.Message]) {
		v := store.Value{Version: store.Version{Time: uint64(time), Client: 1}, Present: true, Bytes: []byte("v")}
		if err := a.state.values.Put(a.written(env), key, v); err != nil {
			panic(err)
		}
	})
}

// stampOf returns the timestamp of a transaction that writes a key, prepared when the clock is at
// zero.
func (a *alone) stampOf(key store.Key) (stamp uint64) {
	a.call(func(env *protocol.Env[store.Message]) {
		env.Now = 0
		stamp = a.stamp(env, footprint{Writes: []store.Read{{Key: key}}})
	})
	return stamp
}

func expect(t *testing.T, what string, got, want any) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestDeposedLeaderServesThePast: a leader that nobody follows any more does not know it. It serves
// what is at or below the ceiling, above which its successor begins, and nothing else.
func TestDeposedLeaderServesThePast(t *testing.T) {
	a := leader(t, 500)
	a.put("k", 7)
	expect(t, "below the ceiling", a.at(snapshotRequest{At: 400}, "k"), "v@7 ")
	expect(t, "at the ceiling", a.at(snapshotRequest{At: 500}, "k"), "v@7 ")
	expect(t, "above it", a.at(snapshotRequest{At: 501}, "k"), "waits")
	a.call(a.follows)
	expect(t, "as a follower", a.at(snapshotRequest{At: 400}, "k"), "waits")
}

// TestLeaderBeginsAboveTheCeiling: after a restart, or elsewhere, nobody knows what was read, but
// that it was not above the ceiling.
func TestLeaderBeginsAboveTheCeiling(t *testing.T) {
	a := leader(t, 500)
	if got := a.stampOf("k"); got <= 500 {
		t.Errorf("the ceiling is 500, and a new leader prepares at %d", got)
	}
	a.call(a.follows) // it is elected, and prepares what it recovers before it serves
	if got := a.stampOf("k"); got <= 500 {
		t.Errorf("the ceiling is 500, and a new leader recovers with %d", got)
	}
}

// TestCeilingIsOnRecord: an entry of the log raises it, and a restart finds it.
func TestCeilingIsOnRecord(t *testing.T) {
	a := leader(t, 500)
	a.call(func(env *protocol.Env[store.Message]) {
		b, err := a.state.format.Append(nil, raised{700})
		if err != nil {
			t.Fatal(err)
		}
		a.state.Apply(a.written(env), raft.Position{Index: 1, Term: 3}, b)
		expect(t, "the ceiling on record", a.state.values.Ceiling(a.written(env)), clock.Stamp(700))
	})
}

// TestWritesAreAboveReads (C1): whoever is prepared after a read of what it writes gets a later
// timestamp, whatever the clock says; so does what is prepared after the end of somebody who has
// read, at another partition, as of a later time.
func TestWritesAreAboveReads(t *testing.T) {
	a := leader(t, 500)
	expect(t, "a read", a.at(snapshotRequest{At: 500}, "k"), "@0 ")
	a.reads.Recorded(900)
	expect(t, "a later one", a.at(snapshotRequest{At: 800}, "k"), "@0 ")
	if got := a.stampOf("k"); got != 801 {
		t.Errorf("read at 800, a key is written at %d", got)
	}
	if got := a.stampOf("l"); got != 501 {
		t.Errorf("a key that nobody has read is written at %d", got)
	}
	a.call(func(env *protocol.Env[store.Message]) {
		f := footprint{Reads: []store.Read{{Key: "m", Version: store.Version{Time: 600}}}}
		expect(t, "above a version that is read", a.stamp(env, f), uint64(601))
	})
	a.state.latest = 1000
	if got := a.stampOf("l"); got != 1001 {
		t.Errorf("after a transaction at 1000 was carried out, one is prepared at %d", got)
	}
	a.reads.Recorded(3000)
	a.call(func(env *protocol.Env[store.Message]) {
		a.Receive(env, 10, checkRequest{ID: txnID(5), At: 2000, Reads: []store.Read{{Key: "k"}}})
	})
	if got := a.stampOf("k"); got != 2001 {
		t.Errorf("read by a transaction that has seen 2000, a key is written at %d", got)
	}
}

// TestWhoIsInTheWay: what a read at a timestamp waits for: whoever is prepared and may get an
// earlier version. That of a transaction that was recovered may have been told already, and be any
// (C2).
func TestWhoIsInTheWay(t *testing.T) {
	writes := ballot{Yes: true, Stamp: 300, footprint: footprint{Writes: []store.Read{{Key: "k"}}}}
	for _, tc := range []struct {
		what   string
		at     clock.Stamp
		before func(a *alone, env *protocol.Env[store.Message])
		want   string
	}{
		{"prepared before", 300, func(a *alone, env *protocol.Env[store.Message]) {
			a.state.prepare(a.written(env), prepared{Part: partID{txnID(1), 1}, Ballot: writes})
		}, "waits"},
		{"prepared after", 299, func(a *alone, env *protocol.Env[store.Message]) {
			a.state.prepare(a.written(env), prepared{Part: partID{txnID(1), 1}, Ballot: writes})
		}, "@0 "},
		{"recovered", 299, func(a *alone, env *protocol.Env[store.Message]) {
			a.state.prepare(a.written(env), prepared{Part: partID{txnID(1), 1}, Ballot: writes, Recovered: true})
		}, "waits"},
		{"about to be prepared before", 300, func(a *alone, _ *protocol.Env[store.Message]) {
			a.flying[partID{txnID(1), 1}] = &prepared{Part: partID{txnID(1), 1}, Ballot: writes}
			a.flyingLocks.add(txnID(1), writes.footprint)
		}, "waits"},
		{"about to be prepared after", 299, func(a *alone, _ *protocol.Env[store.Message]) {
			a.flying[partID{txnID(1), 1}] = &prepared{Part: partID{txnID(1), 1}, Ballot: writes}
			a.flyingLocks.add(txnID(1), writes.footprint)
		}, "@0 "},
	} {
		a := leader(t, 500)
		a.call(func(env *protocol.Env[store.Message]) { tc.before(a, env) })
		expect(t, tc.what, a.at(snapshotRequest{At: tc.at}, "k"), tc.want)
		expect(t, tc.what+", another key", a.at(snapshotRequest{At: tc.at}, "l"), "@0 ")
	}
}

// TestOverwritten: a strict read sees nothing that was overwritten, as that may have been told. One
// that is serializable sees what was there.
func TestOverwritten(t *testing.T) {
	a := leader(t, 500)
	a.put("k", 7)
	a.put("k", 400)
	expect(t, "strict", a.at(snapshotRequest{At: 399, Strict: true}, "k"), "stale read")
	expect(t, "strict, later", a.at(snapshotRequest{At: 400, Strict: true}, "k"), "v@400 ")
	expect(t, "serializable", a.at(snapshotRequest{At: 399}, "k"), "v@7 ")
}

// TestClocksThatAreOff: nobody serves a timestamp that is far ahead of its own clock; and nothing
// strict with a clock that is not what it should be, which it sees by others' clocks or by what it
// has carried out.
func TestClocksThatAreOff(t *testing.T) {
	ahead := store.Ahead.String()
	bound := clock.Stamp(10 * time.Millisecond)
	a := leader(t, 4*second)
	expect(t, "as far ahead as clocks may be", a.at(snapshotRequest{At: second + bound}, "k"), "@0 ")
	expect(t, "further", a.at(snapshotRequest{At: second + bound + 1}, "k"), ahead)
	a.state.latest = uint64(second) + 1
	expect(t, "strict, what was carried out is ahead", a.at(snapshotRequest{At: 5, Strict: true}, "k"), ahead)
	a.state.latest = 0
	expect(t, "strict", a.at(snapshotRequest{At: 5, Strict: true}, "k"), "@0 ")
	others := []protocol.ID{a.cfg.Layout.Sites[1].Coordinators[0], a.cfg.Layout.Sites[2].Coordinators[0]}
	answer := func(from protocol.ID, sent, now time.Duration) {
		a.call(func(env *protocol.Env[store.Message]) {
			env.Now = time.Duration(second)
			a.Receive(env, from, timeReply{sent, now})
		})
	}
	sent := time.Duration(second) - 100*time.Millisecond // give or take 50 ms
	off := sent + 50*time.Millisecond + 61*time.Millisecond
	answer(others[0], sent, off)
	answer(others[1], sent, off-2*time.Millisecond) // may be right
	expect(t, "one of two clocks is far away", a.at(snapshotRequest{At: 5, Strict: true}, "k"), "@0 ")
	answer(others[1], sent, off)
	answer(others[1], 2*time.Duration(second), off-time.Hour) // the own clock was set back meanwhile
	expect(t, "both are", a.at(snapshotRequest{At: 5, Strict: true}, "k"), ahead)
	expect(t, "both are, serializable", a.at(snapshotRequest{At: 5}, "k"), "@0 ")
	answer(others[0], sent, sent+50*time.Millisecond)
	expect(t, "it is right again", a.at(snapshotRequest{At: 5, Strict: true}, "k"), "@0 ")
}

// TestToldInOrder (C16): T1 is told, T2 begins at another site, whose clock is as far behind as it
// may be. A transaction that only reads may not see T2 without T1.
func TestToldInOrder(t *testing.T) {
	modes(t, func(t *testing.T, mode variant) {
		const bound = 400 * time.Millisecond
		var w *storetest.World
		answers := map[uint64]store.Message{}
		w, err := storetest.New(subject(mode), storetest.Scenario{Seed: 1, Keys: 1,
			Configure: func(c *store.Config) { c.MaxOffset = bound },
			App: func(_ protocol.ID, msg store.Message) {
				switch m := msg.(type) {
				case store.Done:
					answers[m.Ref] = m
				case store.Declared:
					answers[m.Ref] = m
				case store.Got:
					answers[m.Ref] = m
				}
			}})
		if err != nil {
			t.Fatal(err)
		}
		for i, off := range []time.Duration{bound/2 - 10*time.Millisecond, 10*time.Millisecond - bound/2,
			10*time.Millisecond - bound/2} {
			w.Add(protocol.ID(200+i), wan.Site(w.Layout.Sites[i].Name))
			for _, id := range w.SiteNodes(i) {
				if err := w.Sim.SetClock(id, sim.Clock{Offset: off}); err != nil {
					t.Fatal(err)
				}
			}
		}
		ask := func(client protocol.ID, ref uint64, m store.Message) store.Message {
			w.Sim.Deliver(client, m)
			if err := w.Sim.RunUntil(20*time.Second, func() bool { return answers[ref] != nil }); err != nil {
				t.Fatal(err)
			}
			return answers[ref]
		}
		if err := w.Sim.Run(2 * time.Second); err != nil {
			t.Fatal(err)
		}
		keys := make([]store.Key, 2) // the first is led at the first site, the second at the second
		for i := range 100 {
			k := store.Key(fmt.Sprint("k", i))
			keys[w.Layout.ShardOf(k)] = k
		}
		view := func(ref uint64) store.Declared {
			m := store.Declare{Ref: ref, Reads: []store.Key{min(keys[0], keys[1]), max(keys[0], keys[1])}}
			return ask(202, ref, m).(store.Declared)
		}
		for i := range uint64(6) { // clients find out who is near
			ask(protocol.ID(200+i/2), 10+i, store.Get{Ref: 10 + i, Key: keys[i%2]})
		}
		if d := view(1); !d.OK { // leaders raise their ceilings
			t.Fatal("nothing is read")
		}
		for i, key := range keys {
			ref := uint64(2 + i)
			d := ask(protocol.ID(200+i), ref, store.Submit{Ref: ref, Writes: []store.Write{{Key: key, Bytes: []byte("x")}}})
			if d.(store.Done).Outcome.Verdict != store.Committed {
				t.Fatalf("T%d is %+v", i+1, d)
			}
		}
		if d := view(4); !d.OK || !d.Values[0].Value.Present || !d.Values[1].Value.Present {
			t.Errorf("both are told, and who only reads sees %+v", d)
		}
	})
}

// TestTypicalClock: a clock is off if it is surely further from the typical one than it may be, and
// only then; and what a server says of it is in its status, with the ceiling.
func TestTypicalClock(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	const bound = 10 * time.Millisecond
	differs := [2]int{}
	for range 10_000 {
		c := clocks{bound: bound, seen: map[protocol.ID]offset{}}
		for id := range protocol.ID(1 + r.IntN(5)) {
			c.peers = append(c.peers, id)
			if r.IntN(4) > 0 {
				c.seen[id] = offset{time.Duration(r.IntN(200)-100) * time.Millisecond, time.Duration(r.IntN(60)) * time.Millisecond}
			}
		}
		o, ok := c.typical()
		if off := ok && o.ahead.Abs() > o.within+bound; off != c.off() || ok != (len(c.seen) > 0) {
			t.Fatalf("of %v the typical one is %v, and the clock is off: %v", c.seen, o, c.off())
		} else if off {
			differs[1]++
		} else {
			differs[0]++
		}
	}
	if min(differs[0], differs[1]) < 1000 {
		t.Errorf("clocks are right and off %v times", differs)
	}

	a := leader(t, 4*second)
	var got store.ServerStatus
	status := func() *store.ClockStatus {
		a.call(func(env *protocol.Env[store.Message]) {
			a.Receive(env, protocol.App, store.StatusQuery{Ref: 1})
			for _, e := range env.Out {
				if st, ok := e.Msg.(store.ServerStatus); ok {
					got = st
				}
			}
		})
		return got.Clock
	}
	ceiling := uint64(4 * second)
	expect(t, "nobody has answered", *status(), store.ClockStatus{Leads: true, Ceiling: ceiling, MaxOffset: bound})
	for _, site := range a.cfg.Layout.Sites[1:] {
		a.call(func(env *protocol.Env[store.Message]) {
			env.Now = time.Duration(second)
			sent := env.Now - 100*time.Millisecond
			a.Receive(env, site.Coordinators[0], timeReply{sent, sent + 50*time.Millisecond - 300*time.Millisecond})
		})
	}
	expect(t, "both are behind", *status(), store.ClockStatus{Leads: true, Ceiling: ceiling, MaxOffset: bound,
		Sites: 2, Ahead: 300 * time.Millisecond, Within: 50 * time.Millisecond, Off: true})
}
