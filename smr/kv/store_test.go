package kv_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kv"
)

func Example() {
	var store smr.StateMachine = kv.New()
	put, _ := kv.DecodeResult(store.Apply(kv.Put([]byte("city"), []byte("Oslo"))))
	fmt.Println(put.Status, put.Version)
	swap, _ := kv.DecodeResult(store.Apply(kv.CompareAndSet([]byte("city"), 7, []byte("Bergen"))))
	fmt.Printf("%v: version %d is there, %s\n", swap.Status, swap.Version, swap.Value)
	got, _ := kv.DecodeResult(store.Read(kv.Get([]byte("city"))))
	fmt.Printf("%s\n", got.Value)
	// Output:
	// ok 1
	// conflict: version 1 is there, Oslo
	// Oslo
}

// TestLargeValuesAreNotCopied: a large value stays where its command has it, which the log holds
// anyway.
func TestLargeValuesAreNotCopied(t *testing.T) {
	const size, keys = 64 << 10, 20
	var commands [][]byte
	for i := range keys {
		commands = append(commands, kv.Put(fmt.Append(nil, i), make([]byte, size)))
	}
	s := kv.New()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, c := range commands {
		apply(t, s, c)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > keys*size/4 {
		t.Errorf("%d values of %d bytes took %d bytes of memory beside their commands", keys, size, took)
	}
}

func apply(t *testing.T, s *kv.Store, command []byte) kv.Result {
	t.Helper()
	r, err := kv.DecodeResult(s.Apply(command))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// twin is a store as plain as it can be: nothing is bounded, and nothing is kept but what happened.
type twin struct {
	items  map[string]kv.Item
	leases map[kv.LeaseID]kv.Lease
	last   uint64
	log    []kv.Item
	timed  bool // leases end by time alone
}

func (w *twin) set(key, value []byte, lease kv.LeaseID) kv.Result {
	if _, ok := w.leases[lease]; !ok && lease != 0 {
		return kv.Result{Status: kv.NotFound}
	}
	w.last++
	w.items[string(key)] = kv.Item{Key: key, Value: value, Version: w.last, Lease: lease}
	w.log = append(w.log, w.items[string(key)])
	return kv.Result{Status: kv.OK, Version: w.last}
}

func (w *twin) remove(key []byte) kv.Result {
	if _, ok := w.items[string(key)]; !ok {
		return kv.Result{Status: kv.NotFound}
	}
	w.last++
	delete(w.items, string(key))
	w.log = append(w.log, kv.Item{Key: key, Version: w.last, Deleted: true})
	return kv.Result{Status: kv.OK, Version: w.last}
}

func (w *twin) end(lease kv.LeaseID) kv.Result {
	if _, ok := w.leases[lease]; !ok {
		return kv.Result{Status: kv.NotFound}
	}
	for _, key := range slices.Sorted(maps.Keys(w.items)) {
		if w.items[key].Lease == lease {
			w.remove([]byte(key))
		}
	}
	delete(w.leases, lease)
	return kv.Result{Status: kv.OK}
}

func (w *twin) list() kv.Result {
	out := kv.Result{Status: kv.OK, Version: w.last}
	for _, id := range slices.Sorted(maps.Keys(w.leases)) {
		l := w.leases[id]
		for _, i := range w.items {
			if i.Lease == id {
				l.Keys++
			}
		}
		out.Leases = append(out.Leases, l)
	}
	return out
}

func (w *twin) scan(lo, hi string, limit int) kv.Result {
	out := kv.Result{Status: kv.OK, Version: w.last}
	for _, key := range slices.Sorted(maps.Keys(w.items)) {
		if key < lo || key >= hi {
			continue
		}
		if len(out.Items) == limit {
			out.More = true
			break
		}
		out.Items = append(out.Items, w.items[key])
	}
	return out
}

func (w *twin) changes(lo, hi string, after uint64, limit int) kv.Result {
	out := kv.Result{Status: kv.OK, Version: w.last}
	for _, i := range w.log {
		if i.Version <= after || string(i.Key) < lo || string(i.Key) >= hi {
			continue
		}
		if len(out.Items) == limit {
			out.More, out.Version = true, out.Items[limit-1].Version
			break
		}
		out.Items = append(out.Items, i)
	}
	return out
}

// next returns one random command or query, having executed it, and its result.
func (w *twin) next(rnd *rand.Rand, step int) (command []byte, want kv.Result) {
	key, hi, limit := fmt.Append(nil, rnd.IntN(50)), fmt.Append(nil, rnd.IntN(50)), 1+rnd.IntN(20)
	value, there := fmt.Append(nil, step), w.items[string(key)]
	lease := kv.LeaseID(0)
	if ids := slices.Sorted(maps.Keys(w.leases)); len(ids) > 0 && rnd.IntN(3) == 0 {
		lease = ids[rnd.IntN(len(ids))] + kv.LeaseID(rnd.IntN(8)/7)
	}
	l, leased := w.leases[lease]
	switch rnd.IntN(14) {
	case 0, 1, 2:
		return kv.PutLeased(key, value, lease), w.set(key, value, lease)
	case 3, 4:
		return kv.Delete(key), w.remove(key)
	case 5, 6:
		expect := there.Version + uint64(rnd.IntN(2))
		command = kv.CompareAndSetLeased(key, expect, value, lease)
		if expect != there.Version {
			return command, kv.Result{Status: kv.Conflict, Version: there.Version, Value: there.Value}
		}
		return command, w.set(key, value, lease)
	case 7:
		if there.Version == 0 {
			return kv.Get(key), kv.Result{Status: kv.NotFound}
		}
		return kv.Get(key), kv.Result{Status: kv.OK, Version: there.Version, Value: there.Value, Lease: there.Lease}
	case 8:
		return kv.Scan(key, hi, limit), w.scan(string(key), string(hi), limit)
	case 9:
		after := w.last - uint64(rnd.IntN(int(min(w.last, 300)+1)))
		return kv.Changes(key, hi, after, limit), w.changes(string(key), string(hi), after, limit)
	case 10:
		w.last++
		w.leases[kv.LeaseID(w.last)] = kv.Lease{ID: kv.LeaseID(w.last), TTL: time.Minute}
		return kv.Grant(time.Minute), kv.Result{Status: kv.OK, Version: w.last}
	case 11:
		if !leased {
			return kv.KeepAlive(lease), kv.Result{Status: kv.NotFound}
		}
		l.Renewals++
		w.leases[lease] = l
		return kv.KeepAlive(lease), kv.Result{Status: kv.OK}
	case 12:
		if rnd.IntN(2) == 0 {
			return kv.Revoke(lease), w.end(lease)
		}
		expect := l.Renewals + uint64(rnd.IntN(2))
		if w.timed {
			expect = l.Renewals + 1
		}
		if leased && expect != l.Renewals {
			return kv.Expire(lease, expect), kv.Result{Status: kv.Conflict, Version: l.Renewals}
		}
		return kv.Expire(lease, expect), w.end(lease)
	}
	return kv.Leases(), w.list()
}

// step makes one random command or query at both, and returns the results.
func (w *twin) step(t *testing.T, rnd *rand.Rand, store *kv.Store, step int) (got, want kv.Result) {
	t.Helper()
	command, want := w.next(rnd, step)
	return apply(t, store, command), want
}

// TestAgainstTwin plays random commands to a store and to a plain one. Now and then the store is
// replaced by one restored from its snapshot.
func TestAgainstTwin(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	store, w := kv.New(), &twin{items: map[string]kv.Item{}, leases: map[kv.LeaseID]kv.Lease{}}
	for step := range 10_000 {
		got, want := w.step(t, rnd, store, step)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("step %d (-want +got):\n%s", step, diff)
		}
		if step%500 == 0 {
			bytes := 0
			for _, i := range w.items {
				bytes += len(i.Key) + len(i.Value)
			}
			if u := store.Usage(); u != (kv.Usage{Bytes: uint64(bytes), Keys: uint64(len(w.items))}) {
				t.Fatalf("step %d: %+v, want %d bytes of %d keys", step, u, bytes, len(w.items))
			}
			store = restored(t, store)
		}
	}
}

// TestChangesAreBounded: what is remembered is bounded in number and in bytes, and a query for what
// is forgotten says so.
func TestChangesAreBounded(t *testing.T) {
	for value, remembered := range map[string]int{"": 10_000, strings.Repeat("x", 1<<20-1): 4} {
		s := kv.New()
		last := uint64(remembered + 10)
		for range last {
			apply(t, s, kv.Put([]byte("k"), []byte(value)))
		}
		if r := apply(t, s, kv.Changes(nil, nil, 10, 0)); r.Status != kv.OK || len(r.Items) == 0 || r.Items[0].Version != 11 {
			t.Errorf("changes after 10 of %d: %v, %d items", last, r.Status, len(r.Items))
		}
		for _, after := range []uint64{0, 9, last + 1} {
			if r := apply(t, s, kv.Changes(nil, nil, after, 0)); r.Status != kv.Compacted || r.Version != last {
				t.Errorf("changes after %d of %d: %v, version %d; want compacted", after, last, r.Status, r.Version)
			}
		}
		if r := apply(t, restored(t, s), kv.Changes(nil, nil, 9, 0)); r.Status != kv.Compacted {
			t.Errorf("after a restore: changes after 9 of %d: %v, want compacted", last, r.Status)
		}
	}
}

// TestLeasesAreTold: whoever observes leases is told of each as it is granted, renewed and ended,
// and what a snapshot brings and ends.
func TestLeasesAreTold(t *testing.T) {
	s := kv.New()
	var told []string
	s.ObserveLeases(func(l kv.Lease, ended bool) { told = append(told, fmt.Sprint(l.ID, l.Renewals, ended)) })
	apply(t, s, kv.Grant(kv.MinTTL)) // 1
	var early bytes.Buffer
	if err := s.Snapshot(&early); err != nil {
		t.Fatal(err)
	}
	apply(t, s, kv.KeepAlive(1))
	apply(t, s, kv.Grant(kv.MinTTL)) // 2
	apply(t, s, kv.Expire(1, 0))     // late
	apply(t, s, kv.Expire(1, 1))
	if err := s.Restore(&early); err != nil {
		t.Fatal(err)
	}
	if want := []string{"1 0 false", "1 1 false", "2 0 false", "1 0 true", "2 0 true", "1 0 false"}; !slices.Equal(told,
		want) {
		t.Errorf("told %q, want %q", told, want)
	}
	for _, ttl := range []time.Duration{0, -1, kv.MinTTL - 1, kv.MaxTTL + 1} {
		if r := apply(t, s, kv.Grant(ttl)); r.Status != kv.Malformed || r.Err() == nil {
			t.Errorf("a lease of %v: %v, want malformed", ttl, r.Status)
		}
	}
	for range kv.MaxLeases - 1 {
		apply(t, s, kv.Grant(kv.MaxTTL))
	}
	if r := apply(t, s, kv.Grant(kv.MinTTL)); r.Status != kv.Malformed {
		t.Errorf("one lease too many: %v, want malformed", r.Status)
	}
}

// TestChangesAreTold: whoever observes changes is told of each one when it is executed, also of
// those that the end of a lease makes, and of contents that took the place of all.
func TestChangesAreTold(t *testing.T) {
	s := kv.New()
	var told []string
	s.ObserveChanges(func(i kv.Item, all bool) {
		told = append(told, fmt.Sprint(string(i.Key), i.Version, i.Deleted, all))
	})
	put := func(key string, lease kv.LeaseID) {
		apply(t, s, kv.PutLeased([]byte(key), nil, lease))
	}
	put("a", 0)
	apply(t, s, kv.Grant(kv.MinTTL)) // 2
	put("b", 2)
	put("c", 9) // there is no such lease
	apply(t, s, kv.Delete([]byte("c")))
	apply(t, s, kv.CompareAndSet([]byte("a"), 9, nil))
	var early bytes.Buffer
	if err := s.Snapshot(&early); err != nil {
		t.Fatal(err)
	}
	apply(t, s, kv.Revoke(2))
	for _, tc := range []struct {
		lo, hi string
		after  uint64
		want   bool
	}{{"", "", 4, false}, {"", "", 9, false}, {"", "", 3, true}, {"a", "b", 1, false}, {"a", "b", 0, true},
		{"b", "b\x00", 1, true}, {"b\x00", "", 0, false}} {
		if got := s.ChangedAfter([]byte(tc.lo), []byte(tc.hi), tc.after); got != tc.want {
			t.Errorf("from %q to %q after %d: changed is %v", tc.lo, tc.hi, tc.after, got)
		}
	}
	if err := s.Restore(&early); err != nil {
		t.Fatal(err)
	}
	put("d", 0)
	load := kv.Load{To: 7, Items: []kv.Item{{Key: []byte("e"), Version: 6}}, Last: true}
	other := kv.New()
	other.ObserveChanges(func(i kv.Item, all bool) {
		told = append(told, fmt.Sprint(string(i.Key), i.Version, i.Deleted, all))
	})
	apply(t, other, load.Encode())
	if !other.ChangedAfter(nil, nil, 0) { // what a backup brings is among no changes
		t.Error("a store with a backup in it has not changed")
	}
	want := []string{"a1 false false", "b3 false false", "b4 true false", "3 false true", "d4 false false", "7 false true"}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

func restored(t *testing.T, s *kv.Store) *kv.Store {
	t.Helper()
	var b, again bytes.Buffer
	if err := s.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	whole := slices.Clone(b.Bytes())
	r := kv.New()
	if err := r.Restore(&b); err != nil {
		t.Fatal(err)
	}
	if err := r.Snapshot(&again); err != nil || !bytes.Equal(whole, again.Bytes()) {
		t.Fatalf("the snapshot of the restored store differs (%v)", err)
	}
	return r
}

// TestChangedAfter: whoever asks after few changes is told to look if, and only if, there is a
// change of its keys among those that a query finds.
func TestChangedAfter(t *testing.T) {
	s, chance := kv.New(), rand.New(rand.NewPCG(1, 22))
	key := func() []byte { return []byte{'a' + byte(chance.IntN(4)*chance.IntN(4))} }
	last := uint64(0)
	for n := range 3 * kv.MaxChanges {
		change := kv.Put(key(), nil)
		if chance.IntN(4) == 0 {
			change = kv.Delete(key())
		}
		last = max(last, apply(t, s, change).Version)
		if n%5000 == 2500 {
			s = restored(t, s)
		}
		after := last - min(last, uint64(chance.IntN(6)))
		lo := key()
		hi := [][]byte{append(slices.Clone(lo), 0), {lo[0] + 2}, nil}[chance.IntN(3)]
		found, err := kv.DecodeResult(s.Read(kv.Changes(lo, hi, after, 1)))
		if err != nil || found.Status != kv.OK {
			t.Fatalf("%+v, %v", found, err)
		}
		if got := s.ChangedAfter(lo, hi, after); got != (len(found.Items) > 0) {
			t.Fatalf("from %q to %q after %d of %d: changed is %v, changes %+v", lo, hi, after, last, got, found.Items)
		}
	}
}

// TestManyChangesAreLookedAt: who asks again and again after the same version, since its keys do
// not change, is told to look once a quarter of what the store remembers is newer.
func TestManyChangesAreLookedAt(t *testing.T) {
	for _, size := range []int{1, 10_000, 200_000} {
		s, n := kv.New(), 0
		apply(t, s, kv.Put([]byte("quiet"), nil))
		for !s.ChangedAfter([]byte("quiet"), []byte("quiet\x00"), 1) {
			apply(t, s, kv.Put([]byte("busy"), make([]byte, size)))
			n++
		}
		r, err := kv.DecodeResult(s.Read(kv.Changes([]byte("quiet"), nil, 1, 0)))
		if err != nil || r.Status != kv.OK || len(r.Items) > 0 {
			t.Errorf("after %d changes of %d bytes: %+v, %v", n, size, r, err)
		}
		if least := min(kv.MaxChanges, kv.MaxChangeBytes/(size+len("busy"))) / 4; n < least || n > least+1 {
			t.Errorf("of %d bytes each it takes %d changes, want %d", size, n, least)
		}
	}
}

func TestScanIsBounded(t *testing.T) {
	s := kv.New()
	big := bytes.Repeat([]byte("x"), 400<<10)
	for i := range 5 {
		apply(t, s, kv.Put(fmt.Append(nil, i), big))
	}
	r := apply(t, s, kv.Scan(nil, nil, 0))
	if len(r.Items) != 2 || !r.More {
		t.Errorf("%d items of 400 KiB in one result, more %v; want 2, true", len(r.Items), r.More)
	}
}

func TestMalformed(t *testing.T) {
	s := kv.New()
	apply(t, s, kv.Put([]byte("k"), []byte("v")))
	for _, b := range [][]byte{nil, {2}, {1, 1}, {2, 99, 0}, append(kv.Put([]byte("k"), nil), 7),
		kv.Put([]byte("k"), []byte("w"))[:5]} {
		r := apply(t, s, b)
		if r.Status != kv.Malformed || r.Err() == nil {
			t.Errorf("command %v: %v, want malformed", b, r.Status)
		}
	}
	if r, _ := kv.DecodeResult(s.Read(kv.Delete([]byte("k")))); r.Status != kv.Malformed {
		t.Errorf("a delete as a query: %v, want malformed", r.Status)
	}
	if r := apply(t, s, kv.Get([]byte("k"))); string(r.Value) != "v" || r.Version != 1 {
		t.Errorf("malformed commands changed the store: %+v", r)
	}
}

func FuzzStore(f *testing.F) {
	f.Add(kv.Put([]byte("a"), []byte("b")))
	f.Add(kv.CompareAndSet([]byte("a"), 3, []byte("b")))
	f.Add(kv.Scan([]byte("a"), []byte("b"), 3))
	f.Add(kv.Changes([]byte("a"), nil, 3, 3))
	f.Add(kv.Expire(3, 3))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := kv.New()
		apply(t, s, kv.Put([]byte("a"), []byte("0")))
		if _, err := kv.DecodeResult(s.Apply(b)); err != nil {
			t.Errorf("the result of %v: %v", b, err)
		}
		if err := kv.New().Restore(bytes.NewReader(b)); err == nil && len(b) < 3 {
			t.Errorf("%v was restored", b)
		}
		_, _ = kv.DecodeResult(b)
	})
}
