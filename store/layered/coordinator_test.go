package layered

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
	"github.com/foresay/foresay/store/storedeploy"
)

// coordinating returns a coordinator that was sent a transaction at a time, and the server of the
// one shard that it has asked.
func coordinating(t *testing.T, now time.Duration, txn store.Txn) (
	c *coordinator, env *protocol.Env[store.Message], server protocol.ID,
) {
	t.Helper()
	layout := storedeploy.Layout(3, 1)
	c, err := newCoordinator(store.Config{ID: layout.Sites[0].Coordinators[0], Layout: layout, RoundTrip: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	env = protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
	env.Begin(now)
	c.Start(env, nil)
	c.Receive(env, 200, store.CommitRequest{Txn: txn})
	return c, env, layout.Sites[0].Shards[0]
}

// lastAsk returns what a coordinator has asked last.
func lastAsk(t *testing.T, env *protocol.Env[store.Message]) (last kit.Ask) {
	t.Helper()
	for _, e := range env.Out {
		if m, ok := e.Msg.(kit.Ask); ok {
			last = m
		}
	}
	if last.Ref == 0 {
		t.Fatal("nobody is asked")
	}
	return last
}

// TestCoordinatorWaits: a coordinator that is told that its transaction waits allows for the
// longest wait, and takes the vote when it comes.
func TestCoordinatorWaits(t *testing.T) {
	txn := store.Txn{ID: store.TxnID{Time: 1, Client: 1}, Writes: []store.Write{{Key: "k"}}}
	c, env, server := coordinating(t, time.Minute, txn)
	ref := lastAsk(t, env).Ref
	env.Begin(time.Minute)
	c.Receive(env, server, told{Ref: ref, Result: result{State: waiting}})
	var wait time.Duration
	for _, e := range env.Out {
		if e.Timer == (kit.GroupCallTimer{Ref: ref}) {
			wait = e.Delay
		}
	}
	if wait <= longestWait*time.Second {
		t.Errorf("it asks again after %v, and the transaction waits for %v at most", wait, longestWait*time.Second)
	}
	c.Receive(env, server, told{Ref: ref, Result: result{State: committed}})
	if c.calls.Len()+len(c.entries) != 0 {
		t.Errorf("%d calls and %d transactions are left after the answer", c.calls.Len(), len(c.entries))
	}
}

// TestNobodyIsOldForEver: what a client says of its transaction's age counts only as far back as
// transactions are remembered, be it the priority or the name that says so.
func TestNobodyIsOldForEver(t *testing.T) {
	const now = uint64(time.Hour)
	for _, tc := range []struct{ id, began, want uint64 }{
		{now, now, now}, {now, now - uint64(time.Second), now - uint64(time.Second)}, {now, 0, 0}, {now, 1, now}, {2, 0, now},
	} {
		txn := store.Txn{ID: store.TxnID{Time: tc.id, Client: 7}, Priority: store.Priority{Began: tc.began, Client: 7},
			Writes: []store.Write{{Key: "k"}}}
		if tc.began == 0 {
			txn.Priority = store.Priority{}
		}
		_, env, _ := coordinating(t, time.Hour, txn)
		command, err := commandFormat().Decode(lastAsk(t, env).Command)
		if m, ok := command.(prepare); err != nil || !ok || m.Txn.ID != txn.ID || m.Txn.Priority.Began != tc.want {
			t.Errorf("transaction %d that began at %d is sent as %+v (%v), want it as of %d", tc.id, tc.began, command, err,
				tc.want)
		}
	}
}
