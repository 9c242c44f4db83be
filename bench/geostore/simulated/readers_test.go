package simulated

import (
	"testing"
	"time"

	"github.com/foresay/foresay/bench"
)

// TestFewerReaders: commits wait for fewer copies, and the median one ends sooner.
func TestFewerReaders(t *testing.T) {
	median := func(readers int) float64 {
		l := syntheticLoad(bench.Options{Quick: true}, "low-low")
		l.lasting = 500 * time.Millisecond
		rows, err := nine{system: strInternal(), servers: 1, users: 5, readers: readers, cpu: paperCPU(), seed: 1}.measure(l)
		if err != nil {
			t.Fatal(err)
		}
		ms, ok := rows[0].Number("final_p50_ms")
		if !ok {
			t.Fatalf("there is no median in %v", rows[0])
		}
		return ms
	}
	if few, all := median(4), median(paperCopies); few > 0.9*all {
		t.Errorf("with four copies that serve reads the median is %.0f ms, with all %.0f ms", few, all)
	}
}
