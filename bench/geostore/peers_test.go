package geostore

import (
	"errors"
	"testing"
	"time"

	"github.com/foresay/foresay/bench"
	"github.com/foresay/foresay/bench/replicated"
)

func TestPeersWithoutEtcd(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := peersExperiment().Run(t.Context(), bench.Options{Quick: true, Program: "foresay"})
	if !errors.Is(err, errNoEtcd) {
		t.Errorf("without etcd: %v", err)
	}
}

// TestRivalRow: ratios are the medians of those within a round.
func TestRivalRow(t *testing.T) {
	base := []replicated.Turn{{PerSecond: 100, CPUPerOp: 10}, {PerSecond: 400, CPUPerOp: 20},
		{PerSecond: 200, CPUPerOp: 40}}
	own := []replicated.Turn{
		{PerSecond: 50, CPUPerOp: 30, Took: []time.Duration{3 * time.Millisecond}},
		{PerSecond: 400, CPUPerOp: 20, Took: []time.Duration{time.Millisecond}},
		{PerSecond: 300, CPUPerOp: 80, Took: []time.Duration{2 * time.Millisecond}},
	}
	row := rivalRow("put", "foresay", own, base)
	for name, want := range map[string]float64{
		"ops_per_s": 300, "p50_ms": 2, "p99_ms": 3, "ops_ratio_to_etcd": 1, "server_us_per_op": 30, "server_ratio_to_etcd": 2,
	} {
		if got, ok := row.Number(name); !ok || got != want {
			t.Errorf("%s is %v, want %v", name, row.Value(name), want)
		}
	}
}
