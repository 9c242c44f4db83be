package sessions

import (
	"fmt"
	"testing"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/protocol"
)

var limits = bft.DefaultLimits()

func newSpace(t testing.TB) keyspace.Space {
	s, err := keyspace.Open(protocol.NewEnv[bft.Message](nil, 1, nil), "s/")
	if err != nil {
		if t == nil {
			panic(err)
		}
		t.Fatal(err)
	}
	return s.Push()
}

func Example() {
	space := newSpace(nil)
	m := &bft.Request{Client: 7, Session: 1, First: 1, Operations: []bft.Operation{{}}}
	fmt.Printf("%s ", Execute(space, count{}, nil, limits, 0, 1, m)[0].Result.Value)
	fmt.Printf("%s\n", Execute(space, count{}, nil, limits, 0, 2, m)[0].Result.Value)
	// Output: + +
}
