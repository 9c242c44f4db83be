package kit

import (
	"testing"
	"time"
)

// TestFlow: a flow goes on from what was sent, goes back for what is lost and not for what is
// probably on its way, and counts what is under way from where it began, not from 0.
func TestFlow(t *testing.T) {
	const trip = 10 * time.Millisecond
	type slot uint64
	f := NewFlow[slot](101)
	is := func(what string, next, arrived slot, ahead int) {
		t.Helper()
		if f.Next() != next || f.Arrived() != arrived || f.Ahead() != ahead {
			t.Fatalf("%s: next %d, arrived %d, %d ahead; want %d, %d, %d", what, f.Next(), f.Arrived(), f.Ahead(), next,
				arrived, ahead)
		}
	}
	is("at first", 101, 100, 0)
	f.Sent(0, 110, 10, cheapBytes)
	f.Sent(trip, 120, 10, cheapBytes)
	is("two messages were sent", 121, 100, 20)
	if bound := 2 * cheapBytes; !f.Full(bound) || f.Full(2*bound) {
		t.Errorf("full with %d bytes is %v, with %d %v", bound, f.Full(bound), 2*bound, f.Full(2*bound))
	}
	f.Done(110)
	is("the first has arrived", 121, 110, 10)
	f.Lost(trip+trip/2, 111, trip)
	is("what was sent half a round trip ago is missing", 121, 110, 10)
	f.Lost(2*trip, 121, trip)
	is("what was never sent is missing", 121, 110, 10)
	f.Lost(2*trip, 115, trip)
	is("what was sent a round trip ago is missing", 115, 114, 0)
	if f.Full(1) {
		t.Error("what is sent again counts as under way")
	}
	f.Done(117)
	is("more has arrived than is known to be sent", 115, 117, 0)
	f.Skip(117)
	is("that is skipped", 118, 117, 0)
	f.Skip(50)
	is("nothing goes back by a skip", 118, 117, 0)
	f.Sent(3*trip, 120, 3, 1)
	f.Restart(90)
	is("anew", 90, 89, 0)
	if f.Full(1) {
		t.Error("what was under way before a restart counts")
	}
}
