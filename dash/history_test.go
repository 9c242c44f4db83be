package dash

import (
	"fmt"
	"testing"
	"time"

	"github.com/foresay/foresay/control"
)

// TestHistory checks what becomes of sites that come, go, begin anew, and look alike.
func TestHistory(t *testing.T) {
	at := time.Unix(1000, 0)
	status := func(calls ...int64) control.Status {
		at = at.Add(2 * time.Second)
		st := control.Status{At: at}
		for _, n := range calls {
			st.CallSites = append(st.CallSites, control.CallSiteStatus{Name: "/s/m", Conn: "c",
				Stats: control.CallSiteStats{Calls: n, Right: n,
					WouldBeWrong: 1}})
		}
		return st
	}
	var h history
	h.note(status(10, 20))
	for i, c := range []struct {
		status control.Status
		calls  int64
		sites  int
	}{
		{status(15, 22), 7, 0},
		{status(15), 0, 0},   // one is gone
		{status(4), 4, 0},    // the other began anew
		{status(4, 3), 3, 2}, // one came back; the fifth point has sites
		{status(5, 3), 1, 0}, {status(5, 3), 0, 0}, {status(5, 3), 0, 0}, {status(5, 3), 0, 0}, {status(5, 3), 0, 1},
	} {
		p := h.note(c.status)
		if p.Calls != c.calls || p.Right != c.calls || len(p.CallSites) != c.sites || p.Seconds != 2 {
			t.Errorf("point %d: %+v; want %d calls, %d sites", i+1, p, c.calls, c.sites)
		}
	}
}

// TestBusiest checks that of many sites those have charts that are busiest.
func TestBusiest(t *testing.T) {
	var h history
	st := control.Status{At: time.Unix(1000, 0)}
	for i := range 300 {
		st.CallSites = append(st.CallSites, control.CallSiteStatus{Name: fmt.Sprint("/s/", i),
			Stats: control.CallSiteStats{Right: int64(i)}})
	}
	var last point
	for range callSiteEvery {
		last = h.note(st)
	}
	if len(last.CallSites) != maxCallSitePoints || last.CallSites[0].Name != "/s/299" ||
		last.CallSites[99].Name != "/s/200" {
		t.Errorf("%d sites, first %+v", len(last.CallSites), last.CallSites[0])
	}
}

// BenchmarkSample is what a service with 300 sites spends every two seconds.
func BenchmarkSample(b *testing.B) {
	c, err := control.New(control.Config{})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 300 {
		if _, err := c.NewCallSite(control.CallSiteConfig{Name: fmt.Sprintf("/pkg.Service%d/Method", i)},
			"dns:///backend:443"); err != nil {
			b.Fatal(err)
		}
	}
	s := newSource(Config{Control: c})
	b.ReportAllocs()
	for b.Loop() {
		s.sample()
	}
}
