package replicatedcommit

import (
	"bytes"
	"fmt"
	"iter"
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

// TestOwedPages: what is owed is found among many keys with few requests, in small pages, and
// nothing that is owed is left out.
func TestOwedPages(t *testing.T) {
	const since = 1000
	for _, tc := range []struct {
		name              string
		keys, size, every int // one of every so many keys is owed
		pages             int
	}{
		{"few are owed", 20_000, 10, 10_000, 5},
		{"all are owed", 5_000, 10, 1, 10},
		{"few large ones are owed", 100, 100 << 10, 50, 10},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newServerBench(t)
			value := bytes.Repeat([]byte("x"), tc.size)
			b.do(func() {
				for i := range tc.keys {
					v := store.Value{Version: store.Version{Time: since, Client: 1}, Present: true, Bytes: value}
					if i%tc.every == tc.every/2 {
						v.Version.Time++
					}
					putValue(b.env, store.Key(fmt.Sprintf("%06d", i)), v)
				}
			})
			pages, from := 0, ""
			var found []keyValue
			for {
				b.give(21, askPage{Stage: copyValues, From: from, Since: since, Round: 1})
				p := sentPage(t, b.env.Out)
				pages++
				size := 0
				for _, kv := range p.Values {
					size += len(kv.Key) + len(kv.Value.Bytes)
				}
				if len(p.Values) > maxOwedEntries || len(p.Values) > 1 && size > maxOwedBytes ||
					p.Scanned > owedScan*maxOwedEntries {
					t.Errorf("a page has %d values of %d bytes, from %d keys", len(p.Values), size, p.Scanned)
				}
				found = append(found, p.Values...)
				if from = p.Next; from == "" {
					break
				}
			}
			if want := tc.keys / tc.every; len(found) != want || pages != tc.pages {
				t.Errorf("%d pages with %d values; want %d with %d", pages, len(found), tc.pages, want)
			}
			for _, kv := range found {
				if kv.Value.Version.Time <= since {
					t.Errorf("%s is not owed", kv.Key)
				}
			}
		})
	}
}

func sentPage(t *testing.T, out []protocol.Effect[message]) page {
	t.Helper()
	for _, e := range out {
		if p, ok := e.Msg.(page); ok {
			return p
		}
	}
	t.Fatal("there is no page")
	return page{}
}

// TestScanIsPaced: who copies leaves the source time for others also where it looks at many keys
// and finds nothing, but does not wait for what cannot be.
func TestScanIsPaced(t *testing.T) {
	const scan = owedScan * maxOwedEntries
	for _, tc := range []struct {
		scanned int
		want    time.Duration
	}{
		{10, time.Millisecond / catchUpPace},
		{scan, scan * catchUpScan},
		{1 << 30, scan * catchUpScan},
	} {
		c := copyPace{asked: time.Second}
		if got := c.pause(time.Second, time.Millisecond, 0, catchUpLeast, page{Scanned: tc.scanned}); got != tc.want {
			t.Errorf("after %d keys it waits for %v; want %v", tc.scanned, got, tc.want)
		}
	}
}

// TestCopyLeavesTimeForTransactions: a page of a thousand values is followed by a pause that is as
// long as transactions need, up to ten times, or twice at a newcomer.
func TestCopyLeavesTimeForTransactions(t *testing.T) {
	page := page{Values: make([]keyValue, 1000)}
	alone := 1000 * catchUpValue
	for _, tc := range []struct {
		perSecond uint64
		least     float64
		want      time.Duration
	}{
		{0, catchUpLeast, alone},
		{500, catchUpLeast, alone * 10 / 7},
		{1500, catchUpLeast, alone * 10},
		{100_000, catchUpLeast, alone * 10},
		{500, newcomerLeast, alone * 10 / 7},
		{100_000, newcomerLeast, alone * 2},
	} {
		c, got := copyPace{}, time.Duration(0)
		for i := range uint64(100) { // a page each 100 ms
			now := time.Duration(i+1) * 100 * time.Millisecond
			c.asked = now
			got = c.pause(now, time.Millisecond, i*tc.perSecond/10, tc.least, page)
		}
		if got < tc.want*99/100 || got > tc.want*101/100 {
			t.Errorf("beside %d transactions a second, with a share of %v, it waits for %v; want %v", tc.perSecond, tc.least,
				got, tc.want)
		}
	}
}

// countedKeys counts how often a key is looked up, and how many keys are gone through.
type countedKeys struct {
	protocol.Keys
	gets, scanned int
}

func (c *countedKeys) Get(key []byte) ([]byte, bool) {
	c.gets++
	return c.Keys.Get(key)
}

func (c *countedKeys) Scan(lo, hi []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		for k, v := range c.Keys.Scan(lo, hi) {
			if c.scanned++; !yield(k, v) {
				return
			}
		}
	}
}

// TestPagesAreTaken: what a page has is taken where it is newer than what is there, in whatever
// order it comes. A whole page is compared on one way through the keys; one whose keys lie far
// apart does not have the server go through all that lie between.
func TestPagesAreTaken(t *testing.T) {
	version := func(time uint64) store.Version { return store.Version{Time: time, Client: 1} }
	const keys = 4000
	for _, tc := range []struct {
		name          string
		page          []int // keys
		gets, scanned int
	}{
		{"all keys", numbers(0, keys, 1), 0, keys},
		{"one of four", numbers(0, keys, 4), 0, keys - 3},
		{"far apart", []int{0, 1, 3000}, 1, 3 * heldScan},
		{"out of order", []int{3000, 2, 1000, 1001}, 4, 0},
		{"one twice", []int{5, 6, 5}, 1, 1},
		{"new ones", numbers(keys, 2*keys, 1), 0, 0},
		{"none", nil, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newServerBench(t)
			key := func(i int) store.Key { return store.Key(fmt.Sprintf("%06d", i)) }
			put := func(time uint64) store.Value {
				return store.Value{Version: version(time), Present: true, Bytes: []byte("v")}
			}
			b.do(func() {
				for i := range keys {
					// the page has 101: one is older, one the same, one newer
					putValue(b.env, key(i), put(100+uint64(i%3)))
				}
			})
			counted := &countedKeys{Keys: b.disk}
			b.env = protocol.NewEnv[message](counted, 11, b.env.Rand)
			var page []keyValue
			for _, i := range tc.page {
				page = append(page, keyValue{key(i), put(101)})
			}
			b.do(func() { b.server.takeValues(b.env, page) })
			if counted.gets != tc.gets || counted.scanned != tc.scanned {
				t.Errorf("%d keys were looked up and %d gone through; want %d and %d", counted.gets, counted.scanned, tc.gets,
					tc.scanned)
			}
			for _, i := range tc.page {
				want := uint64(101)
				if i < keys {
					want = max(want, 100+uint64(i%3))
				}
				b.do(func() {
					if got := values.At(b.env, key(i)).Version; got != version(want) {
						t.Errorf("key %d has version %v, want %v", i, got, version(want))
					}
				})
			}
		})
	}
}

func numbers(from, below, step int) (all []int) {
	for i := from; i < below; i += step {
		all = append(all, i)
	}
	return all
}
