package replicated

import (
	"testing"
	"time"

	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/multipaxos"
	"github.com/foresay/foresay/smr/raft"
)

func TestThroughput(t *testing.T) {
	for _, p := range []smr.Protocol{multipaxos.Protocol(), raft.Protocol()} {
		for _, durable := range []bool{false, true} {
			l := Load{Protocol: p, Ack: smr.AckDurable, Replicas: 3, Clients: 2, Window: 64, Durable: durable, Dir: t.TempDir(),
				For: 300 * time.Millisecond}
			r, err := Throughput(t.Context(), l)
			if err != nil {
				t.Fatalf("%s, durable %v: %v", p.Name, durable, err)
			}
			t.Logf("%s, durable %v: %.0f calls a second, %d commits of disks", p.Name, durable, r.PerSecond(), r.Commits)
			if r.Calls < 100 || len(r.Took) == 0 || durable != (r.Commits > 0) {
				t.Errorf("%s, durable %v: %d calls, %d samples, %d commits", p.Name, durable, r.Calls, len(r.Took), r.Commits)
			}
		}
	}
}
