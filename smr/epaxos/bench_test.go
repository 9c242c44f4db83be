package epaxos

import (
	"testing"
	"time"

	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/smrtest"
)

// BenchmarkNorthAmerica has the load of Domino's evaluation in virtual time: nine clients with 200
// calls a second each, a Zipf coefficient of 0.75, three or five replicas [Thesis §4.5.2]. It
// reports medians and 95th percentiles in ms, of durable and of executed calls, half of each, with
// links and disks as they are in the tables and with a jitter of up to 2 ms one way, a segment in
// 10,000 lost, and disks that take 1 ms.
func BenchmarkNorthAmerica(b *testing.B) {
	for _, preset := range []string{"na3", "na5"} {
		for _, rough := range []bool{false, true} {
			name, cfg := preset+"/smooth", sim.Config[smr.Message]{}
			if rough {
				name, cfg.Disk = preset+"/rough", sim.Disk{Latency: time.Millisecond}
			}
			b.Run(name, func(b *testing.B) {
				var told, executed []time.Duration
				for b.Loop() {
					d := deploy(b, preset, cfg, nil)
					if rough {
						d.roughen(b, 2*time.Millisecond, 1e-4)
					}
					x, y := load(b, d, 200, 2*time.Second, 0.75, 0.5)
					told, executed = append(told, x...), append(executed, y...)
				}
				ms := func(all []time.Duration, share float64) float64 {
					return smrtest.Percentile(all, share).Seconds() * 1000
				}
				b.ReportMetric(ms(told, 0.5), "durable-p50-ms")
				b.ReportMetric(ms(told, 0.95), "durable-p95-ms")
				b.ReportMetric(ms(executed, 0.5), "executed-p50-ms")
				b.ReportMetric(ms(executed, 0.95), "executed-p95-ms")
			})
		}
	}
}
