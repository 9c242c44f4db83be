package wal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestReadsFollowWrites: whatever is remembered of reads, a read has what was committed last.
func TestReadsFollowWrites(t *testing.T) {
	for _, limit := range []int{1, 6000, 1 << 20} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			s, err := Open("store", Options{FS: vfs.NewMem(), ReadCacheBytes: limit, MemTableBytes: minMemTableBytes,
				NoSync: true})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			rnd := rand.New(rand.NewPCG(1, uint64(limit)))
			var nodes []*Node
			want := []map[string][]byte{{}, {}}
			for i := range want {
				n, err := s.Node(fmt.Sprint(i))
				if err != nil {
					t.Fatal(err)
				}
				nodes = append(nodes, n)
			}
			for range 4000 {
				i := rnd.IntN(2)
				key := fmt.Appendf(nil, "key-%d", rnd.IntN(30))
				if rnd.IntN(3) > 0 {
					got, ok := nodes[i].Keys().Get(key)
					if w, is := want[i][string(key)]; ok != is || !bytes.Equal(got, w) {
						t.Fatalf("%s is %x, %v; want %x, %v", key, got, ok, w, is)
					}
					continue
				}
				var b Batch
				if rnd.IntN(4) == 0 {
					b.Delete(key)
					delete(want[i], string(key))
				} else {
					value := randomBytes(rnd, 600)
					b.Put(key, value)
					want[i][string(key)] = value
				}
				written := make(chan struct{})
				nodes[i].Commit(&b, func(error) { close(written) })
				if rnd.IntN(2) == 0 {
					<-written // else it is read while it waits
				}
			}
			for _, n := range nodes {
				if kept := n.cache.bytes(); kept > limit {
					t.Errorf("%d bytes are kept, of %d", kept, limit)
				}
			}
		})
	}
}

func (c *readCache) bytes() (n int) {
	for _, m := range []map[string]write{c.young, c.old} {
		for _, w := range m {
			n += len(w.key) + len(w.value) + cachedOverheadBytes
		}
	}
	return n
}

// TestReadDuringAWrite: what a read found before a write is not remembered after it.
func TestReadDuringAWrite(t *testing.T) {
	s, err := Open("store", Options{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n, err := s.Node("n")
	if err != nil {
		t.Fatal(err)
	}
	write := func(value string) {
		var b Batch
		b.Put([]byte("key"), []byte(value))
		written := make(chan struct{})
		n.Commit(&b, func(error) { close(written) })
		<-written
	}
	s.read = func(key []byte) ([]byte, error) {
		value, err := s.get(key)
		s.read = s.get
		write("new")
		return value, err
	}
	if got, ok := n.Keys().Get([]byte("key")); ok {
		t.Errorf("at first it is %q", got)
	}
	if got, _ := n.Keys().Get([]byte("key")); string(got) != "new" {
		t.Errorf("after the write it is %q", got)
	}
}

// TestReadsBesideWrites: who reads while others write never has an older value than it, or the
// writer, had before.
func TestReadsBesideWrites(t *testing.T) {
	s, err := Open("store", Options{FS: vfs.NewMem(), MemTableBytes: minMemTableBytes, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n, err := s.Node("n")
	if err != nil {
		t.Fatal(err)
	}
	key := func(i int) []byte { return fmt.Appendf(nil, "key-%d", i) }
	const keys, writes = 5, 3000
	var mu sync.Mutex
	var last [keys]uint64 // that Commit has returned for
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for r := range writes {
				i := r % keys
				mu.Lock()
				least := last[i]
				mu.Unlock()
				value, ok := n.Keys().Get(key(i))
				if !ok {
					value = make([]byte, 8)
				}
				if got := binary.BigEndian.Uint64(value); got < least {
					t.Errorf("key %d is %d after %d was committed", i, got, least)
					return
				}
			}
		})
	}
	for w := range uint64(writes) {
		i := int(w) % keys
		var b Batch
		b.Put(key(i), binary.BigEndian.AppendUint64(nil, w+1))
		n.Commit(&b, func(error) {})
		mu.Lock()
		last[i] = w + 1
		mu.Unlock()
	}
	wg.Wait()
}
