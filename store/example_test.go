package store_test

import (
	"fmt"

	"github.com/foresay/foresay/store"
)

// A transaction moves one from one key to another: it reads both, and sees its own writes.
func Example() {
	var tx store.Buffer
	v := store.Version{Time: 7, Client: 1}
	tx.Saw("a", store.Value{Version: v, Present: true, Bytes: []byte{5}})
	tx.Saw("b", store.Value{})

	a, _ := tx.Get("a")
	b, _ := tx.Get("b")
	fmt.Println("b is there:", b.Present)
	tx.Put("a", []byte{a.Bytes[0] - 1})
	tx.Put("b", []byte{1})
	a, _ = tx.Get("a")
	fmt.Println("a is", a.Bytes[0])

	reads, writes := tx.Accesses()
	for _, r := range reads {
		fmt.Println("read", r.Key, "at", r.Version)
	}
	for _, w := range writes {
		fmt.Println("write", w.Key, w.Bytes)
	}
	// Output:
	// b is there: false
	// a is 4
	// read a at 7/1
	// read b at 0/0
	// write a [4]
	// write b [1]
}
