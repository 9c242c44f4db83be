package replicatedcommit

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// written returns how many bytes the last event wrote to the disk.
func (b *serverBench) written() (n int) {
	for _, e := range b.env.Out {
		if e.Kind == protocol.KindPut {
			n += len(e.Key) + len(e.Value)
		}
	}
	return n
}

// TestContentsAreWrittenOnce: what a large transaction writes is on disk once with the vote and
// once as the value. Afterwards it is not in memory, and those who lack it get it from the disk,
// also after a restart.
func TestContentsAreWrittenOnce(t *testing.T) {
	b := newServerBench(t)
	const size = 100_000
	large := bytes.Repeat([]byte("x"), size)
	id := store.TxnID{Time: uint64(b.now), Client: 1}
	txn := store.Txn{ID: id, Reads: []store.Read{{Key: "r"}}, Writes: []store.Write{{Key: "k", Bytes: large}}}
	b.give(10, prepare{Txn: txn, Shards: []uint32{0}})
	if n := b.written(); n < size || n > size+1000 {
		t.Errorf("a vote on %d bytes writes %d", size, n)
	}
	restart := func() {
		s, err := newServer(b.server.cfg)
		if err != nil {
			t.Fatal(err)
		}
		s.admission.admitted = true
		b.server = s
		b.do(func() { s.Start(b.env, nil) })
	}
	restart()
	if l := b.server.locks["k"]; l == nil || l.writer != id || b.server.locks["r"] == nil {
		t.Errorf("after a restart the locks are %v", b.server.locks)
	}
	b.give(10, decide{ID: id, Shards: []uint32{0}, Commit: true})
	if n := b.written(); n < size || n > size+1000 {
		t.Errorf("a decision on %d bytes writes %d", size, n)
	}
	for _, when := range []string{"when it is decided", "after a restart"} {
		if r := b.server.txns[id]; r.reads != nil || r.writes != nil {
			t.Errorf("%s: %d bytes are in memory", when, store.ContentBytes(r.reads, r.writes))
		}
		b.give(21, fetch{ID: id})
		got := content{}
		for _, e := range b.env.Out {
			if m, ok := e.Msg.(content); ok {
				got = m
			}
		}
		if len(got.Writes) != 1 || !bytes.Equal(got.Writes[0].Bytes, large) {
			t.Errorf("%s: another site is told %d writes", when, len(got.Writes))
		}
		restart()
	}
	b.give(10, forget{ID: id})
	b.now += 2 * b.server.cfg.Retain
	b.do(func() { b.server.Expire(b.env, retentionTimer{}) })
	for key := range b.disk {
		if strings.HasPrefix(key, contentsPrefix) || strings.HasPrefix(key, txnPrefix) {
			t.Errorf("%q is left when the transaction is forgotten", key)
		}
	}
}

// TestPatience: a client gives sites time for what it sends them, and asks as seldom as they
// answer.
func TestPatience(t *testing.T) {
	c, err := newClient(store.Config{ID: 99, Layout: layout(3, 1), RoundTrip: roundTrip})
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[message](nil, 99, rand.New(rand.NewPCG(1, 1)))
	now := time.Second
	submit := func(size int) (id store.TxnID, again time.Duration) {
		env.Begin(now)
		c.Receive(env, protocol.App, store.Submit{Ref: uint64(now),
			Writes: []store.Write{{Key: "k", Bytes: make([]byte, size)}}})
		for _, e := range env.Out {
			if t, ok := e.Timer.(kit.SubmitTimer); ok && e.Kind == protocol.KindAfter {
				id, again = t.ID, e.Delay.Truncate(time.Millisecond) // keys count, too
			}
		}
		return id, again
	}
	answer := func(id store.TxnID, after time.Duration) {
		now += after
		for _, from := range []protocol.ID{10, 20, 30} {
			env.Begin(now)
			c.Receive(env, from, store.SiteVote{ID: id, Yes: true})
		}
	}
	id, again := submit(0)
	if again != 2*roundTrip {
		t.Errorf("it asks again after %v, want %v", again, 2*roundTrip)
	}
	answer(id, roundTrip)
	one, again := submit(1 << 20)
	if again < 250*time.Millisecond || again > 250*time.Millisecond+3*roundTrip {
		t.Errorf("it asks again after %v, want a quarter of a second more than for nothing", again)
	}
	two, more := submit(1 << 20)
	if more-again != 250*time.Millisecond {
		t.Errorf("behind another one it asks again after %v, want 250ms more than %v", more, again)
	}
	answer(one, time.Millisecond)
	answer(two, time.Millisecond)
	if c.pace.bytes != 0 {
		t.Errorf("%d bytes are on their way when all is decided", c.pace.bytes)
	}
	for range 50 {
		id, _ := submit(0)
		answer(id, 5*roundTrip)
	}
	if _, again = submit(0); again < 5*roundTrip || again > 8*roundTrip {
		t.Errorf("where answers take %v it asks again after %v", 5*roundTrip, again)
	}
	for range 50 {
		id, _ := submit(0)
		answer(id, 100*roundTrip)
	}
	if _, again = submit(0); again > maxLag*roundTrip+time.Second {
		t.Errorf("it asks again after %v", again)
	}
}

// TestServerPatience: a server whose votes are followed by decisions late, as there is load, asks
// about a transaction later than one that hears of them at once.
func TestServerPatience(t *testing.T) {
	asksAfter := func(decided time.Duration) time.Duration {
		b := newServerBench(t)
		var asks time.Duration
		for range 30 {
			id := store.TxnID{Time: uint64(b.now), Client: 1}
			b.give(10, prepare{Txn: store.Txn{ID: id, Writes: []store.Write{{Key: store.Key(id.String())}}},
				Shards: []uint32{0}})
			for _, e := range b.env.Out {
				if _, ok := e.Timer.(resolveTimer); ok && e.Kind == protocol.KindAfter {
					asks = e.Delay
				}
			}
			b.now += decided
			b.give(10, decide{ID: id, Shards: []uint32{0}, Commit: true})
		}
		return asks
	}
	roundTrip := newServerBench(t).server.cfg.RoundTrip
	if soon, late := asksAfter(roundTrip), asksAfter(8*roundTrip); soon > 5*roundTrip || late < 8*roundTrip ||
		late > 14*roundTrip {
		t.Errorf("with decisions after %v and %v it asks after %v and %v", roundTrip, 8*roundTrip, soon, late)
	}
	if never := asksAfter(time.Hour); never > (maxLag+1)*roundTrip {
		t.Errorf("it asks after %v at the latest, want %v", never, maxLag*roundTrip)
	}
}
