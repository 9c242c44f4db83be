package wal_test

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/foresay/foresay/wal"
)

// A node writes records and keys together, and finds them again.
func Example() {
	disk := vfs.NewMem() // leave Options.FS out for a real disk
	if err := write(disk); err != nil {
		fmt.Println(err)
		return
	}
	store, err := wal.Open("/data", wal.Options{FS: disk})
	if err != nil {
		fmt.Println(err)
		return
	}
	node, err := store.Node("shard-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	for record, err := range node.Records() {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("record %d: %s\n", record.Index, record.Data)
	}
	for key, value := range node.Keys().Scan(nil, nil) {
		fmt.Printf("key %s: %s\n", key, value)
	}
	fmt.Println("next:", node.NextIndex())
	fmt.Println(store.Close())
	// Output:
	// record 2: vote for 3
	// key term: 8
	// next: 3
	// <nil>
}

func write(disk vfs.FS) error {
	store, err := wal.Open("/data", wal.Options{FS: disk})
	if err != nil {
		return err
	}
	node, err := store.Node("shard-1")
	if err != nil {
		return err
	}
	durable := make(chan error, 2)
	var batch wal.Batch
	batch.Append(node.NextIndex(), []byte("vote for 2"))
	batch.Put([]byte("term"), []byte("7"))
	node.Commit(&batch, func(err error) { durable <- err }) // visible at once, durable when the function is called
	batch.Append(node.NextIndex(), []byte("vote for 3"))
	batch.Truncate(2)
	batch.Put([]byte("term"), []byte("8"))
	node.Commit(&batch, func(err error) { durable <- err })
	for range 2 {
		if err := <-durable; err != nil {
			return err
		}
	}
	return store.Close()
}
