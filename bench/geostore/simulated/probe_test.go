package simulated

import (
	"os"
	"runtime/pprof"
	"strconv"
	"testing"
	"time"

	"github.com/foresay/foresay/store/plan"
	"github.com/foresay/foresay/workload/synthetic"
)

func TestProbe(t *testing.T) {
	users, _ := strconv.Atoi(os.Getenv("USERS"))
	us, _ := strconv.Atoi(os.Getenv("US"))
	if users == 0 {
		t.Skip()
	}
	if f := os.Getenv("PROF"); f != "" {
		w, _ := os.Create(f)
		pprof.StartCPUProfile(w)
		defer pprof.StopCPUProfile()
	}
	srv, _ := strconv.Atoi(os.Getenv("SERVERS"))
	for _, s := range []plan.System{plan.ClockSIRep, plan.STR} {
		if o := os.Getenv("ONLY"); o != "" && o != string(s) {
			continue
		}
		began := time.Now()
		n := nine{system: s, servers: max(srv, 1), users: users, cpu: cpu{"paper", time.Duration(us) * time.Microsecond}, seed: 1}
		u, err := n.settle()
		if err != nil {
			t.Fatal(err)
		}
		settled := time.Since(began)
		u.byKind = map[string]int{}
		c, err := synthetic.Named(os.Getenv("CONT"))
		if err != nil {
			t.Fatal(err)
		}
		u.start(startSpread, func(x *user) func() job { return u.synthetic(x, c) })
		if err := u.pass(2*time.Second, 3*time.Second); err != nil {
			t.Fatal(err)
		}
		t.Log(u.row())
		t.Log(u.reasons())
		t.Log(settled, time.Since(began))
		u.close()
	}
}
