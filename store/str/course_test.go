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
		c.commits(10, 11, b)
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
			if d.ID == txnID(10) {
				got = d.Course
			}
		}
		if got == nil {
			t.Fatalf("the word on %d comes last, and the other one has not ended", test.last)
		}
		test.want.Snapshot, test.want.Local, test.want.Built = 10, 11, []store.Built{{Key: a, By: txnID(5)}}
		if diff := cmp.Diff(&test.want, got); diff != "" {
			t.Errorf("the word on %d comes last (-want +got):\n%s", test.last, diff)
		}
	}
}
