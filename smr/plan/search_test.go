package plan_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/foresay/foresay/smr/plan"
	"github.com/foresay/foresay/wan"
)

// TestBestPlacements has the best placements of the thesis' networks, by the floor. From Wyoming a
// message is at IL sooner by way of IA, so the median in North America is 22 ms, not 23.
func TestBestPlacements(t *testing.T) {
	for network, want := range map[string]struct {
		sites  []wan.Site
		median float64
	}{
		"na3":    {[]wan.Site{"TX", "IA", "IL"}, 22},
		"globe3": {[]wan.Site{"VA", "WA", "PR"}, 121.5},
	} {
		q := plan.Search{Setting: preset(t, network), Replicas: 3, Goal: plan.Goal{System: plan.Floor, Until: plan.Durable,
			Share: 0.5}}
		got, err := q.Best(nil)
		if err != nil || got.Latency != ms(want.median) || !slices.Equal(got.Replicas, want.sites) {
			t.Errorf("%s: %+v, %v, want %+v", network, got, err, want)
		}
	}
}

// TestBestIsBest compares with each placement and leader tried one by one.
func TestBestIsBest(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 40 {
		s := random(r)
		s.Leader = ""
		among := s.WAN.Sites()
		g := plan.Goal{System: plan.Systems()[r.IntN(7)], Until: []plan.Moment{plan.Durable, plan.Executed}[r.IntN(2)],
			Share: []float64{0.5, 0.95, 1}[r.IntN(3)]}
		n := 1 + r.IntN(min(len(among), 4))
		got, err := plan.Search{Setting: s, Replicas: n, Goal: g}.Best(nil)
		if err != nil {
			t.Fatal(err)
		}
		value := func(sites []wan.Site) int64 {
			s.Replicas = sites
			return int64(plan.Quantile(plan.Of(latencies(t, s, g.System), g.System, g.Until), g.Share))
		}
		if value(got.Replicas) != int64(got.Latency) {
			t.Fatalf("%+v: %v is said to give %v, and gives %v", g, got.Replicas, got.Latency, value(got.Replicas))
		}
		var all func(sites []wan.Site)
		all = func(sites []wan.Site) {
			if len(sites) == n {
				if v := value(sites); v < int64(got.Latency) {
					t.Fatalf("%+v: %v gives %v, better than %v with %v", g, sites, v, got.Replicas, got.Latency)
				}
				return
			}
			for _, site := range among {
				if !slices.Contains(sites, site) {
					all(append(slices.Clone(sites), site))
				}
			}
		}
		all(nil)
	}
}

// TestBestLeader: of the thesis' three replicas VA leads best, which halves the median of the
// leader in WA.
func TestBestLeader(t *testing.T) {
	s := preset(t, "na3")
	g := plan.Goal{System: plan.Paxos, Until: plan.Durable, Share: 0.5}
	got, err := plan.BestLeader(s, g)
	if err != nil || got.Replicas[0] != "VA" && got.Replicas[0] != "QC" || got.Latency >= ms(109) {
		t.Errorf("%+v, %v", got, err)
	}
	s.Leader = "WA"
	if got, err := plan.BestLeader(s, g); err != nil || got.Replicas[0] != "WA" || got.Latency != ms(109) {
		t.Errorf("with a leader: %+v, %v", got, err)
	}
}

// TestSearchErrors: what is wrong is named, and a search that would take for ever is refused.
func TestSearchErrors(t *testing.T) {
	var many []wan.Site
	for i := range 100 {
		many = append(many, wan.Site("s"+strings.Repeat("x", i)))
	}
	large := wan.Uniform(ms(1), many...)
	for _, c := range []struct {
		change func(*plan.Search)
		want   string
	}{
		{func(q *plan.Search) { q.Replicas = 0 }, "0 replicas"},
		{func(q *plan.Search) { q.Replicas = 10 }, "10 replicas cannot be placed at 9 sites"},
		{func(q *plan.Search) { q.Among = []wan.Site{"WA", "VA", "WA"} }, `"WA" twice`},
		{func(q *plan.Search) { q.Among = []wan.Site{"WA", "VA", "XX"} }, `"XX" is not in the network`},
		{func(q *plan.Search) { q.Leader, q.Among = "TX", []wan.Site{"WA", "VA", "QC"} }, `"TX" is not among`},
		{func(q *plan.Search) { q.Goal.System = "x" }, `unknown system "x"`},
		{func(q *plan.Search) { q.Goal.Until = plan.Read }, "Goal.Until is read, of which domino"},
		{func(q *plan.Search) { q.Goal.Share = 2 }, "Goal.Share is 2"},
		{func(q *plan.Search) { q.Limit = 83 }, "84 ways to place 3 replicas at 9 sites, more than 83"},
		{func(q *plan.Search) {
			q.WAN, q.Clients, q.Replicas = large, plan.Everywhere(large), 50
		}, "ways to place 50 replicas at 100 sites"},
	} {
		q := plan.Search{Setting: preset(t, "na3"), Replicas: 3, Goal: plan.Goal{System: plan.Domino, Until: plan.Durable,
			Share: 0.5}}
		c.change(&q)
		if _, err := q.Best(nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one about %s", err, c.want)
		}
	}
}

// TestProgress: a search of some thousand placements tells how far it is, and can be ended.
func TestProgress(t *testing.T) {
	s := preset(t, "ec2")
	var sites []wan.Site
	for i := range 24 {
		sites = append(sites, wan.Site("s"+strings.Repeat("x", i)))
	}
	s.WAN = wan.Uniform(ms(10), sites...)
	s.Clients = plan.Everywhere(s.WAN)[:1]
	last := 0
	q := plan.Search{Setting: s, Replicas: 3, Goal: plan.Goal{System: plan.EPaxos, Until: plan.Durable, Share: 0.5}}
	if _, err := q.Best(func(done, of int) error {
		if done <= last || of != 2024 {
			t.Errorf("%d of %d after %d", done, of, last)
		}
		last = done
		return nil
	}); err != nil || last != 1024 {
		t.Errorf("%d at last, error %v", last, err)
	}
	enough := errors.New("enough")
	if _, err := q.Best(func(int, int) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("a search that was told to end ends with %v", err)
	}
}
