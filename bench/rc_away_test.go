package bench

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAwayIsCompared: a second is compared with the same second of the run in which nothing is killed, alone and with those before it.
func TestAwayIsCompared(t *testing.T) {
	run := func(rates ...float64) (rows []Row) {
		for _, r := range rates {
			rows = append(rows, Row{{"commits_per_s", r}, {"commits_per_processor_s", 2 * r}})
		}
		return rows
	}
	rows := run(100, 100, 100, 100, 50, 0)
	awayCompare(rows, run(100, 100, 100, 100, 100, 100))
	var got [][]any
	for _, r := range rows {
		got = append(got, []any{r.Value("of_undisturbed"), r.Value("of_undisturbed_window"), r.Value("per_processor_of_undisturbed")})
	}
	want := [][]any{{1.0, 1.0, 1.0}, {1.0, 1.0, 1.0}, {1.0, 1.0, 1.0}, {1.0, 1.0, 1.0}, {0.5, 0.9, 0.5}, {0.0, 0.7, 0.0}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("shares (-want +got):\n%s", diff)
	}
}
