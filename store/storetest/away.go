package storetest

import (
	"testing"
	"time"

	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
)

// siteAway takes a site of three away for good, with its clients, and without any other fault: the
// clients of the other sites go on, and write to each shard a fourth of what all wrote to it
// before, at the least.
func siteAway(t *testing.T, subject Subject) {
	const (
		sites  = 3
		site   = 1
		window = 10 * time.Second
		told   = 2 * RoundTrip // in the configuration, as if the network were slower than it is
		notice = 40 * told     // to elect, and to see who is away
	)
	w, err := New(subject, Scenario{Seed: seed.First(t, 1), Shards: sites, Clients: 4 * sites, Keys: 300, CheckEvery: 100,
		Configure: func(c *store.Config) { c.RoundTrip = told }, Test: "TestConformance/away"})
	if err != nil {
		t.Fatal(err)
	}
	run := func(d time.Duration) (writes [sites]int) {
		count := func(sign int) {
			for key, all := range w.Versions {
				writes[w.Layout.ShardOf(key)] += sign * len(all)
			}
		}
		count(-1)
		if err := w.Sim.Run(d); err != nil {
			t.Fatal(err)
		}
		count(1)
		return writes
	}
	run(notice)
	before := run(window)
	for _, id := range w.SiteNodes(site) {
		w.Sim.Crash(id, sim.KeepAll)
	}
	for i := site; i < len(w.Clients); i += sites {
		w.Sim.Crash(w.Clients[i].ID, sim.KeepAll)
	}
	run(notice)
	after := run(window)
	t.Logf("a site is away: within %v clients write %d to shards, %d before", window, after, before)
	for shard := range sites {
		if 4*after[shard] < before[shard] {
			t.Errorf("a site is away: within %v clients write %d to shard %d, %d before", window, after[shard], shard,
				before[shard])
		}
	}
}
