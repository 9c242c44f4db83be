package replicatedcommit

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storetest"
)

// change is a new epoch: sites are lost, and fenced or replaced. One that was fenced can be
// replaced later.
type change struct {
	sites []int
	fence bool
}

// replace stops all nodes, and starts those that are not of the lost sites with a layout of the
// next epoch.
func (w *world) replace(c change) error {
	w.Layout.Sites = slices.Clone(w.Layout.Sites)
	w.Epoch++
	for _, id := range w.Nodes() {
		w.Sim.Crash(id, sim.Keep(w.Rand.IntN(3)))
	}
	var pending []func()
	for _, d := range w.Clients {
		if t, ok := d.Stop(submitted); ok {
			pending = append(pending, func() {
				d.Queries = 1
				d.Ref++
				w.Sim.Deliver(d.ID, store.Query{Ref: d.Ref, Txn: t})
			})
		} else {
			pending = append(pending, d.Next)
		}
		w.Sim.Crash(d.ID, sim.KeepNone)
	}
	w.Stopped = true
	if err := w.Sim.Run(roundTrip); err != nil { // what is on its way is lost with its connection
		return err
	}
	w.Stopped = false
	for _, i := range c.sites {
		for _, id := range w.SiteNodes(i) {
			w.Sim.LoseDisk(id)
		}
	}
	if err := w.unapply(); err != nil {
		return err
	}
	for _, i := range c.sites {
		if w.Layout.Sites[i].Fenced = c.fence; c.fence {
			continue
		}
		w.newSites++
		base := protocol.ID(10 * (len(w.Layout.Sites) + w.newSites))
		site := store.Site{Name: fmt.Sprintf("%s%d", w.Layout.Sites[i].Name, w.Epoch), Coordinators: []protocol.ID{base},
			Since: w.Epoch}
		for j := range w.Layout.Sites[i].Shards {
			site.Shards = append(site.Shards, base+1+protocol.ID(j))
		}
		w.MoreCoordinators(&site)
		w.Layout.Sites[i] = site
	}
	w.Sim.Heal()
	for _, i := range c.sites {
		for _, id := range w.SiteNodes(i) {
			if c.fence {
				break
			}
			w.Add(id, w.Places[i])
		}
	}
	if w.replaced != nil {
		w.replaced()
	}
	for _, f := range pending {
		w.Sim.After(time.Duration(w.Rand.IntN(300))*time.Millisecond, f)
	}
	return w.Err
}

// unapply forgets versions that were applied in memory, or on disks that are lost: no disk that is
// left knows that they were committed, and no client.
func (w *world) unapply() error {
	done := map[store.Version]bool{}
	for _, site := range w.Layout.Sites {
		for _, id := range site.Shards {
			if w.Sim.Get(id) != nil {
				return fmt.Errorf("server %d is up", id)
			}
			_, keys, err := w.Sim.Disk(id)
			if err != nil {
				continue // it is lost
			}
			for _, b := range keys.Scan([]byte(txnPrefix), afterPrefix(txnPrefix)) {
				if r, err := parseRecord(b); err == nil && r.state == committed {
					done[r.id] = true
				}
			}
		}
	}
	for _, all := range w.Versions {
		for v := range all {
			if !done[v] && !w.settled[v] {
				delete(all, v)
			}
		}
	}
	return nil
}

// playLoss has clients go on while sites are lost and replaced. What clients were told before is
// settled by then, but for transactions whose clients are told nothing: these are in any state,
// with decisions that stand on votes of a site that is lost, and that any one disk may have.
func (w *world) playLoss(d time.Duration, changes []change) error {
	for _, c := range changes {
		if err := w.Inject(); err != nil {
			return err
		}
		if err := w.Sim.Run(d); err != nil {
			return err
		}
		w.Sim.Heal()
		w.Stopped = true
		idle := func() bool {
			return !slices.ContainsFunc(w.Clients, func(a *storetest.Application) bool { return a.Busy })
		}
		if err := w.Sim.RunUntil(time.Minute, idle); err != nil {
			return err
		}
		if err := w.Sim.Run(time.Duration(w.Rand.IntN(1000))*time.Millisecond + 3*roundTrip); err != nil {
			return err
		}
		w.Stopped = false
		for _, all := range w.Versions {
			for v := range all {
				w.settled[v] = true
			}
		}
		w.silence(c.sites)
		for _, d := range w.Clients {
			d.Next()
		}
		if err := w.Sim.Run(time.Duration(150+w.Rand.IntN(450)) * time.Millisecond); err != nil {
			return err
		}
		if err := w.replace(c); err != nil {
			return err
		}
	}
	return w.Play(d)
}

// silence has coordinators tell clients nothing, nor servers of sites that will be lost, and cuts
// some of the links among sites and from clients.
func (w *world) silence(lost []int) {
	for _, i := range lost {
		for _, s := range w.Layout.Sites[i].Shards {
			for _, d := range w.Clients {
				w.Sim.Cut(s, d.ID)
			}
		}
	}
	for _, site := range w.Layout.Sites {
		for _, c := range site.Coordinators {
			for _, d := range w.Clients {
				w.Sim.Cut(c, d.ID)
				if w.Rand.IntN(4) == 0 {
					w.Sim.Cut(d.ID, c)
				}
			}
			for _, to := range w.Nodes() {
				if !slices.Contains(site.Shards, to) && c != to && w.Rand.IntN(3) == 0 {
					w.Sim.Cut(c, to)
				}
			}
		}
	}
}

// lossSwarm returns the scenario of a seed, and which sites are lost when.
func lossSwarm(seed uint64) (storetest.Scenario, []change) {
	sc := storetest.Scenario{Seed: seed, Clients: 6, Keys: 6, Faults: sim.Swarm(seed, sim.AllFaults),
		Test: "TestLostSitesAreReplaced"}
	r := rand.New(rand.NewPCG(seed, 11))
	if seed%4 == 3 {
		sc.Sites = 5
		lost := r.Perm(5)
		return sc, []change{{sites: lost[:1+seed/4%2]}, {sites: lost[2:3]}}[:1+seed/8%2]
	}
	first, second := []int{r.IntN(3)}, []int{r.IntN(3)}
	if seed%8 == 5 {
		return sc, []change{{first, true}, {first, false}}
	}
	return sc, []change{{sites: first}, {sites: second}}[:1+seed/4%2]
}

func playLossOnce(seed uint64, trace io.Writer) (*world, error) {
	sc, lost := lossSwarm(seed)
	sc.Trace = trace
	w, err := newWorld(sc)
	if err != nil {
		return nil, err
	}
	return w, w.playLoss(2*time.Second, lost)
}

// TestLostSitesAreReplaced plays 120 seeds, or a fifth of them; some of them twice.
func TestLostSitesAreReplaced(t *testing.T) {
	const shards = 4
	first, seeds := seed.First(t, 1), seed.Count(t, 120)
	for shard := range shards {
		t.Run(strconv.Itoa(shard), func(t *testing.T) {
			t.Parallel()
			var verdicts [5]int
			for i := shard; i < seeds; i += shards {
				n := first + uint64(i)
				w, err := playLossOnce(n, nil)
				if err != nil {
					t.Fatalf("seed %d: %v", n, err)
				}
				for i, n := range w.Verdicts {
					verdicts[i] += n
				}
				if i >= 4 {
					continue
				}
				if again, err := playLossOnce(n, nil); err != nil || again.Sim.Hash() != w.Sim.Hash() {
					t.Fatalf("seed %d went otherwise the second time: %v", n, err)
				}
			}
			t.Log("unknown, committed, aborted, blocked, rejected: ", fmt.Sprint(verdicts))
			if verdicts[1] < 60*seeds/shards/4 {
				t.Errorf("only %d transactions committed", verdicts[1])
			}
		})
	}
}

// TestNewcomerCrashesAtEachWrite crashes a newcomer in each of its first writes, with the write
// kept or lost, while clients go on.
func TestNewcomerCrashesAtEachWrite(t *testing.T) {
	for n := uint64(1); n <= 25; n++ {
		for keep := range sim.Keep(3) {
			w, err := newWorld(storetest.Scenario{Seed: 5, Clients: 4, Keys: 4})
			if err != nil {
				t.Fatal(err)
			}
			w.replaced = func() {
				id := w.Layout.Sites[1].Shards[0]
				w.Sim.CrashInWrite(id, n, keep)
				w.Sim.After(time.Second, func() { w.Sim.Restart(id) })
			}
			if err := w.playLoss(2*time.Second, []change{{sites: []int{1}}}); err != nil {
				t.Fatalf("write %d, kept %d: %v", n, keep, err)
			}
		}
	}
}
