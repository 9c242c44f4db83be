package keyspace_test

import (
	"fmt"

	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/protocol"
)

// A node executes requests in layers, commits one, undoes the other, and makes a checkpoint. Env is
// what its runner gives it.
func Example() {
	env := protocol.NewEnv[any](nil, 1, nil)
	state, err := keyspace.Open(env, "state/")
	if err != nil {
		panic(err)
	}
	first := state.Push()
	first.Put([]byte("city"), []byte("Oslo"))
	second := state.Push()
	second.Delete([]byte("city"))
	_, there := second.Get([]byte("city"))
	fmt.Println("there, seen through the second layer:", there)

	state.Drop(second)
	state.Merge()
	city, _ := state.Committed().Get([]byte("city"))
	fmt.Printf("committed: %s\n", city)

	digest := state.Checkpoint(1)
	moment, _ := state.At(1)
	fmt.Println(moment.Keys(), moment.Digest() == digest)
	// Output:
	// there, seen through the second layer: false
	// committed: Oslo
	// 1 true
}

// A disk that a node has left can be looked at from outside.
func ExampleCommittedOn() {
	env := protocol.NewEnv[any](nil, 1, nil)
	s, err := keyspace.Open(env, "s/")
	if err != nil {
		panic(err)
	}
	s.Push().Put([]byte("city"), []byte("Oslo"))
	s.Merge()
	s.Leave()
	value, _ := keyspace.CommittedOn(env, "s/").Get([]byte("city"))
	fmt.Printf("%s\n", value)
	// Output: Oslo
}
