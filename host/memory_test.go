package host_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/protocol"
)

// Random operations do to a Memory what they do to a plain map and a slice.
func TestRandomMemory(t *testing.T) {
	for seed := range uint64(3) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		m := host.NewMemory()
		keys := map[string]string{}
		var log []string
		low := uint64(1)
		for step := range 2000 {
			var ops []host.Op
			for range rnd.IntN(4) {
				key := fmt.Sprintf("%04d", rnd.IntN(1500))
				switch rnd.IntN(8) {
				case 0:
					ops = append(ops, host.Op{Kind: protocol.KindDelete, Key: []byte(key)})
					delete(keys, key)
				case 1:
					r := fmt.Sprint("record ", step)
					from := rnd.IntN(len(r))
					to := from + rnd.IntN(len(r)-from)
					ops = append(ops, host.Op{Kind: protocol.KindAppend, Index: low + uint64(len(log)),
						Value: []byte(r[:from] + r[to:]), Refs: []protocol.Ref{{At: from, Data: []byte(r[from:to])}}})
					log = append(log, r)
				case 2:
					cut := rnd.IntN(len(log) + 1)
					ops = append(ops, host.Op{Kind: protocol.KindTruncate, Index: low + uint64(cut)})
					log, low = log[cut:], low+uint64(cut)
				default:
					ops = append(ops, host.Op{Kind: protocol.KindPut, Key: []byte(key), Value: fmt.Append(nil, step)})
					keys[key] = fmt.Sprint(step)
				}
			}
			done := false
			m.Commit(ops, func(err error) { done = err == nil })
			lo, hi := fmt.Sprintf("%04d", rnd.IntN(1600)), fmt.Sprintf("%04d", rnd.IntN(1600))
			if v, ok := m.Keys().Get([]byte(lo)); !done || ok != (keys[lo] != "") || string(v) != keys[lo] {
				t.Fatalf("seed %d, step %d: %s is %q, want %q", seed, step, lo, v, keys[lo])
			}
			if step%200 == 0 {
				compare(t, m, keys, []byte(lo), []byte(hi))
				compare(t, m, keys, nil, nil)
				compareLog(t, m, low, log)
			}
		}
	}
}

func compare(t *testing.T, m *host.Memory, keys map[string]string, lo, hi []byte) {
	t.Helper()
	var got, want []string
	for k, v := range m.Keys().Scan(lo, hi) {
		got = append(got, fmt.Sprintf("%s=%s", k, v))
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if k >= string(lo) && (hi == nil || k < string(hi)) {
			want = append(want, k+"="+keys[k])
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("from %s to %s: got %q, want %q", lo, hi, got, want)
	}
}

func compareLog(t *testing.T, m *host.Memory, low uint64, log []string) {
	t.Helper()
	var got []string
	for r, err := range m.Records() {
		if err != nil || r.Index != low+uint64(len(got)) {
			t.Fatalf("record %d, %v, after %d of them from %d", r.Index, err, len(got), low)
		}
		got = append(got, string(r.Bytes))
	}
	if !slices.Equal(got, log) || m.NextIndex() != low+uint64(len(log)) {
		t.Fatalf("the log is %q, want %q; the next index is %d", got, log, m.NextIndex())
	}
}

// A loop over the keys may change them, and sees what comes after its place as it is then.
func TestScanWhileKeysChange(t *testing.T) {
	m := host.NewMemory()
	put := func(k string) {
		m.Commit([]host.Op{{Kind: protocol.KindPut, Key: []byte(k), Value: []byte(k)}}, func(error) {})
	}
	for i := range 1000 {
		put(fmt.Sprintf("%04d", 2*i))
	}
	n := 0
	last := ""
	for k := range m.Keys().Scan(nil, []byte("0500")) {
		if string(k) <= last {
			t.Fatalf("%s after %s", k, last)
		}
		last = string(k)
		n++
		var i int
		if _, err := fmt.Sscanf(last, "%d", &i); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			put(fmt.Sprintf("%04d", i+1))
			m.Commit([]host.Op{{Kind: protocol.KindDelete, Key: k}}, func(error) {})
		}
	}
	if n != 500 {
		t.Errorf("saw %d keys, want 500", n)
	}
}
