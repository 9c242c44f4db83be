package history

import (
	"fmt"
	"testing"
)

// BenchmarkCheckTransactions checks 100,000 transactions of a store that keeps the level, and of
// one that keeps less.
func BenchmarkCheckTransactions(b *testing.B) {
	for _, bench := range []struct {
		store, level Level
	}{
		{StrictSerializable, ReadCommitted},
		{StrictSerializable, Serializable},
		{StrictSerializable, StrictSerializable},
		{StrongSnapshotIsolation, StrongSnapshotIsolation},
		{StrongSnapshotIsolation, StrictSerializable},
	} {
		for _, lists := range []bool{false, true} {
			name := fmt.Sprintf("store=%v/level=%v/lists=%v", bench.store, bench.level, lists)
			b.Run(name, func(b *testing.B) {
				h := simulate(storeConfig{seed: 1, txns: 100_000, clients: 20, keys: 2000, level: bench.store, lists: lists})
				b.ReportAllocs()
				for b.Loop() {
					report, err := CheckTransactions(h, bench.level)
					if err != nil {
						b.Fatal(err)
					}
					if bench.store == bench.level && report.Verdict() != OK {
						b.Fatal(report)
					}
				}
				b.ReportMetric(float64(len(h.Txns))*float64(b.N)/b.Elapsed().Seconds(), "txns/s")
			})
		}
	}
}
