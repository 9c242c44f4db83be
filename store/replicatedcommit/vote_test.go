package replicatedcommit

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// TestRefusalOfMuch: what a refusal has no room for is named all the same, so that the client reads
// it again.
func TestRefusalOfMuch(t *testing.T) {
	s := newScript(t, nil)
	var keys []store.Key // of one shard, in order
	for c := 'a'; len(keys) < 3; c++ {
		if k := store.Key(c); s.Layout.ShardOf(k) == 0 {
			keys = append(keys, k)
		}
	}
	d, _ := s.done(200, s.submit(200, "small", keys[0], keys[2]))
	want(t, d, store.Committed)
	d, _ = s.done(200, s.submit(200, string(bytes.Repeat([]byte("b"), maxCurrentBytes)), keys[1]))
	want(t, d, store.Committed)
	s.run(time.Second)
	s.ref++
	s.Sim.Deliver(201, store.Submit{Ref: s.ref, Reads: []store.Read{{Key: keys[0]}, {Key: keys[1]}, {Key: keys[2]}}})
	d, _ = s.done(201, s.ref)
	want(t, d, store.Aborted)
	got := map[store.Key]string{}
	for _, c := range d.Current {
		got[c.Key] = fmt.Sprintf("%s %v", c.Value.Bytes, c.Locked)
	}
	if diff := cmp.Diff(map[store.Key]string{keys[0]: "small false", keys[1]: " true", keys[2]: "small false"},
		got); diff != "" {
		t.Errorf("the client is told (-want +got):\n%s", diff)
	}
}

// TestRefusalIsToldOnce: a site's refusal has what the first of its shards that refuses has said.
// Nothing of it is kept, nor what other shards say later.
func TestRefusalIsToldOnce(t *testing.T) {
	co, err := newCoordinator(store.Config{ID: 10, Layout: layout(3, 2)})
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[message](nil, 10, rand.New(rand.NewPCG(1, 1)))
	give := func(from protocol.ID, m message) (told []store.SiteVote) {
		env.Begin(time.Hour)
		co.Receive(env, from, m)
		for _, e := range env.Out {
			if v, ok := e.Msg.(store.SiteVote); ok && e.To == 99 {
				told = append(told, v)
			}
		}
		return told
	}
	l := co.cfg.Layout
	keys := [2]store.Key{}
	for i := 0; keys[0] == "" || keys[1] == ""; i++ {
		k := store.Key(fmt.Sprint("k", i))
		keys[l.ShardOf(k)] = k
	}
	txn := store.Txn{ID: store.TxnID{Time: uint64(time.Hour), Client: 1}, Reads: []store.Read{{Key: min(keys[0], keys[1])},
		{Key: max(keys[0], keys[1])}}, Writes: []store.Write{{Key: keys[0]}}}
	request := store.CommitRequest{Txn: txn}
	if told := give(99, request); len(told) != 0 {
		t.Fatalf("it tells %v", told)
	}
	refusal := func(k store.Key) vote {
		c := store.Current{Key: k, Value: store.Value{Version: store.Version{Time: 7}, Present: true,
			Bytes: make([]byte, maxCurrentBytes)}}
		return vote{ID: txn.ID, State: no, Reason: store.StaleRead, Current: []store.Current{c}}
	}
	told := give(11, refusal(keys[0]))
	if len(told) != 1 || len(told[0].Current) != 1 || told[0].Current[0].Key != keys[0] {
		t.Fatalf("the first refusal tells %v", told)
	}
	give(12, refusal(keys[1]))
	for range 3 {
		if told := give(99, request); len(told) != 1 || told[0].Yes || len(told[0].Current) != 0 {
			t.Errorf("who asks again is told %d votes, with %d values", len(told), len(told[0].Current))
		}
	}
}
