package mvcc_test

import (
	"fmt"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/mvcc"
)

// A key has two versions. A snapshot sees the one of its time, until the horizon has passed that.
func Example() {
	env := protocol.NewEnv[any](nil, 1, nil) // which a node gets from its runner
	s := mvcc.New([]byte("values/"))
	for _, v := range []store.Value{
		{Version: store.Version{Time: 10}, Present: true, Bytes: []byte("old")},
		{Version: store.Version{Time: 20}, Present: true, Bytes: []byte("new")},
	} {
		if err := s.Put(env, "k", v); err != nil {
			fmt.Println(err)
		}
	}
	v, err := s.Get(env, "k", 15)
	fmt.Printf("%s %v\n", v.Bytes, err)

	s.RaiseHorizon(env, 20)
	s.Collect(env, 100)
	_, err = s.Get(env, "k", 15)
	fmt.Println(err)
	v, err = s.Get(env, "k", 25)
	fmt.Printf("%s %v\n", v.Bytes, err)
	// Output:
	// old <nil>
	// mvcc: timestamp 15ns is from before the horizon, 20ns
	// new <nil>
}

// Who serves reads at timestamps has a ceiling above them on record, and writes above what was
// read.
func ExampleReads() {
	r, err := mvcc.NewReads(0, 5, 1000)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Serve("k", 10))
	ceiling, due := r.Raise(10)
	fmt.Println(ceiling, due)
	r.Recorded(ceiling) // once it is
	fmt.Println(r.Serve("k", 10), "writes above", r.Above("k"))

	next, _ := mvcc.NewReads(ceiling, 5, 1000) // a node that takes over knows of no reads
	fmt.Println("writes above", next.Above("k"))
	// Output:
	// false
	// 15ns true
	// true writes above 10ns
	// writes above 15ns
}
