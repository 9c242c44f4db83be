package str

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
)

// TestCourse has a coordinator tell how a transaction that builds on another one came to its end:
// which of the two waits for what depends on whose word comes last.
func TestCourse(t *testing.T) {
	for _, test := range []struct {
		last uint64 // whose word comes last
		want store.Course
	}{
		{5, store.Course{LastOn: txnID(5), LastOnAt: 3 * time.Second,
			Words: []store.CourseWord{{At: time.Second}}}},
		{10, store.Course{LastOn: txnID(5), LastOnAt: time.Second, Words: []store.CourseWord{{At: 3 * time.Second}}}},
	} {
		c := newSoloCoordinator(t)
		a, b := c.key(0, "a"), c.key(0, "b")
		c.begins(5, b)
		c.commits(5, 6, a)
		expectValues(t, c.begins(10, a), "5")
		asked := store.CommitRequest{Txn: writesOf(10, b), Explain: true}
		c.asks(10, 11, asked)
		began := c.env.Now
		word := func(at uint64, after time.Duration) []store.Decided {
			c.env.Now = began + after
			all := []protocol.ID{11}
			c.Receive(c.env, 11, word{ID: txnID(at), At: raft.Position{Index: at, Term: 1}, Readers: all, Members: all,
				Serving: all})
			return only[store.Decided](c.said())
		}
		word(15-test.last, time.Second)
		word(15-test.last, 2*time.Second)
		var got *store.Course
		for _, d := range word(test.last, 3*time.Second) {
			switch {
			case d.ID == txnID(10):
				got = d.Course
			case d.Course != nil:
				t.Errorf("the client of %v is told how it came to its end, and has not asked", d.ID)
			}
		}
		if got == nil {
			t.Fatalf("the word on %d comes last, and the other one has not ended", test.last)
		}
		for _, explain := range []bool{true, false} {
			asked.Explain = explain
			c.Receive(c.env, 210, asked)
			if d := only[store.Decided](c.said()); len(d) != 1 || d[0].Course != nil != explain {
				t.Errorf("its client asks again, for an explanation: %v; it is told %+v", explain, d)
			}
		}
		test.want.Snapshot, test.want.Local, test.want.Built = 10, 11, []store.Built{{Key: a, By: txnID(5)}}
		if diff := cmp.Diff(&test.want, got); diff != "" {
			t.Errorf("the word on %d comes last (-want +got):\n%s", test.last, diff)
		}
	}
}

// TestCourseOfRefused asks how a transaction came to its end that did so before its commit was
// asked for.
func TestCourseOfRefused(t *testing.T) {
	for _, explain := range []bool{true, false} {
		c := newSoloCoordinator(t)
		a, b := c.key(0, "a"), c.key(0, "b")
		c.begins(5, b)
		c.commits(5, 6, a)
		c.begins(10, a)
		c.abort(c.env, c.txns[txnID(5)], store.Lapsed)
		c.said()
		c.Receive(c.env, 210, store.CommitRequest{Txn: writesOf(10, b), Explain: explain})
		d := only[store.Decided](c.said())
		if len(d) != 1 || d[0].Verdict != store.Aborted || d[0].Course != nil != explain {
			t.Fatalf("asked for an explanation: %v; told %+v", explain, d)
		}
		if explain && len(d[0].Course.Built) != 1 {
			t.Errorf("it does not say what was read of the aborted transaction: %+v", d[0].Course)
		}
	}
}
