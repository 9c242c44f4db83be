package counter

import (
	"fmt"
	"testing"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/internal/wirefmt/wiretest"
	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/protocol"
)

var _ bft.Service = Service{}

func TestLayouts(t *testing.T) {
	wiretest.Layouts(t, wiretest.Sample("increment", commandLayout, Reply{Value: 300, Token: 5}),
		wiretest.Sample("reply", replyLayout, Reply{Value: 300, Token: 5, Refused: true}))
}

func newSpace() keyspace.Space {
	s, err := keyspace.Open(protocol.NewEnv[bft.Message](nil, 1, nil), "s/")
	if err != nil {
		panic(err)
	}
	return s.Push()
}

func apply(space keyspace.Space, command []byte) Reply {
	r, err := Decode(Service{}.Apply(space, 0, command))
	if err != nil {
		panic(err)
	}
	return r
}

// TestTokens: an increment shows a reply that the counter has given.
func TestTokens(t *testing.T) {
	space := newSpace()
	first := apply(space, Increment(Reply{}))
	second := apply(space, Increment(first))
	if first.Value != 1 || second.Value != 2 || first.Token == second.Token {
		t.Fatalf("the first replies are %+v and %+v", first, second)
	}
	for name, command := range map[string][]byte{
		"another value's token": Increment(Reply{Value: 2, Token: first.Token}),
		"no token":              Increment(Reply{Value: 1}),
		"no reply yet":          Increment(Reply{Value: 3, Token: tokenOf(3)}),
		"nonsense":              []byte("nonsense"),
		"nothing":               nil,
	} {
		if r := apply(space, command); !r.Refused || r.Token != 0 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r, err := Decode(Service{}.Read(space, Query())); err != nil || r.Value != 2 || r.Token != 0 {
		t.Errorf("the counter is at %+v, %v", r, err)
	}
	if r := apply(space, Query()); r != (Reply{Value: 2}) {
		t.Errorf("a query that is ordered comes to %+v", r)
	}
	if third := apply(space, Increment(first)); third.Value != 3 { // as another client does
		t.Errorf("an increment after the first one comes to %+v", third)
	}
}

func Example() {
	space := newSpace()
	var last Reply
	for range 3 {
		last = apply(space, Increment(last))
	}
	fmt.Println(last.Value, apply(space, Increment(Reply{Value: 3, Token: 1})).Refused)
	// Output: 3 true
}
