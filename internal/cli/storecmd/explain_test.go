package storecmd

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/storeservice"
)

const msec = time.Millisecond

// nearSites are those of a client at oregon.
func nearSites() []storeservice.Distance {
	return []storeservice.Distance{{Site: "oregon", RoundTrip: msec}, {Site: "seoul", RoundTrip: 122 * msec},
		{Site: "ireland", RoundTrip: 140 * msec}}
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
	}
	if !right {
		t.Reads = append(t.Reads, client.ReadTrace{Key: "c", Asked: 122 * msec, First: 123 * msec, FirstSite: "oregon",
			Known: 244 * msec, KnownSite: "seoul", Right: true})
		t.Commit, t.Ended = 244*msec, 366*msec
	}
	return t
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
	aborted := &client.Trace{Attempt: 1, Commit: 0, Ended: 122 * msec, Site: "seoul",
		Outcome: store.Outcome{Verdict: store.Aborted, Reason: store.Locked}}
	again := &client.Trace{Attempt: 2, Began: 150 * msec, Commit: 150 * msec, Ended: 272 * msec, Site: "seoul",
		Outcome: store.Outcome{Verdict: store.Committed}}
	nearest := &client.Trace{
		Attempt: 1, Mode: client.Predicated, Reads: []client.ReadTrace{{Key: "a", Asked: 0, First: msec, FirstSite: "oregon",
			Known: -1}},
		Commit: msec, Ended: 123 * msec, Site: "seoul", Outcome: store.Outcome{Verdict: store.Committed},
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
		}, "2.01"},
		{"guessed wrongly", []*client.Trace{chain(false)}, []string{
			`get "a", quorum@seoul 0-122!; get "c", quorum@seoul 122-244!; commit@seoul 244-366!`,
		}, "3.00"},
		{"refused once", []*client.Trace{aborted, again}, []string{`commit@seoul 0-122!`, `commit@seoul 150-272!`}, "2.23"},
		{"nearest only", []*client.Trace{nearest}, []string{`get "a", first answer@oregon 0-1; commit@seoul 1-123!`}, "1.01"},
		{"nobody answers", []*client.Trace{nobody}, []string{""}, "8.20"},
	} {
		x := explain(tc.traces, nearSites(), 3, client.Strict)
		for i, a := range x.Attempts {
			if got := pathOf(a); got != tc.paths[i] {
				t.Errorf("%s: attempt %d waited for\n%s\nwant\n%s", tc.name, i+1, got, tc.paths[i])
			}
		}
		if got := fmt.Sprintf("%.2f", x.Ratio); got != tc.ratio || x.FloorMS != 122 || x.FloorSite != "seoul" {
			t.Errorf("%s: %s times the floor of %v ms to %s", tc.name, got, x.FloorMS, x.FloorSite)
		}
	}
	if x := explain([]*client.Trace{nobody}, nearSites()[:1], 3, client.Strict); x.FloorMS != 0 || x.Ratio != 0 ||
		x.Attempts[0].Outcome != "failed" {
		t.Errorf("with one site of three: %+v", x)
	}
}

func TestExplanationAsText(t *testing.T) {
	var b strings.Builder
	explain([]*client.Trace{chain(true)}, nearSites(), 3, client.Strict).write(&b)
	want := `attempt 1, read mode spec, strict: committed
          0.0                               245.0 ms
  get a   |█░░░░░░░░░░░░░░░░░░                     |  asked at 0.0, oregon answered at 1.0, rightly, quorum at 122.0 with seoul
  get b   |█░░░░░░░░░░░░░░░░░░░                    |  asked at 1.0, oregon answered at 2.0, rightly, quorum at 123.0 with seoul
  commit  |                    ████████████████████|  asked at 123.0, decided at 245.0 by the word of seoul
  waited for: get "a", first answer 1.0 ms (oregon); get "b", quorum 122.0 ms (seoul, wide-area); commit 122.0 ms (seoul, wide-area)
in all 245.0 ms; wide-area waits, one after the other: 2
that is 2.01 times the floor of 122.0 ms: one round trip to seoul, which completes the nearest majority of 3 sites
round trips from here: oregon 1.0 ms, seoul 122.0 ms, ireland 140.0 ms
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
