package replicated

import (
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/smr/mencius"
)

// TestFailover: whichever replica is killed, commits and executions go on, for each client, and
// nothing is lost.
func TestFailover(t *testing.T) {
	for _, p := range catalog.Protocols() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(6) {
				v, ack := Victim(seed%2), acks()[seed/2%2]
				if p.Leaderless {
					v = Other
				}
				s := setting(t, p, "na3")
				s.Seed, s.Ack = seed+1, ack
				g, err := Failover(s, v)
				t.Log(g)
				if err != nil {
					t.Fatal(err)
				}
				if g.One > time.Second || g.All > g.One || g.Lost > 0 || g.Acknowledged < 500 ||
					(g.Role == "leader") != (v == Leader) {
					t.Errorf("seed %d, %v: %v", s.Seed, ack, g)
				}
			}
		})
	}
}

func TestFailoverWithoutLeader(t *testing.T) {
	_, err := Failover(setting(t, mencius.Protocol(), "na3"), Leader)
	if err == nil || !strings.Contains(err.Error(), "there is no such replica to be killed") {
		t.Errorf("the error is %v, want one that says that nobody leads", err)
	}
}
