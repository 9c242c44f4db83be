package sim

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestQueueLikeASortedList(t *testing.T) {
	for seed := range uint64(50) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		q := newQueue[int]()
		type entry struct {
			at time.Duration
			n  uint64
		}
		var model []entry
		for n := range uint64(2000) {
			if rnd.IntN(5) < 2+int(n/1000) && len(model) > 0 {
				want := slices.MinFunc(model, func(a, b entry) int {
					return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.n, b.n))
				})
				model = slices.DeleteFunc(model, func(e entry) bool { return e == want })
				d := q.pop()
				if got := (entry{d.at, q.events[d.event].n}); got != want {
					t.Fatalf("seed %d: got %v, want %v", seed, got, want)
				}
				q.release(d.event)
				continue
			}
			e := entry{time.Duration(rnd.IntN(100)), n}
			model = append(model, e)
			q.add(e.at, event[int]{n: n})
		}
		if most := slices.Max([]int{len(q.heap), len(model)}); most != len(model) || len(q.events) > 2000 {
			t.Errorf("%d events for %d", len(q.heap), len(model))
		}
	}
}

func TestStoreLikeAMap(t *testing.T) {
	for seed := range uint64(8) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var s store
		model := make(map[string]string)
		keys := 1 + rnd.IntN(2000)
		for range 3000 {
			key := fmt.Sprint(rnd.IntN(keys))
			old, ok := model[key]
			if got, gotOK := s.Get([]byte(key)); gotOK != ok || string(got) != old {
				t.Fatalf("seed %d: key %s is %q, %v, want %q, %v", seed, key, got, gotOK, old, ok)
			}
			var value []byte
			if rnd.IntN(3) > 0 {
				value = fmt.Append([]byte{}, rnd.Int())
				model[key] = string(value)
			} else {
				delete(model, key)
			}
			if got := s.set(key, value); string(got) != old || (got != nil) != ok {
				t.Fatalf("seed %d: key %s was %q, want %q", seed, key, got, old)
			}
			if rnd.IntN(20) == 0 {
				compareScan(t, &s, model, rnd, keys)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(model)) {
			s.set(key, nil)
		}
		if len(s.pages) != 0 {
			t.Errorf("an empty store has %d pages", len(s.pages))
		}
	}
}

func compareScan(t *testing.T, s *store, model map[string]string, rnd *rand.Rand, keys int) {
	t.Helper()
	lo, hi := []byte(nil), []byte(nil)
	if rnd.IntN(4) > 0 {
		lo = fmt.Append(nil, rnd.IntN(keys))
	}
	if rnd.IntN(4) > 0 {
		hi = fmt.Append(nil, rnd.IntN(keys))
	}
	var want []string
	for _, k := range slices.Sorted(maps.Keys(model)) {
		if k >= string(lo) && (hi == nil || k < string(hi)) {
			want = append(want, k+"="+model[k])
		}
	}
	limit := rnd.IntN(len(want) + 2)
	var got []string
	for k, v := range s.Scan(lo, hi) {
		if len(got) == limit {
			break
		}
		got = append(got, string(k)+"="+string(v))
	}
	if want = want[:min(limit, len(want))]; !slices.Equal(got, want) {
		t.Fatalf("from %q to %q: got %q, want %q", lo, hi, got, want)
	}
}
