package geostore

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/table"
)

// TestAwayIsCompared: a second is compared with the same second of the run in which nothing is
// killed, alone and with those before it.
func TestAwayIsCompared(t *testing.T) {
	run := func(rates ...float64) (rows []table.Row) {
		for _, r := range rates {
			rows = append(rows, table.Row{table.Is("commits_per_s", r), table.Is("commits_per_processor_s", 2*r)})
		}
		return rows
	}
	rows := run(100, 100, 100, 100, 50, 0)
	awayCompare(rows, run(100, 100, 100, 100, 100, 100))
	var got [][]any
	for _, r := range rows {
		got = append(got, []any{r.Value("of_undisturbed"), r.Value("of_undisturbed_window"),
			r.Value("per_processor_of_undisturbed")})
	}
	want := [][]any{{1.0, 1.0, 1.0}, {1.0, 1.0, 1.0}, {1.0, 1.0, 1.0}, {1.0, 1.0, 1.0}, {0.5, 0.9, 0.5}, {0.0, 0.7, 0.0}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("shares (-want +got):\n%s", diff)
	}
}

// TestAwayWorst: the least second of each phase after the second one, and how many have too little;
// and what it has of the least one where nothing was killed.
func TestAwayWorst(t *testing.T) {
	second := func(phase string, of float64, failed int) table.Row {
		row := table.Row{table.Is("run", "killed"), table.Is("phase", phase), table.Is("errors", failed),
			table.Is("of_up", of)}
		if phase == "back" && of > 0.5 {
			row = append(row, table.Is("per_processor_of_up", 2*of))
		}
		return row
	}
	rows := []table.Row{
		{table.Is("run", "killed"), table.Is("phase", "up"), table.Is("errors", 9)}, second("away", 0.9, 1),
		second("away", 0.7, 2), second("back", 0.69, 0), second("back", 0.31, 0), second("back", 1.5, 0),
		second("back", 1, 0), second("back", 1, 0), second("back", 1.5, 0),
	}
	want := []table.Row{
		{
			table.Is("run", "killed"), table.Is("phase", "away, worst second"), table.Is("errors", 3), table.Is("of_up", 0.7),
			table.Is("seconds_below_0.7", 0), table.Is("of_up_window", 0.8),
		},
		{
			table.Is("run", "killed"), table.Is("phase", "back, worst second"), table.Is("errors", 0), table.Is("of_up", 0.31),
			table.Is("seconds_below_0.7", 2), table.Is("of_up_window", 0.9), table.Is("per_processor_of_up", 2.276),
		},
	}
	if diff := cmp.Diff(want, awayWorst(rows, nil)); diff != "" {
		t.Errorf("worst seconds (-want +got):\n%s", diff)
	}
	var beside []table.Row
	for i, rate := range []float64{100, 50, 100, 100, 100, 40, 100, 100, 100} {
		beside = append(beside, table.Row{table.Is("commits_per_s", rate)})
		of, _ := rows[i].Number("of_up")
		rows[i] = append(rows[i], table.Is("commits_per_s", 100*of))
	}
	want[0] = append(want[0], table.Is("of_worst_undisturbed", 1.4), table.Is("of_worst_undisturbed_window", 1.066667))
	want[1] = append(want[1], table.Is("of_worst_undisturbed", 0.775), table.Is("of_worst_undisturbed_window", 1.022727))
	if diff := cmp.Diff(want, awayWorst(rows, beside)); diff != "" {
		t.Errorf("worst seconds beside a run in which nothing is killed (-want +got):\n%s", diff)
	}
}

// TestAwayUnknown: of a second at whose beginning or end a machine's processor time cannot be read
// it is not known, nor what a commit takes of it.
func TestAwayUnknown(t *testing.T) {
	at := time.Now()
	known := awayUsed{at, time.Second, 10 * time.Second, []time.Duration{time.Second}, nil}
	unknown := awayUsed{at.Add(time.Second), 2 * time.Second, 12 * time.Second, nil, nil}
	later := awayUsed{at.Add(2 * time.Second), 3 * time.Second, 13 * time.Second, []time.Duration{2 * time.Second}, nil}
	for _, tc := range []struct{ now, since awayUsed }{{unknown, known}, {later, unknown}, {unknown, unknown}} {
		if _, is := tc.now.own(tc.since); is {
			t.Errorf("from %v to %v the processor time is known", tc.since.machines, tc.now.machines)
		}
		if diff := cmp.Diff(table.Row{table.Is("processors_clients", 1.0)}, tc.now.cells(tc.since)); diff != "" &&
			!tc.now.at.Equal(tc.since.at) {
			t.Errorf("cells (-want +got):\n%s", diff)
		}
	}
	var up awaySecond
	for _, is := range []bool{true, true, false, true} {
		up.add(awaySecond{lasting: time.Second, commits: 10, used: time.Second, known: is})
	}
	if up.known {
		t.Error("the processor time of four seconds is known, but not that of one of them")
	}
	row := awaySecond{lasting: time.Second, commits: 10, known: true, used: time.Second}.cells(up, true)
	if row.Value("per_processor_of_up") != nil || row.Value("of_up") != 0.25 && row.Value("of_up") != 1.0 {
		t.Errorf("beside that a second is told as %v", row)
	}
	if got := (awaySecond{lasting: time.Second}).cells(up, false).Text("processors"); got != "unknown" {
		t.Errorf("processors: %q", got)
	}
}

// TestAwayPace: clients begin a share of what the store took, at even intervals, also those that
// are late; and as much as goes if that is all.
func TestAwayPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		m := &awayRun{began: began, keys: 1, store: rival{put: func(context.Context, int, string) error {
			time.Sleep(300 * time.Millisecond)
			return nil
		}}}
		m.commits.Store(80)
		time.Sleep(4 * time.Second)
		m.pace(1)
		if m.paced.Load() != nil {
			t.Error("clients are held back that are to do all they can")
		}
		m.pace(0.5) // 10 a second
		for n := range 10 {
			m.put(t.Context(), 0, bench.Random(1))
			if got, want := time.Since(began), 4*time.Second+100*time.Millisecond+
				time.Duration(n+1)*300*time.Millisecond; got != want {
				t.Errorf("commit %d ended after %v, want %v", n, got, want)
			}
		}
		if got, want := time.Duration(m.longest.Load()), 2100*time.Millisecond; got != want {
			t.Errorf("the longest took %v from when it was due, want %v", got, want)
		}
		time.Sleep(10 * time.Second)
		if p := m.paced.Load(); !p.next().Equal(began.Add(5100 * time.Millisecond)) {
			t.Error("a store that stood still is not given what it missed")
		}
	})
}

// TestAwayDisk: what a machine's page says of its disk, by second; nothing of a machine that does
// not answer, had not answered before, or has begun again.
func TestAwayDisk(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "# HELP foresay_store_disk_commit_duration_seconds "+
			"text\nforesay_store_disk_commit_duration_seconds_bucket{le=\"1\"} 7\n",
			"foresay_store_disk_commit_duration_seconds_sum 0.5\nforesay_store_disk_commit_duration_seconds_count "+
				"100\nother_count 3\n")
	}))
	defer page.Close()
	if got, want := readAwayDisk(t.Context(), page.URL), (awayDisk{true, 100, 0.5}); got != want {
		t.Errorf("the page says %v, want %v", got, want)
	}
	page.Close()
	if got := readAwayDisk(t.Context(), page.URL); got != (awayDisk{}) {
		t.Errorf("a page that is not there says %v", got)
	}
	at := time.Now()
	before := awayUsed{at, time.Second, 10 * time.Second, []time.Duration{time.Second, 2 * time.Second},
		[]awayDisk{{true, 100, 0.5}, {true, 100, 0.5}, {}}}
	now := awayUsed{
		at.Add(2 * time.Second), 2 * time.Second, 13 * time.Second, []time.Duration{3 * time.Second / 2, 2 * time.Second},
		[]awayDisk{{true, 300, 0.9}, {true, 1, 0.1}, {true, 70000, 30}},
	}
	want := table.Row{table.Is("processors_elsewhere", 0.75), table.Is("processors_clients", 0.5),
		table.Is("processors_1", 0.25), table.Is("processors_2", 0.0), table.Is("disk_commits_1", 100.0),
		table.Is("disk_ms_1", 2.0)}
	if diff := cmp.Diff(want, now.cells(before)); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
}
