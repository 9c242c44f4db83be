package bench

import (
	"errors"
	"testing"
	"time"
)

func TestPeersWithoutEtcd(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := rcPeers().Run(t.Context(), Options{Quick: true, Program: "foresay"}); !errors.Is(err, errNoEtcd) {
		t.Errorf("without etcd: %v", err)
	}
}

// TestRivalRow: ratios are the medians of those within a round.
func TestRivalRow(t *testing.T) {
	base := []rivalRound{{perSecond: 100, cpuPerOp: 10}, {perSecond: 400, cpuPerOp: 20}, {perSecond: 200, cpuPerOp: 40}}
	own := []rivalRound{
		{perSecond: 50, cpuPerOp: 30, took: []time.Duration{3 * time.Millisecond}}, {perSecond: 400, cpuPerOp: 20, took: []time.Duration{time.Millisecond}},
		{perSecond: 300, cpuPerOp: 80, took: []time.Duration{2 * time.Millisecond}},
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
