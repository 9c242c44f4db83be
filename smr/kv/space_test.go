package kv_test

import (
	"bytes"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/btree"

	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/smr/kv"
)

// disk is a key space of a node.
type disk struct{ keys btree.Map[string, []byte] }

func (d *disk) Get(key []byte) ([]byte, bool) { return d.keys.Get(string(key)) }
func (d *disk) Put(key, value []byte)         { d.keys.Set(string(key), value) }
func (d *disk) Delete(key []byte)             { d.keys.Delete(string(key)) }

func (d *disk) Scan(lo, hi []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		was := d.keys.Copy() // what is written meanwhile is not seen
		was.Ascend(string(lo), func(k string, v []byte) bool {
			return (hi == nil || k < string(hi)) && yield([]byte(k), v)
		})
	}
}

// spaced is a kv.Service on layers of a state.
type spaced struct {
	state       *keyspace.State
	checkpoints uint64
}

func newSpaced(t *testing.T) *spaced {
	t.Helper()
	state, err := keyspace.Open(&disk{}, "s")
	if err != nil {
		t.Fatal(err)
	}
	return &spaced{state: state}
}

// apply executes a command in a layer, which may be undone and made again, and stays for a while.
func (s *spaced) apply(t *testing.T, rnd *rand.Rand, now time.Duration, command []byte) []byte {
	t.Helper()
	undone := s.state.Push()
	first := kv.Service{}.Apply(undone, now, command)
	layer := undone
	if rnd.IntN(4) == 0 {
		s.state.Drop(undone)
		layer = s.state.Push()
		if again := (kv.Service{}).Apply(layer, now, command); !bytes.Equal(first, again) {
			t.Errorf("%q: %q, and once it was undone %q", command, first, again)
		}
	}
	for s.state.Layers() > rnd.IntN(20) {
		s.state.Merge()
	}
	return first
}

// digest commits all layers.
func (s *spaced) digest() keyspace.Digest {
	for s.state.Layers() > 0 {
		s.state.Merge()
	}
	s.checkpoints++
	return s.state.Checkpoint(s.checkpoints)
}

// digestOf returns the digest of the state that has the records of a store.
func digestOf(t *testing.T, store *kv.Store, renewed map[kv.LeaseID]time.Duration) keyspace.Digest {
	t.Helper()
	s := newSpaced(t)
	store.CopyTo(s.state.Push(), renewed)
	return s.digest()
}

// pair is a Store, and a Service on a key space with an agreed time, which has to be the same. What
// the Service ends by that time the Store is told to end.
type pair struct {
	store   *kv.Store
	spaced  *spaced
	now     time.Duration
	renewed map[kv.LeaseID]time.Duration
}

func newPair(t *testing.T) *pair {
	t.Helper()
	return &pair{kv.New(), newSpaced(t), -time.Minute, map[kv.LeaseID]time.Duration{}}
}

// pass lets time pass, and returns the leases that run out, in that order.
func (p *pair) pass(t *testing.T, d time.Duration) (ended []kv.LeaseID) {
	t.Helper()
	p.now += d
	leases := map[kv.LeaseID]kv.Lease{}
	for _, l := range apply(t, p.store, kv.Leases()).Leases {
		leases[l.ID] = l
	}
	due := func(id kv.LeaseID) time.Duration { return p.renewed[id] + leases[id].TTL }
	for id := range leases {
		if due(id) <= p.now {
			ended = append(ended, id)
		}
	}
	slices.SortFunc(ended, func(a, b kv.LeaseID) int {
		if due(a) != due(b) {
			return int(due(a) - due(b))
		}
		return int(a - b)
	})
	for _, id := range ended {
		apply(t, p.store, kv.Expire(id, leases[id].Renewals))
	}
	return ended
}

// apply executes a command at both, and returns the Store's result.
func (p *pair) apply(t *testing.T, rnd *rand.Rand, command []byte) kv.Result {
	t.Helper()
	before := map[kv.LeaseID]uint64{}
	for _, l := range apply(t, p.store, kv.Leases()).Leases {
		before[l.ID] = l.Renewals
	}
	want := p.store.Apply(command)
	if got := p.spaced.apply(t, rnd, p.now, command); !bytes.Equal(got, want) {
		t.Fatalf("%q: on a key space %q, in memory %q", command, got, want)
	}
	for _, l := range apply(t, p.store, kv.Leases()).Leases {
		if n, ok := before[l.ID]; !ok || n != l.Renewals {
			p.renewed[l.ID] = p.now
		}
	}
	r, err := kv.DecodeResult(want)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// same compares what both have.
func (p *pair) same(t *testing.T) {
	t.Helper()
	if got, want := p.spaced.digest(), digestOf(t, p.store, p.renewed); got != want {
		t.Fatalf("at version %d the digest is %v, that of the records of the store in memory %v", p.store.Version(), got,
			want)
	}
	for _, q := range [][]byte{kv.Scan(nil, nil, 0), kv.Leases(), kv.GetUsage(), kv.Changes(nil, nil, 0, 0),
		kv.Changes(nil, nil, p.store.Version()/2, 0), kv.Delete(nil), nil} {
		got, want := kv.Service{}.Read(p.spaced.state.Committed(), q), p.store.Read(q)
		if !bytes.Equal(got, want) {
			t.Fatalf("the query %q: on a key space %q, in memory %q", q, got, want)
		}
	}
}

// TestSpaceAgainstTwin plays random commands to a store in memory, to one on a key space, and to a
// plain one, while time passes by which leases end.
func TestSpaceAgainstTwin(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 3))
	p, w := newPair(t), &twin{items: map[string]kv.Item{}, leases: map[kv.LeaseID]kv.Lease{}, timed: true}
	ends := 0
	for step := range 6_000 {
		for _, id := range p.pass(t, time.Duration(rnd.IntN(2000))*time.Millisecond) {
			w.end(id)
			ends++
		}
		command, want := w.next(rnd, step)
		got := p.apply(t, rnd, command)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("step %d (-want +got):\n%s", step, diff)
		}
		if step%1000 == 0 {
			p.same(t)
		}
	}
	p.same(t)
	if ends < 50 || len(w.items) < 10 {
		t.Errorf("%d leases ran out, %d keys are left", ends, len(w.items))
	}
}

// TestSpaceOfOddCommands plays to both stores what random commands do not have.
func TestSpaceOfOddCommands(t *testing.T) {
	rnd, p := rand.New(rand.NewPCG(1, 4)), newPair(t)
	key := func(n int) []byte { return fmt.Append(nil, n) }
	part := kv.Load{To: 9, Leases: []kv.Lease{{ID: 3, TTL: time.Minute, Renewals: 2}, {ID: 5, TTL: time.Hour}},
		Items: []kv.Item{{Key: key(1), Value: key(2), Version: 4, Lease: 3}}}
	p.apply(t, rnd, kv.SetQuota(kv.Quota{Bytes: 20, Keys: 3}))
	p.apply(t, rnd, part.Encode())
	p.apply(t, rnd, kv.Put(key(1), nil))
	if ended := p.pass(t, time.Minute-1); len(ended) > 0 {
		t.Errorf("%v ended", ended)
	}
	p.renewed[3], p.renewed[5] = p.now, p.now // their time begins with the last part
	last := kv.Load{After: 9, To: 9, Last: true}
	p.apply(t, rnd, last.Encode())
	p.apply(t, rnd, last.Encode())
	p.same(t)
	if ended := p.pass(t, time.Minute); len(ended) != 1 {
		t.Errorf("%v ended", ended)
	}
	if r := p.apply(t, rnd, kv.Get(key(1))); r.Status != kv.NotFound {
		t.Errorf("the key of a lease that has run out: %v", r.Status)
	}
	for n := range 5 { // some of which are too many
		p.apply(t, rnd, kv.Put(key(n), []byte("value")))
	}
	for _, c := range [][]byte{nil, {2}, {2, 99, 0}, kv.Grant(0), kv.Put(key(1), nil)[:4], kv.SetQuota(kv.Quota{})} {
		p.apply(t, rnd, c)
	}
	p.same(t)
	for n := range 40 { // more than are remembered
		p.apply(t, rnd, kv.Put(key(n%7), make([]byte, n%4*100_000)))
		p.apply(t, rnd, kv.Changes(key(2), key(5), uint64(n), 3))
	}
	p.same(t)
	for n := range kv.MaxChanges + 100 {
		command := kv.Put(key(n%7), nil)
		if got, want := p.spaced.apply(t, rnd, p.now, command), p.store.Apply(command); !bytes.Equal(got, want) {
			t.Fatalf("%q: on a key space %q, in memory %q", command, got, want)
		}
	}
	p.same(t)
}

// TestNobodyElseEndsLeases: the clocks of clients count for nothing where time is agreed on.
func TestNobodyElseEndsLeases(t *testing.T) {
	s := newSpaced(t).state.Push()
	do := func(now time.Duration, command []byte) kv.Result {
		r, err := kv.DecodeResult(kv.Service{}.Apply(s, now, command))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	lease := kv.LeaseID(do(0, kv.Grant(time.Second)).Version)
	do(0, kv.PutLeased([]byte("k"), []byte("v"), lease))
	do(time.Second/2, kv.KeepAlive(lease))
	if r := do(time.Second, kv.Expire(lease, 1)); r.Status != kv.Conflict || r.Version != 1 {
		t.Errorf("a lease ends before its time: %+v", r)
	}
	if r := do(time.Second*3/2-1, kv.Get([]byte("k"))); r.Status != kv.OK {
		t.Errorf("before it runs out: %v", r.Status)
	}
	if r := do(time.Second*3/2, kv.Get([]byte("k"))); r.Status != kv.NotFound {
		t.Errorf("when it runs out: %v", r.Status)
	}
	if r := do(time.Hour, kv.Expire(lease, 1)); r.Status != kv.NotFound {
		t.Errorf("after that: %v", r.Status)
	}
}
