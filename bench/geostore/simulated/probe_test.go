package simulated

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/store/plan"
)

func TestProbe(t *testing.T) {
	us, _ := strconv.ParseFloat(os.Getenv("US"), 64)
	tg, _ := strconv.Atoi(os.Getenv("TG"))
	for _, s := range strings.Split(os.Getenv("SYS"), ",") {
		b := time.Now()
		m, err := target{system: plan.System(s), cpu: cpu{"x", time.Duration(us * 1000)}, perS: tg, warm: 500 * time.Millisecond, lasting: time.Second}.run()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%s %d: %d committed %d aborted %d other; busiest %.2f; p50 %v; %v\n", s, tg, m.committed, m.aborted, m.other, m.busiest, m.took[len(m.took)/2], time.Since(b))
		for r := range roles {
			if m.nodes[r] > 0 {
				fmt.Printf("  role %d: %d nodes; %.1f Mbit/s sent %.1f got; %.0f calls/s\n", r, m.nodes[r], float64(m.sent[r])*8/1e6/float64(m.nodes[r]), float64(m.got[r])*8/1e6/float64(m.nodes[r]), float64(m.calls[r])/float64(m.nodes[r]))
			}
		}
	}
}

func TestProbeFall(t *testing.T) {
	for _, s := range strings.Split(os.Getenv("SYS"), ",") {
		for _, v := range strings.Split(os.Getenv("VIC"), ",") {
			b := time.Now()
			f, err := failover{system: plan.System(s), victim: victim(v), seed: 1, alpha: 0.75, warm: 3 * time.Second, turn: 10 * time.Second, lasting: 5 * time.Second, clients: 6}.run()
			if err != nil {
				t.Error(s, v, err)
				continue
			}
			fmt.Printf("%s %s: up %d took %v aborted %d fast %v %v; gone %d took %v aborted %d %v %v; gaps %v %v; ack %d lost %d unknown %d blocked %d; %v\n", s, v, len(f.up.took), meanOf(f.up.took), f.up.aborted, f.up.hit, f.up.rest, len(f.gone.took), meanOf(f.gone.took), f.gone.aborted, f.gone.hit, f.gone.rest, f.none, f.one, f.acknowledged, f.lost, f.unknown, f.blocked, time.Since(b))
		}
	}
}
