package storecmd

import (
	"bytes"
	"strings"
	"testing"

	"github.com/foresay/foresay/store"
)

// TestCourseIsExplained: what the final commit waited for is whatever came last.
func TestCourseIsExplained(t *testing.T) {
	at := sight{names: []string{"oregon", "seoul"}}
	by := store.TxnID{Time: 300, Client: 7}
	words := []store.CourseWord{{Shard: 0, Site: 0, At: 2 * msec}, {Shard: 1, Site: 1, At: 122 * msec}}
	for _, tc := range []struct {
		course store.Course
		want   string
	}{
		{store.Course{Snapshot: 1e9, Local: 2, LocalAt: msec, Words: words,
			Built: []store.Built{{Key: "a", By: by}, {Key: "b", By: by}}, LastOn: by, LastOnAt: 90 * msec},
			"  snapshot of 00:00:01.000000, not final then: a of 300/7, b of 300/7; committed locally 1.0 ms after the " +
				"commit was asked for\n  certified: shard 0 at oregon at 2.0, shard 1 at seoul at 122.0\n" +
				"  the end waited for the word of seoul for shard 1, at 122.0\n"},
		{store.Course{Snapshot: 1e9, Local: 2, LocalAt: msec, Words: words[:1], LastOn: by, LastOnAt: 90 * msec},
			"  snapshot of 00:00:01.000000; committed locally 1.0 ms after the commit was asked for\n" +
				"  certified: shard 0 at oregon at 2.0\n" +
				"  the end waited for transaction 300/7, which was final at 90.0\n"},
		{store.Course{Snapshot: 1e9}, "  snapshot of 00:00:01.000000\n"},
	} {
		var out bytes.Buffer
		at.course(&tc.course).write(&out)
		if out.String() != tc.want {
			t.Errorf("it says\n%swant\n%s", &out, tc.want)
		}
	}
	if at.course(nil) != nil {
		t.Error("there is one of what nobody has told")
	}
}

// TestCourseOfAStore explains a transaction of a store that runs.
func TestCourseOfAStore(t *testing.T) {
	file, _ := cluster(t, "str", 1)
	out, err := run(t, "txn", "get", "a", ",", "put", "a", "x", "--explain", "--client", file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"  snapshot of ", "; committed locally ", "  certified: shard 0 at ",
		"  the end waited for the word of "} {
		if !strings.Contains(out, want) {
			t.Errorf("it says\n%swant %q", out, want)
		}
	}
	if out, err = run(t, "txn", "get", "a", "--explain", "--json", "--client", file); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, `"course":{"snapshot":"`) || strings.Contains(out, `"certified"`) {
		t.Errorf("of one that only reads it says\n%s", out)
	}
}
