package simulated

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/geostore"
	"github.com/foresay/foresay/internal/storesim"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/plan"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/workload"
)

// farSites are a round trip of a second from each other, beside which all else takes no time.
func farSites() wan.Matrix { return wan.Uniform(time.Second, wan.Carousel().Sites()...) }

// farKeys returns so many keys of partitions that the first site has no copy of, where that can be.
func farKeys(all *population, n int) (keys []uint64) {
	for key := uint64(0); len(keys) < n; key++ {
		shard := all.Layout.ShardOf(store.Key(workload.Name(key)))
		if sites := all.Layout.SitesOf(shard); len(sites) == len(all.Layout.Sites) || !slices.Contains(sites, 0) {
			keys = append(keys, key)
		}
	}
	return keys
}

// TestDeclaredKeysAreAHint: a transaction that declares too little, or something else, comes to the
// same. It takes a round trip more for each key that its program has to wait for, but for the first
// if nothing that was declared had to be waited for, too. In carousel-basic to prepare a key that
// was not declared takes two round trips, as its leader asks the followers.
func TestDeclaredKeysAreAHint(t *testing.T) {
	for _, s := range plan.Systems() {
		if _, ok := storesim.ProtocolOf(s); !ok {
			continue
		}
		t.Run(string(s), func(t *testing.T) {
			t.Parallel()
			all := populated(t, s, farSites(), 1, 1)
			defer all.close()
			var txn workload.Txn
			for _, key := range farKeys(all, 3) {
				txn.Ops = append(txn.Ops, workload.Op{Key: key, Read: true, Write: true})
			}
			reads, writes := txn.Keys()
			times := uint64(0)
			play := func(reads, writes []string) (trips int) {
				var got *result
				all.clients[0].runs(program{reads: reads, writes: writes, code: func(ctx context.Context, tx workload.Tx) error {
					return txn.Run(ctx, tx, counted)
				}}, func(r result) { got = &r })
				await(t, all, func() bool { return got != nil })
				times++
				if got.verdict != store.Committed || got.err != nil || len(got.writes) != 3 {
					t.Fatalf("declared %v, %v: %v, %v", reads, writes, got.verdict, got.err)
				}
				for _, w := range got.writes {
					if count(w.Bytes) != times {
						t.Errorf("declared %v, %v: %s holds %d, want %d", reads, writes, w.Key, count(w.Bytes), times)
					}
				}
				if err := all.Pass(10 * time.Second); err != nil { // what it has locked is free, and at all copies
					t.Fatal(err)
				}
				return int(got.took.Round(time.Second) / time.Second)
			}
			near := false
			var some workload.Txn
			for key := range uint64(20) {
				some.Ops = append(some.Ops, workload.Op{Key: key, Read: true})
			}
			all.value = counted
			all.clients[0].makes(some, func(result) { near = true }) // who is near is known from now on
			await(t, all, func() bool { return near })
			least := play(reads, writes)
			for _, hint := range []struct {
				reads, writes []string
				more          int
			}{
				{reads[1:], writes, 1}, {nil, writes, 2}, {append(reads[1:], "other"), append(writes, "another"), 1},
				{nil, nil, 2},
			} {
				want := least + hint.more
				if s == plan.CarouselBasic {
					want++
				}
				if trips := play(hint.reads, hint.writes); trips != want {
					t.Errorf("declared %v, %v: %d round trips, want %d, as all declared are %d", hint.reads, hint.writes, trips,
						want, least)
				}
			}
		})
	}
}

// played are how long transactions took that committed, by who made them and what they do.
type played map[string]time.Duration

func (p played) add(site wan.Site, ops []workload.Op, took time.Duration) {
	p[fmt.Sprint(site, ops)] = took
}

// TestProgramsTakeAsLongAsOverGRPC: the same transactions take the same round trips in the
// simulator and over gRPC, whether their keys are declared or read one after the other.
func TestProgramsTakeAsLongAsOverGRPC(t *testing.T) {
	keys, err := workload.Zipfian(keyCount, 0)
	if err != nil {
		t.Fatal(err)
	}
	w := workload.Retwis{Keys: keys}
	for _, s := range plan.Systems() {
		if _, ok := storesim.ProtocolOf(s); !ok {
			continue
		}
		for _, declared := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/%v", s, declared), func(t *testing.T) {
				t.Parallel()
				there, here := overGRPC(t, s, w, declared), inSim(t, s, w, declared)
				compared := 0
				for what, took := range there {
					if want, ok := here[what]; ok {
						compared++
						if took < want-5*time.Millisecond || took > want+5*time.Millisecond {
							t.Errorf("%s takes %v over gRPC, %v in the simulator", what, took, want)
						}
					}
				}
				if compared < 20 {
					t.Errorf("%d transactions are compared", compared)
				}
			})
		}
	}
}

// overGRPC has a client at each site make transactions.
func overGRPC(t *testing.T, s plan.System, w workload.Workload, declared bool) played {
	all := played{}
	synctest.Test(t, func(t *testing.T) {
		p, _ := storesim.ProtocolOf(s)
		cfg := geostore.Config{Protocol: p, Matrix: wan.Carousel(), Shards: len(wan.Carousel().Sites()),
			ValueBytes: valueBytes, Declared: declared, Once: true, Sync: bench.SyncTime, Seed: 1}
		placement, err := placementOf(cfg.Matrix)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range placement {
			var names []string
			for _, site := range at {
				names = append(names, string(site))
			}
			if p.Partial {
				cfg.Placement = append(cfg.Placement, names)
			}
		}
		st, err := geostore.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := st.Close(); err != nil {
				t.Error(err)
			}
		}()
		clients, err := st.Connect(client.GRPC, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer clients.Close()
		got, err := clients.Play(t.Context(), geostore.Load{Workload: w, Seed: 1, Warm: 5 * time.Second, Txns: 40})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range got.Txns {
			if len(x.Attempts) > 0 && x.Attempts[len(x.Attempts)-1].Committed {
				all.add(x.Site, x.Ops, x.Took)
			}
		}
	})
	return all
}

// inSim has the same clients make the same transactions.
func inSim(t *testing.T, s plan.System, w workload.Workload, declared bool) played {
	pop := populated(t, s, wan.Carousel(), 1, 1)
	defer pop.close()
	pop.value = func([]byte) []byte { return make([]byte, valueBytes) }
	all := played{}
	for i, c := range pop.clients {
		c.random = rand.New(rand.NewPCG(1, uint64(i)))
		var next func()
		next = func() {
			txn := w.Next(c.random)
			p := program{code: func(ctx context.Context, tx workload.Tx) error { return txn.Run(ctx, tx, pop.value) }}
			if declared {
				p.reads, p.writes = txn.Keys()
			}
			c.runs(p, func(r result) {
				if r.verdict == store.Committed {
					all.add(c.site, txn.Ops, r.took)
				}
				pop.After(0, next)
			})
		}
		pop.After(time.Duration(c.random.Int64N(int64(startSpread))), next)
	}
	if err := pop.Pass(time.Minute); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestNothingIsLeftPrepared: what a transaction has declared to write and does not write is free
// when its program has ended, whatever that has ended with.
func TestNothingIsLeftPrepared(t *testing.T) {
	failure := errors.New("failure")
	all := populated(t, plan.CarouselFast, farSites(), 1, 1)
	defer all.close()
	key := workload.Name(farKeys(all, 1)[0])
	play := func(what func(tx workload.Tx) error) (r result) {
		done := false
		all.clients[0].runs(program{writes: []string{key}, code: func(_ context.Context, tx workload.Tx) error {
			return what(tx)
		}}, func(is result) { r, done = is, true })
		await(t, all, func() bool { return done })
		return r
	}
	write := func(tx workload.Tx) error { return tx.Put(key, []byte("x")) }
	play(write) // who is near is known from now on
	usual := play(write).took
	for _, end := range []func(tx workload.Tx) error{
		func(workload.Tx) error { return nil },
		func(workload.Tx) error { return failure },
		func(tx workload.Tx) error { return errors.Join(write(tx), failure) },
	} {
		before := play(end)
		if before.verdict != store.Committed || before.took > usual {
			t.Errorf("without effect: %v after %v (%v)", before.verdict, before.took, before.err)
		}
		if err := all.Pass(2 * time.Second); err != nil {
			t.Fatal(err)
		}
		if next := play(write); next.verdict != store.Committed || next.took > usual {
			t.Errorf("after one without effect the next is %v after %v, want %v", next.verdict, next.took, usual)
		}
	}
}

// TestProgramsEnd: a program that is not to go on ends, with what it waits for left open.
func TestProgramsEnd(t *testing.T) {
	all := populated(t, plan.Layered, farSites(), 1, 1)
	var ended error
	all.clients[0].runs(program{code: func(ctx context.Context, tx workload.Tx) error {
		_, _, ended = tx.Get(ctx, "key")
		return ended
	}}, func(result) { t.Error("it has come to a result") })
	if ended != nil {
		t.Error(ended)
	}
	all.close()
	if !errors.Is(ended, errStopped) {
		t.Errorf("the program has ended with %v", ended)
	}
}

// TestReadsGoTogether: what a transaction has read one key after the other is of one time if it is
// committed, whether some of it was declared or nothing.
func TestReadsGoTogether(t *testing.T) {
	for _, s := range plan.Systems() {
		if _, ok := storesim.ProtocolOf(s); !ok {
			continue
		}
		t.Run(string(s), func(t *testing.T) {
			t.Parallel()
			all := populated(t, s, wan.Carousel(), 1, 1)
			defer all.close()
			var both workload.Txn
			for key := range uint64(2) {
				both.Ops = append(both.Ops, workload.Op{Key: key, Read: true, Write: true})
			}
			all.value = counted
			var write func()
			write = func() { all.clients[0].makes(both, func(result) { all.After(0, write) }) }
			write()
			committed, refused := 0, 0
			for i, c := range all.clients[1:] {
				both := workload.Txn{Ops: []workload.Op{{Key: 0, Read: true}, {Key: 1, Read: true}}}
				p := program{code: func(ctx context.Context, tx workload.Tx) error { return both.Run(ctx, tx, nil) }}
				if i%2 == 0 {
					p.reads = []string{workload.Name(0)}
				}
				var read func()
				read = func() {
					c.runs(p, func(r result) {
						switch one, other := count(r.read["k0"].Bytes), count(r.read["k1"].Bytes); {
						case r.verdict != store.Committed:
							refused++
						case one != other:
							t.Errorf("a transaction has seen %d and %d", one, other)
						case one > 0:
							committed++
						}
						all.After(time.Duration(c.random.Int64N(int64(time.Second))), read)
					})
				}
				read()
			}
			if err := all.Pass(2 * time.Minute); err != nil {
				t.Fatal(err)
			}
			if committed < 20 || refused == 0 && !all.Protocol.Steps { // a snapshot is there
				t.Errorf("%d are committed, %d refused (want some of each)", committed, refused)
			}
		})
	}
}
