package table

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMeans: measures are means, with intervals where they are asked for; what is the same in all
// repeats stays what it is. The interval of 10, 12 and 14 is Student's: 4.303 times 2 over the root
// of 3.
func TestMeans(t *testing.T) {
	row := func(site string, txns int, p50 float64, more ...Cell) Row {
		return append(Row{Is("system", "a"), Is("site", site), Is("alpha", 0.75), Is("percentile", 50), Is("txns", txns),
			Is("p50_ms", p50)}, more...)
	}
	got, err := Means([][]Row{
		{row("all", 100, 10), row("x", 5, 1, Is("abort_percent", 4.0))},
		{row("all", 110, 12), row("x", 5, 2)},
		{row("all", 120, 14), row("x", 5, 3, Is("abort_percent", 8.0))},
	}, "p50_ms")
	if err != nil {
		t.Fatal(err)
	}
	want := []Row{
		{Is("system", "a"), Is("site", "all"), Is("alpha", 0.75), Is("percentile", 50), Is("txns", 110.0),
			Is("p50_ms", 12.0), Is("p50_ms_ci95", 4.968676), Is("seeds", 3)},
		{Is("system", "a"), Is("site", "x"), Is("alpha", 0.75), Is("percentile", 50), Is("txns", 5), Is("p50_ms", 2.0),
			Is("p50_ms_ci95", 2.484338), Is("abort_percent", 6.0), Is("seeds", 3)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("means (-want +got):\n%s", diff)
	}
	for _, bad := range [][][]Row{nil, {{row("all", 1, 1)}, {}}, {{row("all", 1, 1)}, {row("x", 1, 1)}},
		make([][]Row, MaxRepeats+1)} {
		if _, err := Means(bad); err == nil {
			t.Errorf("no error of %v", bad)
		}
	}
}
