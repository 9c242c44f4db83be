package kv_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"

	"github.com/foresay/foresay/smr/kv"
)

// TestFrozenMoment reads moments of a store, a few bytes at a time, while commands change it: each is what Snapshot wrote in that moment.
func TestFrozenMoment(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	store, w := kv.New(), &twin{items: map[string]kv.Item{}, leases: map[kv.LeaseID]kv.Lease{}}
	store.Apply(kv.Put(nil, []byte("the empty key")))
	w.set(nil, []byte("the empty key"), 0)
	type moment struct {
		from      io.Reader
		got, want bytes.Buffer
	}
	var moments []*moment
	for step := range 3000 {
		w.step(t, rnd, store, step)
		if step%100 == 0 {
			m := &moment{from: store.Freeze()}
			if err := store.Snapshot(&m.want); err != nil {
				t.Fatal(err)
			}
			moments = append(moments, m)
		}
		for _, m := range moments {
			if _, err := io.CopyN(&m.got, m.from, int64(rnd.IntN(200))); err != nil && err != io.EOF {
				t.Fatal(err)
			}
		}
	}
	for i, m := range moments {
		if _, err := io.Copy(&m.got, m.from); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(m.got.Bytes(), m.want.Bytes()) {
			t.Errorf("moment %d: %d bytes, want %d, or others", i, m.got.Len(), m.want.Len())
		}
	}
	var want bytes.Buffer
	if err := store.Snapshot(&want); err != nil {
		t.Fatal(err)
	}
	if err := iotest.TestReader(store.Freeze(), want.Bytes()); err != nil {
		t.Error(err)
	}
}
