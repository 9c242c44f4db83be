package layered

import (
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/sim/deploy"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
	"github.com/foresay/foresay/store/storedeploy"
	"github.com/foresay/foresay/wan"
)

// A town is a store of three sites, a round trip of 20 ms apart, with a client at each. The servers
// of a, the first site, lead.
type town struct {
	*storedeploy.Store
	t       *testing.T
	servers []protocol.ID // of the first shard
}

func newTown(t *testing.T, shards int) *town {
	t.Helper()
	w := &town{t: t}
	layout := storedeploy.Layout(3, shards)
	var err error
	w.Store, err = storedeploy.New(storedeploy.Config{Protocol: Protocol(), Layout: layout,
		Clients: []wan.Site{"a", "b", "c"},
		Sim:     sim.Config[store.Message]{WAN: wan.Uniform(20*time.Millisecond, "a", "b", "c")},
		Node:    func(c *store.Config) { c.RoundTrip = 20 * time.Millisecond }})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range layout.Sites {
		w.servers = append(w.servers, s.Shards[0])
	}
	w.pass(2 * time.Second) // to elect, and to measure
	return w
}

func (w *town) pass(d time.Duration) {
	w.t.Helper()
	if err := w.Pass(d); err != nil {
		w.t.Fatal(err)
	}
}

// call makes a call, and waits for the answer.
func (w *town) call(client int, message func(ref uint64) store.Message) (answer store.Message, took time.Duration) {
	w.t.Helper()
	w.Call(w.Clients[client], message, func(a deploy.Answer[store.Message]) { answer, took = a.Msg, a.Took })
	if err := w.Await(20*time.Second, func() bool { return answer != nil }); err != nil {
		w.t.Fatal(err)
	}
	return answer, took
}

// read reads a key; again says that the transaction was refused before.
func (w *town) read(client int, key store.Key, again bool) (store.Got, time.Duration) {
	w.t.Helper()
	got, took := w.call(client, func(ref uint64) store.Message {
		m := store.Get{Ref: ref, Key: key}
		if again {
			m.Priority = store.Priority{Began: 1, Client: store.ClientID(client) + 1}
		}
		return m
	})
	return got.(store.Got), took
}

// commit commits a transaction that has read and writes so.
func (w *town) commit(client int, reads []store.Read, writes ...store.Write) (store.Outcome, time.Duration) {
	w.t.Helper()
	done, took := w.call(client, func(ref uint64) store.Message {
		return store.Submit{Ref: ref, Reads: reads, Writes: writes}
	})
	return done.(store.Done).Outcome, took
}

// TestReads: a read takes the way to the leader, and that to its majority if it is tried again. A
// check takes a round trip to the leader, and one of the leader's. If nobody says that it leads, a
// majority's answers are enough.
func TestReads(t *testing.T) {
	const trip = 20 * time.Millisecond
	w := newTown(t, 2)
	w.read(1, "y", false) // b's client learns that b is near
	for _, tc := range []struct {
		client int
		again  bool
		want   time.Duration
	}{{0, false, 0}, {0, true, trip}, {1, false, trip}, {1, true, 2 * trip}} {
		if got, took := w.read(tc.client, "y", tc.again); !got.OK || took != tc.want {
			t.Errorf("client %d, again %v: a read takes %v (%v), want %v", tc.client, tc.again, took, got.OK, tc.want)
		}
	}
	w.commit(1, nil, store.Write{Key: "y", Bytes: []byte("1")}) // b's coordinator learns who leads
	got, _ := w.read(1, "y", false)
	if o, took := w.commit(1, []store.Read{{Key: "y", Version: got.Value.Version}}); o.Verdict != store.Committed ||
		took != 2*trip {
		t.Errorf("what was read is %v after %v, want committed after %v", o, took, 2*trip)
	}
	w.Crash(w.servers[0], sim.KeepNone)
	if got, took := w.read(1, "y", false); !got.OK || string(got.Value.Bytes) != "1" || took < trip || took > 3*trip {
		t.Errorf("without a leader a read takes %v and has %q (%v)", took, got.Value.Bytes, got.OK)
	}
}

// TestDeposedLeader: who leads no more, and does not know, answers reads by what it has. Neither a
// transaction that stands on that is committed, nor does one that is tried again read it.
func TestDeposedLeader(t *testing.T) {
	w := newTown(t, 1)
	for client := range w.Clients {
		w.read(client, "x", false) // it learns that its site is near
	}
	w.commit(1, nil, store.Write{Key: "x", Bytes: []byte("old")})
	w.Partition(w.servers[:1], w.servers[1:])
	w.pass(25 * time.Millisecond)
	w.Jump(w.servers[0], -time.Hour) // it misses nobody
	w.pass(time.Second)
	if o, _ := w.commit(1, nil, store.Write{Key: "x", Bytes: []byte("new")}); o.Verdict != store.Committed {
		t.Fatalf("without a the others have %v", o)
	}
	got, _ := w.read(0, "x", false)
	if string(got.Value.Bytes) != "old" {
		t.Fatalf("a's server has %q: it knows that it leads no more", got.Value.Bytes)
	}
	if o, _ := w.commit(0, []store.Read{{Key: "x", Version: got.Value.Version}}); o.Reason != store.StaleRead {
		t.Errorf("a transaction that has read what is old is %v (%v)", o.Verdict, o.Reason)
	}
	if got, _ := w.read(0, "x", true); string(got.Value.Bytes) != "new" {
		t.Errorf("who tries again reads %q", got.Value.Bytes)
	}
}

// TestReadOnlyAgain: a transaction that only reads is refused while somebody writes. Tried again it
// waits for that one, as a transaction that writes does, however many others write the key.
func TestReadOnlyAgain(t *testing.T) {
	const trip = 20 * time.Millisecond
	w := newTown(t, 1)
	leads := w.Get(w.servers[0]).(*server)
	carryOut := func(command any) {
		b, err := leads.shard.format.Append(nil, command)
		if err != nil {
			t.Fatal(err)
		}
		w.Deliver(leads.cfg.ID, kit.Ask{Ref: 1, Command: b})
	}
	now := uint64(w.Clock(leads.cfg.ID))
	first := aged(now, now, "k")
	carryOut(first)
	w.pass(2 * trip)
	read := func(p store.Priority) (out store.Outcome) {
		done, _ := w.call(0, func(ref uint64) store.Message {
			return store.Submit{Ref: ref, Priority: p, Reads: []store.Read{{Key: "k"}}}
		})
		return done.(store.Done).Outcome
	}
	if o := read(store.Priority{}); o.Reason != store.Locked {
		t.Errorf("at first it is %v (%v), want refused", o.Verdict, o.Reason)
	}
	w.After(4*trip, func() { carryOut(ends(first, false)) })
	if o := read(store.Priority{Began: now - 1, Client: 9}); o.Verdict != store.Committed {
		t.Errorf("tried again it is %v (%v)", o.Verdict, o.Reason)
	}
}

// TestChecksEnd: nothing is asked any more for a transaction that only reads and is refused.
func TestChecksEnd(t *testing.T) {
	w := newTown(t, 2)
	layout := storedeploy.Layout(3, 2)
	var keys [2]store.Key // of each shard
	for _, k := range []store.Key{"a", "b", "c", "d", "e", "f"} {
		keys[layout.ShardOf(k)] = k
	}
	for _, s := range layout.Sites {
		w.Crash(s.Shards[1], sim.KeepNone)
	}
	reads := []store.Read{{Key: keys[0], Version: store.Version{Time: 7, Client: 7}}, {Key: keys[1]}}
	for range 3 {
		if o, _ := w.commit(0, reads); o.Reason != store.StaleRead {
			t.Fatalf("what is out of date is %v (%v)", o.Verdict, o.Reason)
		}
	}
	for _, s := range layout.Sites {
		if c := w.Get(s.Coordinators[0]).(*coordinator); c.calls.Len() > 0 {
			t.Errorf("%d calls are under way at %s", c.calls.Len(), s.Name)
		}
	}
}

// TestFarAhead: nothing is on record of a transaction whose time no clock has.
func TestFarAhead(t *testing.T) {
	w := newTown(t, 1)
	at := storedeploy.Layout(3, 1).Sites[0].Coordinators[0]
	id := store.TxnID{Time: 1 << 63, Client: 1}
	w.Deliver(at, store.CommitRequest{Txn: store.Txn{ID: id, Writes: []store.Write{{Key: "k"}}}})
	w.pass(time.Second)
	s := w.Get(w.servers[0]).(*server).shard
	if n := len(w.Get(at).(*coordinator).entries); n > 0 || s.books.next > 0 || len(s.open) > 0 {
		t.Errorf("%d are open at the coordinator, %d at the shard, %d have ended there", n, len(s.open), s.books.next)
	}
}
