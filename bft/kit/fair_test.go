package kit

import (
	"testing"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/protocol"
)

// TestLines: clients have their turns, however much one of them asks for, and none gets more than
// another one by asking for much at once.
func TestLines(t *testing.T) {
	const greedy, large, late = 7, 8, 9
	var l lines
	requests := map[bft.Digest]*bft.Request{}
	add := func(client protocol.ID, i, operations, sizeBytes int) bft.Digest {
		m := &bft.Request{Client: client, Operations: make([]bft.Operation, operations)}
		m.Operations[0].Command = make([]byte, sizeBytes)
		d := bft.Digest{byte(client), byte(i), byte(i >> 8)}
		requests[d] = m
		l.add(client, d, false)
		return d
	}
	for i := range 500 {
		add(greedy, i, 1, 0)
		add(large, i, 4, 8*costBytes)
	}
	got := map[protocol.ID]int{}
	order := func(n int) {
		for range n {
			d, ok := l.next()
			if !ok {
				t.Fatal("nothing is next")
			}
			m := requests[d]
			got[m.Client] += cost(m)
			l.take()
			l.charge(m)
		}
	}
	order(60)
	if a, b := got[greedy], got[large]; a > b+turnCost+12 || b > a+turnCost+12 {
		t.Errorf("one client has had %d, another one %d", a, b)
	}
	add(late, 0, 1, 0)
	got = map[protocol.ID]int{}
	if order(2 * (turnCost + 1)); got[late] == 0 {
		t.Errorf("who comes late waits for all others: %v", got)
	}
	first := add(greedy, 500, 1, 0)
	l.add(greedy, first, true)
	for l.ring[0] != greedy || l.of[greedy].credit <= 0 {
		order(1)
	}
	if d, _ := l.next(); d != first {
		t.Error("what others wait for is not ordered first")
	}
}
