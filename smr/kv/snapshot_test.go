package kv_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"
	"testing/iotest"

	"github.com/foresay/foresay/smr/kv"
)

// TestFrozenKeepsNothingThatWasRead: the parts of a large moment take as much memory as a few of
// them and the kept changes, not as the whole.
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

// TestFrozenMoment reads moments of a store, a few bytes at a time, while commands change it: each
// is what Snapshot wrote in that moment.
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

// TestPatches has one store follow another by what has changed, told a few bytes at a time while
// commands change it, from one moment to the next: it is the same in each.
func TestPatches(t *testing.T) {
	for seed := range uint64(10) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		store, w := kv.New(), &twin{items: map[string]kv.Item{}, leases: map[kv.LeaseID]kv.Lease{}}
		follower := kv.New()
		store.Mark()
		var changes, want bytes.Buffer
		var moment io.Reader
		for step := range 2000 {
			w.step(t, rnd, store, step)
			if moment == nil && rnd.IntN(40) == 0 {
				moment = store.Changes()
				store.Mark()
				want.Reset()
				if err := store.Snapshot(&want); err != nil {
					t.Fatal(err)
				}
			}
			if moment == nil {
				continue
			}
			if _, err := io.CopyN(&changes, moment, int64(rnd.IntN(200))); err == nil {
				continue
			} else if err != io.EOF {
				t.Fatal(err)
			}
			cut := changes.Bytes()[:rnd.IntN(changes.Len())]
			if err := follower.Patch(bytes.NewReader(cut)); err == nil {
				t.Errorf("seed %d: %d of %d bytes are a patch", seed, len(cut), changes.Len())
			}
			var reader io.Reader = bytes.NewReader(changes.Bytes())
			if rnd.IntN(2) == 0 {
				reader = bytes.NewBuffer(changes.Bytes())
			}
			var got bytes.Buffer
			if err := errors.Join(follower.Patch(reader), follower.Snapshot(&got)); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if !bytes.Equal(got.Bytes(), want.Bytes()) {
				t.Fatalf("seed %d, step %d: the follower is another store", seed, step)
			}
			if follower.Usage() != kvUsage(t, want.Bytes()) {
				t.Errorf("seed %d: usage %+v", seed, follower.Usage())
			}
			moment = nil
			changes.Reset()
		}
	}
}

func kvUsage(t *testing.T, snapshot []byte) kv.Usage {
	t.Helper()
	s := kv.New()
	if err := s.Restore(bytes.NewReader(snapshot)); err != nil {
		t.Fatal(err)
	}
	return s.Usage()
}

// TestPatchForgetsChanges: of changes to watch, a follower forgets those that the store has
// forgotten.
func TestPatchForgetsChanges(t *testing.T) {
	store, follower := kv.New(), kv.New()
	store.Mark()
	for round, puts := range []int{3, 10_005, 1, 25_000, 2} {
		for i := range puts {
			store.Apply(kv.Put([]byte(strconv.Itoa(i%50)), []byte{byte(round)}))
		}
		var got, want bytes.Buffer
		if err := errors.Join(follower.Patch(store.Changes()), follower.Snapshot(&got), store.Snapshot(&want)); err != nil {
			t.Fatal(err)
		}
		store.Mark()
		if !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Errorf("round %d: the follower has %d bytes, the store %d, or others", round, got.Len(), want.Len())
		}
	}
}

// TestFrozenMakesChangesAsTheyAreRead: what a store remembers of its changes is megabytes, and is
// made as it is read, like the keys. Else the last part of a snapshot takes as long as all others.
func TestFrozenMakesChangesAsTheyAreRead(t *testing.T) {
	const part, valueBytes, remembered = 16 << 10, 4 << 10, 4 << 20
	store := kv.New()
	store.Mark()
	for n := range 2000 {
		store.Apply(kv.Put([]byte{byte(n % 8)}, make([]byte, valueBytes)))
	}
	for name, moment := range map[string]io.Reader{"all": store.Freeze(), "what has changed": store.Changes()} {
		p, total, most := make([]byte, part), 0, uint64(0)
		for {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			n, err := moment.Read(p)
			runtime.ReadMemStats(&after)
			total, most = total+n, max(most, after.TotalAlloc-before.TotalAlloc)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if total < remembered*9/10 || most > 16*part {
			t.Errorf("%s: %d bytes were read in parts of %d, of which one took %d bytes of memory", name, total, part, most)
		}
	}
}

// TestRestoringInPieces restores a snapshot, and what has changed since, a few bytes at a time,
// beside a store that goes on meanwhile and shows nothing of it before the end. Bytes that are cut
// off restore nothing.
func TestRestoringInPieces(t *testing.T) {
	for seed := range uint64(10) {
		rnd := rand.New(rand.NewPCG(seed, 6))
		store, w := kv.New(), &twin{items: map[string]kv.Item{}, leases: map[kv.LeaseID]kv.Lease{}}
		run := func(steps int) {
			for step := range steps {
				w.step(t, rnd, store, step)
			}
		}
		bytesOf := func(r io.Reader) []byte {
			b, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		run(500)
		parts := [][]byte{bytesOf(store.Freeze())}
		for range 3 {
			store.Mark()
			run(200)
			parts = append(parts, bytesOf(store.Changes()))
		}
		want := bytesOf(store.Freeze())
		for _, cut := range []bool{false, true} {
			lagging, key := kv.New(), 0
			r := lagging.Restoring()
			var err error
			for i, part := range parts {
				if cut && i == len(parts)-1 {
					part = part[:rnd.IntN(len(part))]
				}
				for len(part) > 0 && err == nil {
					n := min(len(part), 1+rnd.IntN(100))
					piece := bytes.Clone(part[:n])
					_, err = r.Write(piece)
					clear(piece) // it belongs to the caller
					part = part[n:]
					key++
					lagging.Apply(kv.Put([]byte(strconv.Itoa(key)), []byte("meanwhile")))
				}
				if err == nil {
					err = r.End()
				}
			}
			before := bytesOf(lagging.Freeze())
			if err == nil {
				err = r.Become()
			}
			got := bytesOf(lagging.Freeze())
			switch {
			case cut && (err == nil || !bytes.Equal(got, before)):
				t.Errorf("seed %d: bytes that are cut off are restored: %v", seed, err)
			case !cut && (err != nil || !bytes.Equal(got, want) || bytes.Equal(before, want)):
				t.Errorf("seed %d: %d bytes were restored, want %d, or others: %v", seed, len(got), len(want), err)
			}
		}
	}
}
