package kv_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
	"testing/iotest"

	"github.com/foresay/foresay/smr/kv"
)

// TestFrozenKeepsNothingThatWasRead: the parts of a large moment take as much memory as a few of them and the kept changes, not as the whole.
func TestFrozenKeepsNothingThatWasRead(t *testing.T) {
	const keys, valueBytes, part = 400, 100 << 10, 128 << 10
	store := kv.New()
	for i := range keys {
		store.Apply(kv.Put([]byte(strconv.Itoa(i)), bytes.Repeat([]byte{byte(i)}, valueBytes)))
	}
	moment, p, most := store.Freeze(), make([]byte, part), uint64(0)
	live := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, n := live(), 0
	for {
		read, err := io.ReadFull(moment, p)
		n += read
		if err != nil {
			break
		}
		if n%(20*part) == 0 {
			most = max(most, live())
		}
	}
	if n < keys*valueBytes || most > before+8<<20 {
		t.Errorf("%d bytes were read; %d bytes are live at most, %d before", n, most, before)
	}
	runtime.KeepAlive(store)
}

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
