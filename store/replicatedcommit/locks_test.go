package replicatedcommit

import (
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// serverBench calls server 11 of one shard by hand.
type serverBench struct {
	*testing.T
	server *server
	env    *protocol.Env[message]
	disk   benchDisk
	now    time.Duration
	last   store.ClientID // each transaction is another client's
}

// benchDisk has what a server on a bench has written.
type benchDisk map[string][]byte

func (d benchDisk) Get(key []byte) ([]byte, bool) {
	v, ok := d[string(key)]
	return v, ok
}

func (d benchDisk) Scan(lo, hi []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		for _, k := range slices.Sorted(maps.Keys(d)) {
			if k >= string(lo) && (hi == nil || k < string(hi)) && !yield([]byte(k), d[k]) {
				return
			}
		}
	}
}

func newServerBench(t *testing.T) *serverBench {
	s, err := newServer(store.Config{ID: 11, Layout: layout(3, 1)})
	if err != nil {
		t.Fatal(err)
	}
	s.admission.admitted = true
	disk := benchDisk{}
	b := &serverBench{t, s, protocol.NewEnv[message](disk, 11, rand.New(rand.NewPCG(1, 2))), disk, 10 * time.Hour, 0}
	b.do(func() { s.Start(b.env, nil) })
	return b
}

func (b *serverBench) do(call func()) {
	b.Helper()
	b.env.Begin(b.now)
	call()
	for _, e := range b.env.Out {
		switch e.Kind {
		case protocol.KindPut:
			b.disk[string(e.Key)] = e.Value
		case protocol.KindDelete:
			delete(b.disk, string(e.Key))
		}
	}
	if err := b.server.Check(); err != nil {
		b.Fatal(err)
	}
}

func (b *serverBench) give(from protocol.ID, m message) {
	b.Helper()
	b.do(func() { b.server.Receive(b.env, from, m) })
}

// write has the server vote on a write of a key at a time, and commits it if it says yes.
func (b *serverBench) write(key store.Key, at time.Duration, p store.Priority) vote {
	b.Helper()
	b.last++
	id := store.TxnID{Time: uint64(at), Client: b.last}
	b.give(10, prepare{Txn: store.Txn{ID: id, Priority: p, Writes: []store.Write{{Key: key}}}, Shards: []uint32{0}})
	for _, e := range b.env.Out {
		if v, ok := e.Msg.(vote); ok && v.ID == id {
			if v.State == yes {
				b.give(10, decide{ID: id, Shards: []uint32{0}, Commit: true})
			}
			return v
		}
	}
	b.Fatalf("no vote on a write of %s at %v", key, at)
	return vote{}
}

func (b *serverBench) wantReason(v vote, want store.Reason) {
	b.Helper()
	if v.Reason != want || (v.State == yes) != (want == store.NoReason) {
		b.Errorf("the vote is %+v, want the reason %v", v, want)
	}
}

// TestVersionsStayNearTheClock: no number of writes makes a key's version much later than the
// server's clock plus MaxAhead, and a key that has such a version can be written.
func TestVersionsStayNearTheClock(t *testing.T) {
	b := newServerBench(t)
	limit := b.now + b.server.cfg.MaxAhead
	b.wantReason(b.write("k", limit+1, store.Priority{}), store.Ahead)
	b.wantReason(b.write("k", limit, store.Priority{}), store.NoReason)
	b.wantReason(b.write("k", limit+time.Second, store.Priority{}), store.Ahead) // though that is near to the key's
	b.wantReason(b.write("l", limit+1, store.Priority{}), store.Ahead)

	b.now -= time.Hour // as a clock does that is set
	b.wantReason(b.write("k", limit+time.Second, store.Priority{}), store.Ahead)
	last := limit
	for range 3 { // of clients that have seen it
		last++
		b.wantReason(b.write("k", last, store.Priority{}), store.NoReason)
	}
	b.wantReason(b.write("l", last+1, store.Priority{}), store.Ahead)
}

// TestPrioritiesEnd: nobody goes before others with an age that is none. Who is refused has it for
// as long as transactions are remembered.
func TestPrioritiesEnd(t *testing.T) {
	b := newServerBench(t)
	other := store.Priority{Began: uint64(b.now - time.Second), Client: 2}
	for _, tc := range []struct {
		name string
		age  time.Duration
		want store.Reason
	}{
		{"since the beginning of time", b.now - 1, store.NoReason},
		{"too old", b.server.cfg.Retain + 1, store.NoReason},
		{"old", b.server.cfg.Retain, store.Reserved},
		{"younger than the writer", 0, store.NoReason},
	} {
		key := store.Key(tc.name)
		b.give(200, store.ReadRequest{Ref: 1, Key: key, Priority: store.Priority{Began: uint64(b.now - tc.age), Client: 1}})
		v := b.write(key, b.now, other)
		if v.Reason != tc.want {
			t.Errorf("%s: the vote is %+v, want the reason %v", tc.name, v, tc.want)
		}
		b.now++ // a name of its own
	}
	// Who reserves first is not displaced, and who writes does not go first, by such ages.
	b.give(200, store.ReadRequest{Ref: 2, Key: "k", Priority: other})
	for _, began := range []uint64{1, uint64(b.now+b.server.cfg.MaxAhead) + 1} {
		p := store.Priority{Began: began, Client: 1}
		b.give(200, store.ReadRequest{Ref: 3, Key: "k", Priority: p})
		if got := b.server.reservations.Queue("k"); len(got) == 0 || got[0].Priority != other {
			t.Errorf("%v displaces %v: the key is %v's", p, other, got)
		}
		b.wantReason(b.write("k", b.now, p), store.Reserved)
		b.now++
	}
	// A reservation that was made in time does not refuse its own transaction.
	b.give(200, store.ReadRequest{Ref: 4, Key: "own", Priority: other})
	b.now += b.server.cfg.Retain
	b.wantReason(b.write("own", b.now, other), store.NoReason)
}

// TestReadOnlyGivesBack: a transaction that only reads and was tried again has been committed, and
// nobody wants its key any more.
func TestReadOnlyGivesBack(t *testing.T) {
	s := newScript(t, nil)
	d, _ := s.done(200, s.submit(200, "a", "k"))
	want(t, d, store.Committed)
	s.run(time.Second)
	p := d.Txn.Priority // as if that were tried again
	s.ref++
	s.Sim.Deliver(200, store.Get{Ref: s.ref, Key: "k", Priority: p})
	s.run(120 * time.Millisecond)
	s.ref++
	s.Sim.Deliver(200, store.Submit{Ref: s.ref, Priority: p, Reads: []store.Read{{Key: "k", Version: d.Txn.ID}}})
	d, _ = s.done(200, s.ref)
	want(t, d, store.Committed)
	d, _ = s.done(201, s.submit(201, "b", "k"))
	want(t, d, store.Committed)
}
