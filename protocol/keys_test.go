package protocol_test

import (
	"bytes"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/foresay/foresay/protocol"
)

// naiveKeys is a key space that sorts all of it for each scan.
type naiveKeys map[string]string

func (n naiveKeys) Get(key []byte) ([]byte, bool) {
	v, ok := n[string(key)]
	return []byte(v), ok
}

func (n naiveKeys) Scan(lo, hi []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		for _, k := range slices.Sorted(maps.Keys(n)) {
			if k >= string(lo) && (hi == nil || k < string(hi)) && !yield([]byte(k), []byte(n[k])) {
				return
			}
		}
	}
}

// carryOut does to a key space what a call asked for.
func carryOut[M any](n naiveKeys, out []protocol.Effect[M]) {
	for _, e := range out {
		switch e.Kind {
		case protocol.KindPut:
			n[string(e.Key)] = string(e.Value)
		case protocol.KindDelete:
			delete(n, string(e.Key))
		}
	}
}

// randomKey returns one of few keys: empty ones, prefixes of others, bytes at both ends.
func randomKey(rnd *rand.Rand) []byte {
	alphabet := []byte{0, 1, 'a', 0xfe, 0xff}
	key := make([]byte, rnd.IntN(3))
	for i := range key {
		key[i] = alphabet[rnd.IntN(len(alphabet))]
	}
	return key
}

// randomBound is a key, or nil for no end.
func randomBound(rnd *rand.Rand) []byte {
	if rnd.IntN(4) == 0 {
		return nil
	}
	return randomKey(rnd)
}

// list returns the first few pairs of a scan.
func list(seq iter.Seq2[[]byte, []byte], limit int) []string {
	var all []string
	for k, v := range seq {
		if len(all) == limit {
			break
		}
		all = append(all, fmt.Sprintf("%x=%s", k, v))
	}
	return all
}

// compare checks what a call reads against what it must see.
func compare[M any](t *testing.T, env *protocol.Env[M], want naiveKeys, rnd *rand.Rand) {
	t.Helper()
	key := randomKey(rnd)
	got, ok := env.Get(key)
	if v, wantOK := want[string(key)]; ok != wantOK || string(got) != v {
		t.Fatalf("%x is %q, %v, want %q, %v", key, got, ok, v, wantOK)
	}
	lo, hi, limit := randomBound(rnd), randomBound(rnd), rnd.IntN(30)
	if got, want := list(env.Scan(lo, hi), limit), list(want.Scan(lo, hi), limit); !slices.Equal(got, want) {
		t.Fatalf("from %x to %x (%v): got %v, want %v", lo, hi, hi == nil, got, want)
	}
}

// TestReadsSeeTheCallsWrites runs random calls against a map that is written at once.
func TestReadsSeeTheCallsWrites(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		runner, want := naiveKeys{}, naiveKeys{}
		env := protocol.NewEnv[string](runner, 1, rnd)
		for call := range 20 {
			env.Begin(0)
			for op := range rnd.IntN(20) {
				key := randomKey(rnd)
				if rnd.IntN(3) > 0 {
					value := fmt.Sprint(call, ".", op)
					env.Put(key, []byte(value))
					want[string(key)] = value
				} else {
					env.Delete(key)
					delete(want, string(key))
				}
				compare(t, env, want, rnd)
			}
			carryOut(runner, env.Out)
			if !maps.Equal(runner, want) {
				t.Fatalf("seed %d: the effects make %v, want %v", seed, runner, want)
			}
		}
	}
}

// TestScanIsOfItsMoment writes while it scans: what comes is what was there when Scan was called.
func TestScanIsOfItsMoment(t *testing.T) {
	env := protocol.NewEnv[string](naiveKeys{"a": "1", "c": "1"}, 1, nil)
	env.Begin(0)
	env.Put([]byte("b"), []byte("2"))
	env.Delete([]byte("c"))
	seq := env.Scan(nil, nil)
	var got []string
	for k := range seq {
		got = append(got, string(k))
		env.Put([]byte("bb"), nil)
		env.Put([]byte("d"), nil)
		env.Delete([]byte("b"))
	}
	if want := []string{"a", "b"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if got, want := list(env.Scan(nil, nil), 9), []string{"61=1", "6262=", "64="}; !slices.Equal(got, want) {
		t.Errorf("then %q", got)
	}
}

func TestNextCallForgetsTheOverlay(t *testing.T) {
	for _, keys := range []int{3, 3000} {
		env := protocol.NewEnv[string](nil, 1, nil)
		for range 2 {
			env.Begin(0)
			if got := list(env.Scan(nil, nil), 9); got != nil {
				t.Errorf("with %d keys a call sees the one before: %q", keys, got)
			}
			for i := range keys {
				env.Put(fmt.Append(nil, i), nil)
			}
			if got := len(list(env.Scan(nil, nil), keys+1)); got != keys || len(env.Out) != keys {
				t.Errorf("%d keys, %d effects, want %d", got, len(env.Out), keys)
			}
		}
		if v, ok := env.Get([]byte("2")); !ok || len(v) != 0 {
			t.Errorf("got %q, %v", v, ok)
		}
	}
}

func BenchmarkScanOverWrites(b *testing.B) {
	below := naiveKeys{}
	env := protocol.NewEnv[string](below, 1, nil)
	env.Begin(0)
	for i := range 100 {
		env.Put(fmt.Appendf(nil, "%03d", i), bytes.Repeat([]byte{1}, 16))
	}
	b.ReportAllocs()
	for b.Loop() {
		for range env.Scan(nil, nil) {
		}
	}
}
