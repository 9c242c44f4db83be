package str

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storetest"
)

// commitsAhead has client 300 commit a transaction that follows others, and server 11 certify it.
func (c *soloCoordinator) commitsAhead(at uint64, key store.Key, after ...uint64) []store.Message {
	c.txns[txnID(at)].client = 300
	m := store.SpeculateRequest{CommitRequest: store.CommitRequest{Txn: store.Txn{ID: txnID(at),
		Writes: []store.Write{{Key: key}}}}}
	for _, x := range after {
		m.After = append(m.After, txnID(x))
	}
	c.Receive(c.env, 300, m)
	if len(only[certify](c.said())) == 1 {
		c.Receive(c.env, 11, certified{Shard: 0, ID: m.Txn.ID, Stamp: 1})
	}
	return c.said()
}

// toldOf returns of whose local commits clients are told.
func toldOf(said []store.Message) (out []uint64) {
	for _, m := range only[store.Speculated](said) {
		out = append(out, m.ID.Time)
	}
	return out
}

// TestTuneChains has a client know of as many local commits of a chain as the degree allows, and of
// the next one when one of those is final or the degree is higher. What is in no chain with these
// does not count.
func TestTuneChains(t *testing.T) {
	c := newSoloCoordinator(t)
	c.setDegree(c.env, 3)
	for at := uint64(10); at < 70; at += 10 {
		c.begins(at, c.key(1, "x"))
	}
	expect := func(said []store.Message, want ...uint64) {
		t.Helper()
		if got := toldOf(said); !slices.Equal(got, want) {
			t.Errorf("told of %d, want %d", got, want)
		}
	}
	expect(c.commitsAhead(10, c.key(0, "a")), 10)
	expect(c.commitsAhead(20, c.key(0, "b"), 10), 20)
	expect(c.commitsAhead(30, c.key(0, "c"), 20)) // after 10, too, as 20 is
	expect(c.commitsAhead(40, c.key(0, "d"), 10, 20, 30))
	expect(c.commitsAhead(60, c.key(0, "f")), 60)
	c.commit(c.env, c.txns[txnID(10)], 11)
	expect(c.said(), 30)
	c.setDegree(c.env, degreeReads)
	c.commit(c.env, c.txns[txnID(20)], 21)
	expect(c.said())
	c.setDegree(c.env, 3)
	expect(c.said(), 40)
	expect(c.commitsAhead(50, c.key(0, "e"), 30, 40))
	c.setDegree(c.env, 4)
	expect(c.said(), 50)
	last := c.txns[txnID(50)]
	c.abort(c.env, c.txns[txnID(30)], store.Lapsed)
	for _, at := range []uint64{50, 40, 30} {
		c.adopt(c.env, c.txns[txnID(at)], 0, result{State: aborted})
	}
	if expect(c.said()); len(last.stands)+len(last.bears) > 0 {
		t.Errorf("what has ended is in a chain: %+v", last.link)
	}
}

// TestTuneOff has nobody read, or be certified on top of, what is committed locally while that is
// off, nor be told of that: also not when it is on again. What was committed before may be read.
func TestTuneOff(t *testing.T) {
	c := newSoloCoordinator(t)
	a, b := c.key(0, "a"), c.key(0, "b")
	for at := uint64(10); at < 30; at += 10 {
		c.begins(at, c.key(1, "x"))
	}
	c.commitsAhead(10, a)
	c.setDegree(c.env, degreeOff)
	c.commitsAhead(20, b)
	c.setDegree(c.env, degreeMost)
	if got := toldOf(c.said()); len(got) > 0 {
		t.Errorf("told of %d", got)
	}
	expectValues(t, c.begins(50, a), "")
	if asked := only[readAt](c.begins(60, b)); len(asked) != 1 || asked[0].Key != b || len(asked[0].Skip) > 0 {
		t.Errorf("its server is asked %+v", asked)
	}
	c.Receive(c.env, 260, store.CommitRequest{Txn: store.Txn{ID: txnID(60), Writes: []store.Write{{Key: b}}}})
	if asked := only[certify](c.said()); len(asked) > 0 {
		t.Errorf("it is certified: %+v", asked)
	}
}

// changing is mode internal with a degree that changes all the time, at each coordinator by itself.
func changing(seed uint64) storetest.Subject {
	mode := modes()[0]
	s := subject(mode)
	s.Watched = func() (store.Protocol, func() error) {
		rng := rand.New(rand.NewPCG(seed, 3))
		mode.seen = func(e event) {
			if e.at != nil && rng.IntN(4) == 0 {
				e.at.degree = degree(rng.IntN(int(degreeMost) + 1))
			}
		}
		return watched(mode)
	}
	return s
}

// TestTuneChanges plays seeds in which the degree changes between any two events.
func TestTuneChanges(t *testing.T) {
	first, seeds := seed.First(t, 1), seed.Count(t, 40)
	for i := range uint64(seeds) {
		sc := storetest.Swarm(first + i)
		sc.Ahead, sc.Moves = true, i%3 == 1
		if i%5 == 3 {
			sc.Sites, sc.Shards, sc.Replicas = 5, 5, 3
		}
		if _, err := storetest.PlayOnce(changing(first+i), sc); err != nil {
			t.Fatalf("seed %d: %v", first+i, err)
		}
	}
}

// degreePlants have the degree not count.
func degreePlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "what is committed locally is read although that is off", Test: "TestTuneOff",
			Old: "c.degree == degreeOff {\n", New: "c.degree == degreeOff && !MUTANT {\n",
		},
		{
			Name: "clients hear of what nobody may read", Test: "TestTuneOff",
			Old: "len(t.writes) > 0 && t.bound <= t.at {\n", New: "len(t.writes) > 0 && t.bound <= t.at && !MUTANT {\n",
		},
		{
			Name: "chains are as long as clients like", Test: "TestTuneChains",
			Old: "t.ahead = len(t.stands) < c.degree.chain()\n",
			New: "t.ahead = len(t.stands) < c.degree.chain() || MUTANT\n",
		},
		{
			Name: "what is final counts in its chain", Test: "TestTuneChains",
			Old: "\t\tdelete(x.stands, t.id)\n", New: "\t\tif !MUTANT {\n\t\t\tdelete(x.stands, t.id)\n\t\t}\n",
		},
		{
			Name: "only what a client follows directly counts in its chain", Test: "TestTuneChains",
			Old: "\tmaps.Copy(t.stands, x.stands)\n", New: "\tif !MUTANT {\n\t\tmaps.Copy(t.stands, x.stands)\n\t}\n",
		},
	}
}
