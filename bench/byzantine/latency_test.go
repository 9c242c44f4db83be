package byzantine

import "testing"

// TestLatency: what clients wait for is what the model says, also if all of them call at once; only
// reads wait for writes then, whose order Zyzzyva's replicas agree on late.
func TestLatency(t *testing.T) {
	want := map[string]float64{
		"pbft-cs na4 first": 30, "pbft-cs na4 confirmed": 72.5, "pbft-cs na4 read": 43, "zyzzyva na4 confirmed": 68,
		"zyzzyva na4 read":     43,
		"pbft-cs globe4 first": 118, "pbft-cs globe4 confirmed": 280, "pbft-cs globe4 read": 156,
		"zyzzyva globe4 confirmed": 229.5, "zyzzyva globe4 read": 156,
	}
	seen := 0
	for _, r := range quick(t, latencyExperiment()) {
		if r.Text("site") != "all" {
			continue
		}
		name := r.Text("system") + " " + r.Text("topology") + " " + r.Text("until")
		got, most := number(t, r, "p50_ms"), 1.02
		if busy := r.Text("load") != "alone"; busy && r.Text("until") == "read" {
			if most = 1.2; r.Text("system") != cs {
				most = 3
			}
		}
		if got < want[name]/1.02 || got > want[name]*most {
			t.Errorf("%s, %s: %v ms, want %v", name, r.Text("load"), got, want[name])
		}
		seen++
	}
	if seen != 2*len(want) {
		t.Errorf("%d rows", seen)
	}
}
