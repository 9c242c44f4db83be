package simulated

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/internal/heap"
	"github.com/foresay/foresay/internal/storesim"
	"github.com/foresay/foresay/store/plan"
)

// slow makes a leader of carousel-basic able to do about 600 transactions a second.
const slow = 300 * time.Microsecond

func runTarget(t *testing.T, s plan.System, call time.Duration, perS int) *measured {
	t.Helper()
	m, err := target{system: s, cpu: cpu{"test", call}, perS: perS, seed: 1, warm: 300 * time.Millisecond,
		lasting: 400 * time.Millisecond}.run()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestThroughputLevelsOff: servers that are asked for more than they can do are always at work, and
// commits fall behind the target, those of mode fast further, which has more to say.
func TestThroughputLevelsOff(t *testing.T) {
	perS := func(m *measured) float64 { return float64(m.committed) / m.lasting.Seconds() }
	idle := runTarget(t, plan.CarouselBasic, slow, 200)
	if got := perS(idle); got < 170 || got > 230 || idle.busiest > 0.6 {
		t.Errorf("asked for 200 it commits %v, and a server is at work for %v of the time", got, idle.busiest)
	}
	basic, fast := runTarget(t, plan.CarouselBasic, slow, 1200), runTarget(t, plan.CarouselFast, slow, 1200)
	for _, m := range []*measured{basic, fast} {
		if got := perS(m); got > 800 || m.busiest < 0.95 {
			t.Errorf("asked for 1200 %s commits %v, and a server is at work for %v of the time", m.system, got, m.busiest)
		}
	}
	if perS(fast) >= perS(basic) {
		t.Errorf("fast commits %v a second, basic %v", perS(fast), perS(basic))
	}
}

// TestTrafficIsBalanced: what some send others get, and the rows tell it all, of leaders the most.
func TestTrafficIsBalanced(t *testing.T) {
	for _, s := range throughputSystems() {
		m := runTarget(t, s, 0, 500)
		sent, got := 0, 0
		for r := range roles {
			sent, got = sent+m.sent[r], got+m.got[r]
			if r > clientRole && (m.sent[r] > 0) != (m.nodes[r] > 0) {
				t.Errorf("%s: %d nodes of role %d send %d bytes", s, m.nodes[r], r, m.sent[r])
			}
		}
		if sent != got || sent == 0 {
			t.Errorf("%s: %d bytes are sent, %d received", s, sent, got)
		}
		if p, _ := storesim.ProtocolOf(s); p.Leads && m.sent[leaderRole]/m.nodes[leaderRole] <=
			m.sent[followerRole]/m.nodes[followerRole] {
			t.Errorf("%s: leaders send no more than followers", s)
		}
	}
}

// TestThroughputRepeats: the same seed gives the same rows.
func TestThroughputRepeats(t *testing.T) {
	one, two := runTarget(t, plan.TAPIR, slow, 300), runTarget(t, plan.TAPIR, slow, 300)
	if diff := cmp.Diff(one.rows(), two.rows()); diff != "" {
		t.Errorf("rows (-one +two):\n%s", diff)
	}
}

func TestMain(m *testing.M) { os.Exit(heap.RunTests(m)) }
