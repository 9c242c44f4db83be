package storecmd

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/plan"
	"github.com/foresay/foresay/store/storeservice"
	"github.com/foresay/foresay/wan"
)

const msec = time.Millisecond

// nearSites are those of a client at oregon.
func nearSites() []storeservice.Distance {
	return []storeservice.Distance{{Site: "oregon", RoundTrip: msec}, {Site: "seoul", RoundTrip: 122 * msec},
		{Site: "ireland", RoundTrip: 140 * msec}}
}

// seen is a store of three sites that all have its one shard, of a client at oregon.
func seen() sight {
	return sight{near: nearSites(), sites: 3, system: plan.ReplicatedCommit,
		placed: [][]wan.Site{{"oregon", "seoul", "ireland"}}}
}

// chain is a transaction of two reads, of which the second follows from the first, guessed rightly
// or not.
func chain(right bool) *client.Trace {
	t := &client.Trace{
		Attempt: 1, Reads: []client.ReadTrace{
			{Key: "a", Asked: 0, First: msec, FirstSite: "oregon", Known: 122 * msec, KnownSite: "seoul", Right: right},
			{Key: "b", Asked: msec, First: 2 * msec, FirstSite: "oregon", Known: 123 * msec, KnownSite: "seoul", Right: true},
		},
		Commit: 123 * msec, Ended: 245 * msec, Site: "seoul", Outcome: store.Outcome{Verdict: store.Committed},
		Txn: written("a"),
	}
	if !right {
		t.Reads = append(t.Reads, client.ReadTrace{Key: "c", Asked: 122 * msec, First: 123 * msec, FirstSite: "oregon",
			Known: 244 * msec, KnownSite: "seoul", Right: true})
		t.Commit, t.Ended = 244*msec, 366*msec
	}
	return t
}

// written is a transaction that reads and writes keys, as it was submitted.
func written(keys ...store.Key) (t store.Txn) {
	t.ID = store.TxnID{Time: 1, Client: 1}
	for _, k := range keys {
		t.Reads, t.Writes = append(t.Reads, store.Read{Key: k}), append(t.Writes, store.Write{Key: k})
	}
	return t
}

// TestClassAndCommit: the class and the floor are the transaction's own, by the copies of its
// shards and by who leads them; and a commit that is decided near, after long, is a wait for
// others, of as many round trips as the protocol takes.
func TestClassAndCommit(t *testing.T) {
	at := sight{sites: 4, system: plan.Layered, leaders: map[int]wan.Site{0: "oregon", 1: "ireland"},
		placed: [][]wan.Site{{"oregon", "seoul", "ireland"}, {"ireland", "seoul", "tokyo"}},
		near:   append(nearSites(), storeservice.Distance{Site: "tokyo", RoundTrip: 200 * msec})}
	var in [2]store.Key // a key of each shard
	for _, k := range []store.Key{"a", "b", "c", "d", "e"} {
		in[store.ShardOf(k, 2)] = k
	}
	reads := func(keys ...store.Key) store.Txn {
		txn := written(keys...)
		txn.Writes = nil
		return txn
	}
	for _, tc := range []struct {
		name   string
		txn    store.Txn
		system plan.System
		fast   bool
		class  string
		floor  float64
		trips  int
	}{
		{"reads what is led here", reads(in[0]), plan.Layered, false, "ro", 1, 2},
		{"reads elsewhere, too", reads(in[:]...), plan.Layered, false, "ro", 140, 2},
		{"writes what has a copy here", written(in[0]), plan.Layered, false, "lrt", 123, 2},
		{"writes elsewhere, too", written(in[:]...), plan.Layered, false, "rpt", 244, 4},
		{"by the fast path", written(in[:]...), plan.TAPIR, true, "rpt", 244, 1},
		{"by the slow path", written(in[:]...), plan.TAPIR, false, "rpt", 244, 2},
	} {
		at.system = tc.system
		x := explain([]*client.Trace{{Attempt: 1, Commit: msec, Ended: 301 * msec, Site: "oregon", Txn: tc.txn,
			Outcome: store.Outcome{Verdict: store.Committed, Fast: tc.fast}}}, at, client.Strict)
		c := x.Attempts[0].Commit
		if x.Class != tc.class || x.FloorMS != tc.floor || !c.WideArea || c.Trips != tc.trips {
			t.Errorf("%s: %s, floor %v ms, a commit of %d, wide-area %v; want %s, %v, %d", tc.name, x.Class, x.FloorMS, c.Trips,
				c.WideArea, tc.class, tc.floor, tc.trips)
		}
		var b strings.Builder
		x.write(&b)
		if said := strings.Contains(b.String(), fmt.Sprintf("commit, of up to %d round trips, 300.0 ms", tc.trips)); said !=
			(tc.trips > 1) {
			t.Errorf("%s: it says\n%s", tc.name, &b)
		}
	}
}

func pathOf(a attemptExplained) string {
	var out []string
	for _, h := range a.Path {
		text := fmt.Sprintf("%s@%s %.0f-%.0f", h.What, h.Site, h.FromMS, h.ToMS)
		if h.WideArea {
			text += "!"
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

func TestCriticalPath(t *testing.T) {
	aborted := &client.Trace{Attempt: 1, Txn: written("a"),
		Commit: 0, Ended: 122 * msec, Site: "seoul",
		Outcome: store.Outcome{Verdict: store.Aborted, Reason: store.Locked}}
	again := &client.Trace{Attempt: 2, Txn: written("a"),
		Began: 150 * msec, Commit: 150 * msec, Ended: 272 * msec, Site: "seoul",
		Outcome: store.Outcome{Verdict: store.Committed}}
	nearest := &client.Trace{
		Attempt: 1, Mode: client.Predicated, Reads: []client.ReadTrace{{Key: "a", Asked: 0, First: msec, FirstSite: "oregon",
			Known: -1}},
		Commit: msec, Ended: 123 * msec, Site: "seoul", Outcome: store.Outcome{Verdict: store.Committed},
		Txn: written("a"),
	}
	nobody := &client.Trace{Attempt: 1, Reads: []client.ReadTrace{{Key: "a", Asked: 0, First: -1, Known: -1}}, Commit: -1,
		Ended: time.Second, Failed: true}
	for _, tc := range []struct {
		name   string
		traces []*client.Trace
		paths  []string
		ratio  string
	}{
		{"guessed rightly", []*client.Trace{chain(true)}, []string{
			`get "a", first answer@oregon 0-1; get "b", quorum@seoul 1-123!; commit@seoul 123-245!`,
		}, "1.99"},
		{"guessed wrongly", []*client.Trace{chain(false)}, []string{
			`get "a", quorum@seoul 0-122!; get "c", quorum@seoul 122-244!; commit@seoul 244-366!`,
		}, "2.98"},
		{"refused once", []*client.Trace{aborted, again}, []string{`commit@seoul 0-122!`, `commit@seoul 150-272!`}, "2.21"},
		{"nearest only", []*client.Trace{nearest}, []string{`get "a", first answer@oregon 0-1; commit@seoul 1-123!`}, "1.00"},
		{"nobody answers", []*client.Trace{nobody}, []string{""}, "0.00"},
	} {
		x := explain(tc.traces, seen(), client.Strict)
		for i, a := range x.Attempts {
			if got := pathOf(a); got != tc.paths[i] {
				t.Errorf("%s: attempt %d waited for\n%s\nwant\n%s", tc.name, i+1, got, tc.paths[i])
			}
		}
		floor, class := 123.0, "lrt"
		if tc.ratio == "0.00" {
			floor, class = 0, ""
		}
		if got := fmt.Sprintf("%.2f", x.Ratio); got != tc.ratio || x.FloorMS != floor || x.Class != class {
			t.Errorf("%s: %s times the floor of %v ms, %s", tc.name, got, x.FloorMS, x.Class)
		}
	}
	few := seen()
	few.near = few.near[:1]
	if x := explain([]*client.Trace{chain(true)}, few, client.Strict); x.FloorMS != 0 || x.Ratio != 0 || x.Class != "" {
		t.Errorf("with one site of three: %+v", x)
	}
}

func TestExplanationAsText(t *testing.T) {
	var b strings.Builder
	explain([]*client.Trace{chain(true)}, seen(), client.Strict).write(&b)
	want := `attempt 1, read mode spec, strict: committed
          0.0                               245.0 ms
  get a   |█░░░░░░░░░░░░░░░░░░                     |  asked at 0.0, oregon answered at 1.0, rightly, quorum at 122.0 with seoul
  get b   |█░░░░░░░░░░░░░░░░░░░                    |  asked at 1.0, oregon answered at 2.0, rightly, quorum at 123.0 with seoul
  commit  |                    ████████████████████|  asked at 123.0, decided at 245.0 by the word of seoul
  waited for: get "a", first answer 1.0 ms (oregon); get "b", quorum 122.0 ms (seoul, wide-area); commit 122.0 ms (seoul, wide-area)
in all 245.0 ms; wide-area waits, one after the other: 2
that is 1.99 times the floor of 123.0 ms, of its class from here: lrt, it writes, and its site has copies of all that it touches
round trips from here: oregon 1.0 ms, seoul 122.0 ms, ireland 140.0 ms
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
