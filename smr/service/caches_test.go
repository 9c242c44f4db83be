package service

import (
	"fmt"
	"testing"

	"github.com/foresay/foresay/wal"
)

// TestSnapshotIsNotCached: what a replica reads of its snapshot when it starts does not stay in
// memory beside the state that is made of it.
func TestSnapshotIsNotCached(t *testing.T) {
	store, err := wal.Open(t.TempDir(), diskCaches())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	node, err := store.Node("replica")
	if err != nil {
		t.Fatal(err)
	}
	key := func(i int) []byte { return fmt.Append(nil, "chunk ", i) }
	var b wal.Batch
	for i := range 8 {
		b.Put(key(i), make([]byte, 128<<10))
	}
	done := make(chan error, 1)
	node.Commit(&b, func(err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		once, there := node.Keys().Get(key(i))
		again, _ := node.Keys().Get(key(i))
		if !there || len(once) != 128<<10 {
			t.Fatalf("chunk %d has %d bytes", i, len(once))
		}
		if &once[0] == &again[0] {
			t.Errorf("chunk %d stays in memory", i)
		}
	}
}
