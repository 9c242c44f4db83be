package replicatedcommit

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/gate"
)

// TestRoom: when a server has as many transactions as it may, it forgets those that are carried out
// everywhere, if they are not all too young, and refuses new ones if that is not enough. Who is
// refused is so for good, also when there is room again.
func TestRoom(t *testing.T) {
	b := newServerBench(t)
	b.server.cfg.MaxTxns = 32
	put := func() (prepare, *vote) {
		b.now += time.Millisecond
		id := store.TxnID{Time: uint64(b.now), Client: 1}
		m := prepare{Txn: store.Txn{ID: id, Writes: []store.Write{{Key: store.Key(id.String())}}}, Shards: []uint32{0}}
		b.give(10, m)
		for _, e := range b.env.Out {
			if v, ok := e.Msg.(vote); ok && e.Kind == protocol.KindSend {
				return m, &v
			}
		}
		return m, nil
	}
	settle := func(m prepare) {
		b.give(10, decide{ID: m.Txn.ID, Shards: []uint32{0}, Commit: true})
		b.give(10, forget{ID: m.Txn.ID})
	}
	for range 8 * b.server.cfg.MaxTxns { // far more than there is room for, all of which are done
		m, v := put()
		if v == nil || v.State != yes {
			t.Fatalf("with %d done transactions the vote is %v", len(b.server.done), v)
		}
		settle(m)
		b.now += b.server.cfg.RoundTrip
	}
	var open []prepare
	for {
		m, v := put()
		if v == nil || v.State != yes {
			if v == nil || v.State != old || v.Reason != store.Overloaded || v.Hint < m.Txn.ID.Time {
				t.Fatalf("with %d open transactions the vote is %v, want that it is overloaded", len(open), v)
			}
			open = append(open, m)
			break
		}
		open = append(open, m)
	}
	if n := len(b.server.txns); n > b.server.cfg.MaxTxns {
		t.Errorf("%d transactions are remembered, with a limit of %d", n, b.server.cfg.MaxTxns)
	}
	if b.server.counts.Refused[store.Overloaded] != 1 {
		t.Errorf("refusals are counted as %v", b.server.counts.Refused)
	}
	last := open[len(open)-1]
	for _, m := range open[:len(open)-1] {
		settle(m)
	}
	b.now += 2 * keepFor * b.server.cfg.RoundTrip
	if _, v := put(); v == nil || v.State != yes {
		t.Errorf("when there is room again the vote is %v", v)
	}
	b.give(10, last)
	if slices.ContainsFunc(b.env.Out, func(e protocol.Effect[message]) bool {
		v, ok := e.Msg.(vote)
		return ok && v.State == yes
	}) {
		t.Error("who was turned away is voted for later")
	}
}

// TestCoordinatorWithoutRoom: a coordinator that remembers as many transactions as it may says so
// to clients and to its application, and has done nothing; its gate tells who asked.
func TestCoordinatorWithoutRoom(t *testing.T) {
	c, err := newCoordinator(store.Config{ID: 10, Layout: layout(3, 1), MaxTxns: 2})
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[message](nil, 10, rand.New(rand.NewPCG(1, 1)))
	ask := func(n uint64) (sent []message) {
		env.Begin(time.Hour)
		txn := store.Txn{ID: store.TxnID{Time: n, Client: 1}, Writes: []store.Write{{Key: "k"}}}
		c.Receive(env, 500, store.CommitRequest{Txn: txn})
		for _, e := range env.Out {
			if e.Kind == protocol.KindSend {
				sent = append(sent, e.Msg)
			}
		}
		return sent
	}
	for n := uint64(1); n <= 2; n++ {
		if sent := ask(n); len(sent) != 1 || reflect.TypeOf(sent[0]) != reflect.TypeFor[prepare]() {
			t.Fatalf("transaction %d: it sends %+v", n, sent)
		}
	}
	busy := store.Busy{ID: store.TxnID{Time: 3, Client: 1}}
	if sent := ask(3); !slices.ContainsFunc(sent, func(m message) bool {
		return m == message(busy)
	}) || !slices.Contains(sent, message(store.Full{Transactions: 2})) || len(sent) != 2 {
		t.Errorf("without room it sends %+v", sent)
	}
	if sent := ask(3); len(sent) != 1 {
		t.Errorf("a moment later it sends %+v", sent)
	}
	if sent := ask(2); len(sent) != 1 || reflect.TypeOf(sent[0]) != reflect.TypeFor[prepare]() {
		t.Errorf("of a transaction that it remembers it sends %+v", sent)
	}

	g, err := gate.New(store.Config{ID: 500, Layout: layout(3, 1)}, 0)
	if err != nil {
		t.Fatal(err)
	}
	env.Begin(time.Hour)
	g.Start(env, nil)
	g.Receive(env, protocol.App, gate.Commit{Ref: 7, Txn: store.Txn{ID: busy.ID, Writes: []store.Write{{Key: "k"}}}})
	env.Begin(time.Hour)
	g.Receive(env, 20, busy) // of another site
	g.Receive(env, 10, busy)
	var refused []gate.Refused
	for _, e := range env.Out {
		if m, ok := e.Msg.(gate.Refused); ok {
			refused = append(refused, m)
		}
	}
	if len(refused) != 1 || refused[0].Ref != 7 || !refused[0].Full || g.Check() != nil {
		t.Errorf("the gate says %+v, and has %v", refused, g.Check())
	}
}
