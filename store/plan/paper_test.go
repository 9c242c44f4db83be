package plan_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/foresay/foresay/store/plan"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/workload"
)

// ring is the thesis' setting: five partitions, each led at a site of its own and copied to the two
// sites that follow [Carousel §3.4].
func ring(w workload.Workload) plan.Setting {
	m := wan.Carousel()
	s := plan.Setting{WAN: m, Clients: plan.Everywhere(m), Load: plan.Load{Workload: w, Declared: true, Txns: 8000}}
	sites := m.Sites()
	for i := range sites {
		s.Placement = append(s.Placement, []wan.Site{sites[i], sites[(i+1)%5], sites[(i+2)%5]})
	}
	return s
}

func keys(t testing.TB) workload.Keys {
	t.Helper()
	k, err := workload.Zipfian(10_000_000, 0)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func ycsbt(t testing.TB) workload.Workload { return updates{keys(t)} }

// updates makes transactions that read and write four keys [Carousel §3.4.4].
type updates struct{ workload.Keys }

// of returns a system's row of all clients.
func of(t testing.TB, rows []plan.Row, system plan.System, class plan.Class) plan.Row {
	t.Helper()
	for _, r := range rows {
		if r.System == system && r.Client == "" && r.Class == class {
			return r
		}
	}
	t.Fatalf("no row of %s, %s", system, class)
	return plan.Row{}
}

func TestThesis(t *testing.T) {
	for _, c := range []struct {
		name string
		load workload.Workload
	}{{"retwis", workload.Retwis{Keys: keys(t)}}, {"ycsbt", ycsbt(t)}} {
		rows, err := plan.Latencies(ring(c.load))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if r.Client == "" {
				t.Log(c.name, r.System, r.Class, r.Share, r.Mean/time.Millisecond, r.Median/time.Millisecond, r.P95/time.Millisecond, r.Fast)
			}
		}
	}
}

func (w updates) Next(r *rand.Rand) workload.Txn {
	t := workload.Txn{Name: "ycsbt"}
	for range 4 {
		t.Ops = append(t.Ops, workload.Op{Key: w.Draw(r), Read: true, Write: true})
	}
	return t
}
