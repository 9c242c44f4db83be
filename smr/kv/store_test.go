package kv_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

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

func apply(t *testing.T, s *kv.Store, command []byte) kv.Result {
	t.Helper()
	r, err := kv.DecodeResult(s.Apply(command))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestAgainstMap plays random commands to a store and to a plain map. Now and then the store is replaced by one restored from its snapshot.
func TestAgainstMap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	store, twin, last := kv.New(), map[string]kv.Item{}, uint64(0)
	for step := range 20_000 {
		key := fmt.Append(nil, rnd.IntN(50))
		value := fmt.Append(nil, step)
		there, ok := twin[string(key)]
		var got, want kv.Result
		switch n := rnd.IntN(10); {
		case n < 3:
			last++
			got, want = apply(t, store, kv.Put(key, value)), kv.Result{Status: kv.OK, Version: last}
			twin[string(key)] = kv.Item{Key: key, Value: value, Version: last}
		case n < 5:
			got, want = apply(t, store, kv.Delete(key)), kv.Result{Status: kv.NotFound}
			if ok {
				last++
				want = kv.Result{Status: kv.OK, Version: last}
				delete(twin, string(key))
			}
		case n < 7:
			expect := there.Version + uint64(rnd.IntN(2))
			got = apply(t, store, kv.CompareAndSet(key, expect, value))
			want = kv.Result{Status: kv.Conflict, Version: there.Version, Value: there.Value}
			if expect == there.Version {
				last++
				want = kv.Result{Status: kv.OK, Version: last}
				twin[string(key)] = kv.Item{Key: key, Value: value, Version: last}
			}
		case n < 9:
			got, want = apply(t, store, kv.Get(key)), kv.Result{Status: kv.NotFound}
			if ok {
				want = kv.Result{Status: kv.OK, Version: there.Version, Value: there.Value}
			}
		default:
			hi, limit := fmt.Append(nil, rnd.IntN(50)), 1+rnd.IntN(20)
			got, want = apply(t, store, kv.Scan(key, hi, limit)), scanTwin(twin, string(key), string(hi), limit)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("step %d, key %s (-want +got):\n%s", step, key, diff)
		}
		if step%500 == 0 {
			store = restored(t, store)
		}
	}
}

func scanTwin(twin map[string]kv.Item, lo, hi string, limit int) kv.Result {
	out := kv.Result{Status: kv.OK}
	for _, key := range slices.Sorted(maps.Keys(twin)) {
		if key < lo || key >= hi {
			continue
		}
		if len(out.Items) == limit {
			out.More = true
			break
		}
		out.Items = append(out.Items, twin[key])
	}
	return out
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
	for _, b := range [][]byte{nil, {1}, {2, 1}, {1, 99, 0}, append(kv.Put([]byte("k"), nil), 7), kv.Put([]byte("k"), []byte("w"))[:5]} {
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
