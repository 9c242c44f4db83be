package replicated

import (
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/multipaxos"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/wan"
)

// TestOnlyCallsAfterTheWarmUpCount: what is measured was called within the time that is measured,
// and all that was called then is there.
func TestOnlyCallsAfterTheWarmUpCount(t *testing.T) {
	const lasting = 2 * time.Second
	s := setting(t, multipaxos.Protocol(), "na3")
	sites, err := Latency(s, lasting)
	if err != nil {
		t.Fatal(err)
	}
	for _, site := range sites {
		for _, c := range site.Calls {
			if c.Began < 0 || c.Began >= lasting {
				t.Errorf("%s: a call from %v on counts", site.Site, c.Began)
			}
		}
		if n := len(site.Calls); n < 30 || n > 50 || site.Answered < n {
			t.Errorf("%s: %d calls in %v, one in %v on average; %d were answered", site.Site, n, lasting, s.Every, site.Answered)
		}
	}
}

// TestUnansweredCallsAreAnError: percentiles are of all calls, or there are none.
func TestUnansweredCallsAreAnError(t *testing.T) {
	s := setting(t, multipaxos.Protocol(), "na3")
	var paths []wan.Path
	for _, replica := range s.WAN.Replicas {
		paths = append(paths, wan.Path{From: "TX", To: replica})
	}
	s.Changes = wan.Schedule{{From: time.Second, Paths: paths, Down: true}}
	if _, err := Latency(s, 2*time.Second); err == nil || !strings.Contains(err.Error(), "client at TX: ") {
		t.Errorf("error %v, want one about the client in TX", err)
	}
}

// deaf is a state machine that ignores what it is told after some commands.
type deaf struct {
	smr.StateMachine
	left int
}

func (d *deaf) Apply(command []byte) []byte {
	if d.left--; d.left < 0 {
		return command
	}
	return d.StateMachine.Apply(command)
}

// TestLostWritesAreAnError: what was acknowledged and is not in the state of a replica is noticed.
func TestLostWritesAreAnError(t *testing.T) {
	p := multipaxos.Protocol()
	build := p.NewReplica
	p.NewReplica = func(c smr.ReplicaConfig) (protocol.Node[smr.Message], error) {
		if c.ID == 2 {
			c.Machine = &deaf{c.Machine, 100}
		}
		return build(c)
	}
	g, err := Failover(setting(t, p, "na3"), Leader)
	if err == nil || !strings.Contains(err.Error(), "acknowledged writes are not in the state of all replicas") ||
		g.Lost == 0 {
		t.Errorf("%v, error %v, want one about writes", g, err)
	}
}

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
