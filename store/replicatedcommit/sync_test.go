package replicatedcommit

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
)

// stop ends what a driver waits for, as its node is about to stop, and returns the transaction
// whose outcome it has to ask for.
func (d *driver) stop() (t store.Txn, pending bool) {
	d.ref++ // nothing that comes is an answer
	if !d.busy {
		return t, false
	}
	if c, ok := d.world.sim.Get(d.id).(*Client); ok {
		for _, s := range c.submits { // one at most
			if d.queries == 0 {
				d.note(s.txn)
			}
			return s.txn, true
		}
	}
	if d.at < len(d.ops) { // it was still reading
		d.log.Abort(d.world.sim.Now())
	}
	d.busy = false
	return t, false
}

// change is a new epoch: sites are lost, and fenced or replaced. One that was fenced can be
// replaced later.
type change struct {
	sites []int
	fence bool
}

// replace stops all nodes, and starts those that are not of the lost sites with a layout of the
// next epoch.
func (w *world) replace(c change) error {
	w.layout.Sites = slices.Clone(w.layout.Sites)
	w.epoch++
	for _, id := range w.nodes() {
		w.sim.Crash(id, sim.Keep(w.rand.IntN(3)))
	}
	var pending []func()
	for _, d := range w.clients {
		if t, ok := d.stop(); ok {
			pending = append(pending, func() {
				d.queries = 1
				d.ref++
				w.sim.Deliver(d.id, store.Query{Ref: d.ref, Txn: t})
			})
		} else {
			pending = append(pending, d.next)
		}
		w.sim.Crash(d.id, sim.KeepNone)
	}
	w.stopped = true
	if err := w.sim.Run(roundTrip); err != nil { // what is on its way is lost with its connection
		return err
	}
	w.stopped = false
	for _, i := range c.sites {
		for _, id := range w.siteNodes(i) {
			w.sim.LoseDisk(id)
		}
	}
	if err := w.unapply(); err != nil {
		return err
	}
	for _, i := range c.sites {
		if w.layout.Sites[i].Fenced = c.fence; c.fence {
			continue
		}
		w.newSites++
		base := protocol.ID(10 * (len(w.layout.Sites) + w.newSites))
		site := store.Site{Name: fmt.Sprintf("%s%d", w.layout.Sites[i].Name, w.epoch), Coordinators: []protocol.ID{base}, Since: w.epoch}
		for j := range w.layout.Sites[i].Shards {
			site.Shards = append(site.Shards, base+1+protocol.ID(j))
		}
		w.moreCoordinators(&site)
		w.layout.Sites[i] = site
	}
	w.sim.Heal()
	for _, i := range c.sites {
		for _, id := range w.siteNodes(i) {
			if c.fence {
				break
			}
			w.add(id, w.places[i])
		}
	}
	if w.replaced != nil {
		w.replaced()
	}
	for _, f := range pending {
		w.sim.After(time.Duration(w.rand.IntN(300))*time.Millisecond, f)
	}
	return w.err
}

// unapply forgets versions that were applied in memory, or on disks that are lost: no disk that is
// left knows that they were committed, and no client.
func (w *world) unapply() error {
	committed := map[store.Version]bool{}
	for _, site := range w.layout.Sites {
		for _, id := range site.Shards {
			if w.sim.Get(id) != nil {
				return fmt.Errorf("server %d is up", id)
			}
			_, keys, err := w.sim.Disk(id)
			if err != nil {
				continue // it is lost
			}
			for _, b := range keys.Scan([]byte(txnPrefix), afterPrefix(txnPrefix)) {
				if r, err := parseRecord(b); err == nil && r.state == Committed {
					committed[r.id] = true
				}
			}
		}
	}
	for _, all := range w.versions {
		for v := range all {
			if !committed[v] && !w.settled[v] {
				delete(all, v)
			}
		}
	}
	return nil
}

// inject has faults strike servers and coordinators.
func (w *world) inject() error {
	if w.sc.faults == 0 {
		return nil
	}
	return w.sim.Inject(sim.Profile{Faults: w.sc.faults, Nodes: w.nodes(), MaxDown: 3, Every: 300 * time.Millisecond, Lasting: 600 * time.Millisecond})
}

// playLoss has clients go on while sites are lost and replaced. What clients were told before is
// settled by then, but for transactions whose clients are told nothing: these are in any state,
// with decisions that stand on votes of a site that is lost, and that any one disk may have.
func (w *world) playLoss(d time.Duration, changes []change) error {
	for _, c := range changes {
		if err := w.inject(); err != nil {
			return err
		}
		if err := w.sim.Run(d); err != nil {
			return err
		}
		w.sim.Heal()
		w.stopped = true
		idle := func() bool {
			return !slices.ContainsFunc(w.clients, func(d *driver) bool { return d.busy })
		}
		if err := w.sim.RunUntil(time.Minute, idle); err != nil {
			return err
		}
		if err := w.sim.Run(time.Duration(w.rand.IntN(1000))*time.Millisecond + 3*roundTrip); err != nil {
			return err
		}
		w.stopped = false
		for _, all := range w.versions {
			for v := range all {
				w.settled[v] = true
			}
		}
		w.silence(c.sites)
		for _, d := range w.clients {
			d.next()
		}
		if err := w.sim.Run(time.Duration(150+w.rand.IntN(450)) * time.Millisecond); err != nil {
			return err
		}
		if err := w.replace(c); err != nil {
			return err
		}
	}
	return w.play(d)
}

// silence has coordinators tell clients nothing, nor servers of sites that will be lost, and cuts
// some of the links among sites and from clients.
func (w *world) silence(lost []int) {
	for _, i := range lost {
		for _, s := range w.layout.Sites[i].Shards {
			for _, d := range w.clients {
				w.sim.Cut(s, d.id)
			}
		}
	}
	for _, site := range w.layout.Sites {
		for _, c := range site.Coordinators {
			for _, d := range w.clients {
				w.sim.Cut(c, d.id)
				if w.rand.IntN(4) == 0 {
					w.sim.Cut(d.id, c)
				}
			}
			for _, to := range w.nodes() {
				if !slices.Contains(site.Shards, to) && c != to && w.rand.IntN(3) == 0 {
					w.sim.Cut(c, to)
				}
			}
		}
	}
}

// lossSwarm returns the scenario of a seed, and which sites are lost when.
func lossSwarm(seed uint64) (scenario, []change) {
	sc := scenario{seed: seed, clients: 6, keys: 6, faults: sim.Swarm(seed, sim.AllFaults), test: "TestLostSitesAreReplaced"}
	r := rand.New(rand.NewPCG(seed, 11))
	if seed%4 == 3 {
		sc.sites = 5
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
	sc.trace = trace
	w, err := newWorld(sc)
	if err != nil {
		return nil, err
	}
	return w, w.playLoss(2*time.Second, lost)
}

// TestLostSitesAreReplaced plays 120 seeds; some of them twice.
func TestLostSitesAreReplaced(t *testing.T) {
	const seeds, shards = 120, 4
	first := firstSeed(t)
	for shard := range shards {
		t.Run(strconv.Itoa(shard), func(t *testing.T) {
			t.Parallel()
			var verdicts [5]int
			for i := shard; i < seeds; i += shards {
				seed := first + uint64(i)
				w, err := playLossOnce(seed, nil)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				for i, n := range w.verdicts {
					verdicts[i] += n
				}
				if i >= 8 {
					continue
				}
				if again, err := playLossOnce(seed, nil); err != nil || again.sim.Hash() != w.sim.Hash() {
					t.Fatalf("seed %d went otherwise the second time: %v", seed, err)
				}
			}
			t.Log("unknown, committed, aborted, blocked, rejected: ", fmt.Sprint(verdicts))
			if verdicts[1] < 500 {
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
			w, err := newWorld(scenario{seed: 5, clients: 4, keys: 4})
			if err != nil {
				t.Fatal(err)
			}
			w.replaced = func() {
				id := w.layout.Sites[1].Shards[0]
				w.sim.CrashInWrite(id, n, keep)
				w.sim.After(time.Second, func() { w.sim.Restart(id) })
			}
			if err := w.playLoss(2*time.Second, []change{{sites: []int{1}}}); err != nil {
				t.Fatalf("write %d, kept %d: %v", n, keep, err)
			}
		}
	}
}
