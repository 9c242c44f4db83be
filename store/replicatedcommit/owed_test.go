package replicatedcommit

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storetest"
)

// playAway plays clients while sites leave, one of three or two of five at a time, by a crash or
// cut off, for long enough that others forget what they have missed.
func playAway(seed uint64) (*world, error) {
	sc := storetest.Scenario{Seed: seed, Clients: 5, Keys: 6, Near: seed%2 == 0, Test: "TestSitesAway"}
	sc.Configure = func(c *store.Config) { c.Retain = time.Second }
	if seed%3 > 0 {
		sc.Faults = sim.Swarm(seed, sim.AllFaults&^sim.LostDisk)
	}
	if seed%5 == 1 {
		sc.Sites = 5
	}
	w, err := newWorld(sc)
	if err != nil {
		return nil, err
	}
	const lasting = 16 * time.Second
	for at := time.Second; at < lasting-5*time.Second; at += time.Duration(w.Rand.IntN(3)) * time.Second {
		gone := w.Rand.Perm(len(w.Layout.Sites))[:len(w.Layout.Sites)-w.Layout.Majority()]
		away := time.Duration(500+w.Rand.IntN(5500)) * time.Millisecond
		for _, i := range gone {
			w.Leave(i, at, away)
		}
		at += away
	}
	return w, w.Play(lasting)
}

// TestSitesAway: sites leave and come back at any time; what is committed stays so, and all sites
// hold the same in the end.
func TestSitesAway(t *testing.T) {
	first, seeds := seed.First(t, 1), seed.Count(t, 100)
	for shard := range 2 {
		t.Run(fmt.Sprint(shard), func(t *testing.T) {
			t.Parallel()
			committed := 0
			for i := shard; i < seeds; i += 2 {
				w, err := playAway(first + uint64(i))
				if err != nil {
					t.Fatalf("seed %d: %v", first+uint64(i), err)
				}
				committed += w.Verdicts[store.Committed]
			}
			if committed < 20*seeds {
				t.Errorf("only %d transactions committed", committed)
			}
		})
	}
}

// TestLongAway: what the others remember, and ask, while a site or one of its machines is away for
// minutes, many times what they remember, is what they do when it is there, and when it is back all
// is copied.
func TestLongAway(t *testing.T) {
	const minutes = 2
	key := store.Key(fmt.Sprint("k", (minutes*60-1)%50))
	for _, tc := range []struct {
		name string
		down []protocol.ID
	}{
		{"a site", []protocol.ID{30, 31, 32}},
		{"a server", []protocol.ID{31}},
		{"a machine with a server and a coordinator", []protocol.ID{30, 32}},
	} {
		s := newScript(t, nil)
		for _, id := range tc.down {
			s.Sim.Crash(id, sim.KeepAll)
		}
		most := 0
		for i := range minutes * 60 {
			d, _ := s.done(200, s.submit(200, fmt.Sprint(i), store.Key(fmt.Sprint("k", i%50)), store.Key(fmt.Sprint("l", i%7))))
			want(t, d, store.Committed)
			s.run(time.Second)
			for _, site := range s.Layout.Sites {
				for _, id := range site.Shards {
					if !slices.Contains(tc.down, id) {
						most = max(most, s.status(id).Txns)
					}
				}
			}
		}
		if most >= 20 {
			t.Errorf("%s: a server remembers %d transactions", tc.name, most)
		}
		for _, id := range tc.down {
			s.Sim.Restart(id)
		}
		s.settle()
		if g, _ := s.read(202, key); string(g.Value.Bytes) != fmt.Sprint(minutes*60-1) {
			t.Errorf("%s: %s is %+v", tc.name, key, g)
		}
	}
}

// TestReturnIsLittleWork: a site that is back asks about all that it has carried out and does not
// know to be carried out elsewhere, which others have forgotten. It does so at an even pace, so
// that these write to their disks little more than before, in the first half second as later.
func TestReturnIsLittleWork(t *testing.T) {
	const retain = 6 * time.Second
	s := newScript(t, func(c *store.Config) { c.Retain = retain })
	away := s.Layout.Sites[2]
	machine := append(slices.Clone(away.Shards), away.Coordinators...)
	writes := func() (n uint64) {
		for _, site := range s.Layout.Sites[:2] {
			for _, id := range site.Shards {
				n += s.Sim.Writes(id)
			}
		}
		return n
	}
	load := func(lasting time.Duration) (each []uint64) {
		for range lasting / (500 * time.Millisecond) {
			before := writes()
			for range 50 {
				s.submit(200+protocol.ID(s.ref%2), "v", store.Key(fmt.Sprint("k", s.ref*7919%3001)))
				s.run(10 * time.Millisecond)
			}
			each = append(each, writes()-before)
		}
		return each
	}
	up := load(retain)
	for _, id := range machine {
		s.Sim.Crash(id, sim.KeepAll)
	}
	load(retain + 2*time.Second)
	for _, id := range machine {
		s.Sim.Restart(id)
	}
	if back := load(3 * time.Second); slices.Max(back)*2 > slices.Max(up)*3 {
		t.Errorf("in each half second the sites that were there wrote %d times, and %d times when the third was back", up,
			back)
	}
}

// TestAbsentSiteKeepsItsLocks: c has voted for a transaction that a and b carry out and forget
// while c is away. When it is back, another one that read what the first replaced, and that b voted
// for before, must not get c's vote because c takes their having forgotten for an abort. One of c's
// servers has copied what it lacks before the other one does.
func TestAbsentSiteKeepsItsLocks(t *testing.T) {
	s := newScript(t, nil)
	first, _ := s.done(200, s.submit(200, "first", "k"))
	want(t, first, store.Committed)
	s.run(time.Second)
	shard, other := s.Layout.ShardOf("k"), store.Key("l")
	for i := 0; s.Layout.ShardOf(other) == shard; i++ {
		other = store.Key(fmt.Sprint("l", i))
	}

	// b alone hears of a transaction that has read k, and locks k there.
	s.cut([]protocol.ID{201}, append(append(s.SiteNodes(0), s.SiteNodes(2)...), 200, 202))
	s.cut(append(s.SiteNodes(0), s.SiteNodes(1)...), s.SiteNodes(2))
	// its clock is ahead, so that c does not find it too old
	s.Sim.Get(201).(*client).See(uint64(time.Hour + 45*time.Second))
	s.ref++
	s.Sim.Deliver(201, store.Submit{
		Ref: s.ref, Reads: []store.Read{{Key: "k", Version: first.Txn.ID}},
		Writes: []store.Write{{Key: "k", Bytes: []byte("stale")}},
	})
	s.run(roundTrip / 20)

	// a and c commit another one, and c does not hear that they have.
	d, _ := s.done(200, s.submit(200, "second", "k", other))
	want(t, d, store.Committed)
	s.crashSite(2)
	s.run(20 * time.Second)
	if st := s.status(s.Layout.Sites[1].Shards[shard]); st.Undecided != 1 || st.Txns != 1 {
		t.Fatalf("while c is away b has %+v", st)
	}
	s.Sim.Heal()
	s.restartSite(2)
	// it is admitted
	s.run(roundTrip * 5 / 4)
	// it cannot copy yet
	s.cut(s.Layout.Sites[2].Shards[shard:shard+1], append(slices.Clone(s.Layout.Sites[0].Shards),
		s.Layout.Sites[1].Shards...))
	s.run(10 * time.Second)
	s.Sim.Heal()
	s.settle()
	if slices.Contains(slices.Collect(maps.Values(s.Versions["k"])), "stale") {
		t.Errorf("what read the first value, and what replaced it, have committed: %v", s.Versions["k"])
	}
}

// TestDebtGrows: what is added to a debt after a copy began is not paid by it.
func TestDebtGrows(t *testing.T) {
	n, err := newServer(store.Config{ID: 11, Layout: layout(3, 1)})
	if err != nil {
		t.Fatal(err)
	}
	n.admission.admitted = true
	env := protocol.NewEnv[message](nil, 1, rand.New(rand.NewPCG(1, 1)))
	step := func(call func()) (told owing) {
		env.Begin(time.Hour)
		call()
		for _, e := range env.Out {
			if m, ok := e.Msg.(owing); ok && e.To == 31 {
				told = m
			}
		}
		if err := n.Check(); err != nil {
			t.Fatal(err)
		}
		return told
	}
	txn := func(time uint64) {
		id := store.TxnID{Time: time, Client: 1}
		step(func() { n.Receive(env, 10, decide{ID: id, Shards: []uint32{0}}) })
		step(func() { n.Receive(env, 10, forget{ID: id, But: []protocol.ID{31}}) })
	}
	step(func() { n.Start(env, nil) })
	txn(7)
	told := step(func() { n.Expire(env, oweTimer{}) })
	if told.Since != 6 || told.To != 1<<2 {
		t.Fatalf("it tells %+v", told)
	}
	txn(5)
	step(func() { n.Receive(env, 31, paid{Serial: told.Serial}) })
	if n.forgotten(store.TxnID{Time: 5, Client: 2}) != gone {
		t.Errorf("it owes %v", n.debtList())
	}
	told = step(func() { n.Expire(env, oweTimer{}) })
	step(func() { n.Receive(env, 31, paid{Serial: told.Serial}) })
	if len(n.debts) != 0 {
		t.Errorf("in the end it owes %v", n.debtList())
	}
}
