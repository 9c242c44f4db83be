package replicatedcommit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storetest"
)

// replaceOnline replaces a site that is there, while clients go on: it retires, and when all that
// it voted for is settled the other sites and the clients go on in the next epoch, one after the
// other, in any order. Nodes of different epochs do not hear each other meanwhile. Nothing that
// clients were told may be lost.
func (w *world) replaceOnline(leaving int, away []protocol.ID) error {
	for _, id := range w.Layout.Sites[leaving].Shards {
		w.Sim.Deliver(id, store.Retire{})
	}
	settled := func() bool {
		return !slices.ContainsFunc(w.Layout.Sites[leaving].Shards, func(id protocol.ID) bool {
			s := w.Sim.Get(id).(*server)
			return !s.retirement.retired || s.unsettled() > 0 && !w.hasty
		})
	}
	if w.Sim.RunUntil(10*time.Second, settled) != nil {
		for _, id := range away { // what waits for a site that is away, as it may
			w.Sim.Restart(id)
		}
	}
	if err := w.Sim.RunUntil(time.Minute, settled); err != nil {
		return fmt.Errorf("site %d leaves: %w", leaving, err)
	}
	for _, id := range w.SiteNodes(leaving) {
		w.Sim.Crash(id, sim.KeepNone)
		w.Sim.LoseDisk(id)
	}
	w.Epoch++
	w.newSites++
	base := protocol.ID(10 * (len(w.Layout.Sites) + w.newSites))
	site := store.Site{Name: fmt.Sprint("new", w.Epoch), Coordinators: []protocol.ID{base}, Since: w.Epoch}
	for j := range w.Layout.Sites[leaving].Shards {
		site.Shards = append(site.Shards, base+1+protocol.ID(j))
	}
	w.Layout.Sites = slices.Clone(w.Layout.Sites)
	w.Layout.Sites[leaving] = site

	var groups [][]protocol.ID
	for i := range w.Layout.Sites {
		// else it is away, and hears of the epoch when it is back
		if i != leaving && w.Sim.Get(w.Layout.Sites[i].Shards[0]) != nil {
			groups = append(groups, w.SiteNodes(i))
		}
	}
	for _, d := range w.Clients {
		groups = append(groups, []protocol.ID{d.ID})
	}
	w.Rand.Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
	moved := w.SiteNodes(leaving)
	for _, id := range moved {
		w.Add(id, w.Places[leaving])
	}
	w.apart(nil, moved, slices.Concat(groups...))
	for n, ids := range groups {
		if err := w.move(ids, func() { w.apart(moved, ids, slices.Concat(groups[n+1:]...)) }); err != nil {
			return err
		}
		moved = append(moved, ids...)
	}
	return cmp.Or(w.Sim.Run(300*time.Millisecond), w.Err) // until all clients go on
}

// mute has the other sites hear nothing of a site for a while, and clients hear only votes: what
// rests on its votes is known to clients, and nowhere else.
func (w *world) mute(site int) error {
	var mend []func()
	cut := func(from, to protocol.ID) {
		w.Sim.Cut(from, to)
		mend = append(mend, func() { w.Sim.Mend(from, to) })
	}
	for i := range w.Layout.Sites {
		for _, to := range w.SiteNodes(i) {
			for _, from := range w.SiteNodes(site) {
				if i != site {
					cut(from, to)
				}
			}
		}
	}
	w.Sim.After(3*time.Second, func() {
		for _, f := range mend {
			f()
		}
	})
	return w.Sim.Run(time.Duration(200+w.Rand.IntN(600)) * time.Millisecond)
}

// apart has nodes of different epochs not hear each other, and mends the links to those that have
// moved.
func (w *world) apart(moved, ids, others []protocol.ID) {
	for _, id := range ids {
		for _, other := range moved {
			w.Sim.Mend(id, other)
			w.Sim.Mend(other, id)
		}
		for _, other := range others {
			w.Sim.Cut(id, other)
			w.Sim.Cut(other, id)
		}
	}
}

// move has a site's nodes, or a client, go on in the next epoch.
func (w *world) move(ids []protocol.ID, started func()) error {
	var then []func()
	for _, id := range ids {
		for _, d := range w.Clients {
			if d.ID != id {
				continue
			}
			if t, ok := d.Stop(submitted); ok {
				then = append(then, func() {
					d.Queries = 1
					d.Ref++
					w.Sim.Deliver(d.ID, store.Query{Ref: d.Ref, Txn: t})
				})
			} else {
				d.Busy = true // until it is back
				then = append(then, func() {
					d.Busy = false
					d.Next()
				})
			}
		}
		w.Sim.Crash(id, sim.Keep(w.Rand.IntN(3)))
	}
	if err := w.Sim.Run(roundTrip); err != nil { // what is on its way is lost with its connection
		return err
	}
	started()
	for _, id := range ids {
		w.Sim.Restart(id)
	}
	for _, f := range then {
		w.Sim.After(time.Duration(1+w.Rand.IntN(300))*time.Millisecond, f)
	}
	return w.Sim.Run(time.Duration(w.Rand.IntN(400)) * time.Millisecond)
}

// playOnline replaces one site after another, with another one away in some runs.
func playOnline(seed uint64, hasty bool) (*world, error) {
	sc := storetest.Scenario{Seed: seed, Clients: 6, Keys: 4, Test: "TestSiteIsReplacedOnline"}
	if seed%3 == 2 {
		sc.Sites = 5
	}
	w, err := newWorld(sc)
	if err != nil {
		return nil, err
	}
	w.hasty = hasty
	first := w.Rand.IntN(len(w.Layout.Sites))
	if err := w.Sim.Run(2 * time.Second); err != nil {
		return w, err
	}
	var away []protocol.ID
	if sc.Sites == 5 {
		away = w.SiteNodes((first + 1) % 5)
		for _, id := range away {
			w.Sim.Crash(id, sim.KeepAll)
		}
		if err := w.Sim.Run(time.Duration(w.Rand.IntN(3000)) * time.Millisecond); err != nil {
			return w, err
		}
	}
	if sc.Sites == 0 {
		if err := w.mute(first); err != nil {
			return w, err
		}
	}
	if err := w.replaceOnline(first, away); err != nil {
		return w, err
	}
	for _, id := range away {
		w.Sim.Restart(id)
	}
	synced := func() bool {
		return !slices.ContainsFunc(w.Layout.Sites[first].Shards, func(id protocol.ID) bool {
			return w.Sim.Get(id).(*server).newcomer.syncing
		})
	}
	if err := w.Sim.RunUntil(time.Minute, synced); err != nil {
		return w, fmt.Errorf("site %d copies: %w", first, err)
	}
	// that it has copied all is on its disks before an operator hears of it
	if err := w.Sim.Run(roundTrip); err != nil {
		return w, err
	}
	if seed%2 == 1 {
		if err := w.replaceOnline((first+2)%len(w.Layout.Sites), nil); err != nil {
			return w, err
		}
	}
	return w, w.Play(2 * time.Second)
}

// TestSiteIsReplacedOnline checks the histories of clients that go on while sites that are there
// are replaced: unlike with a site that is lost, nothing is.
func TestSiteIsReplacedOnline(t *testing.T) {
	committed := 0
	first, seeds := seed.First(t, 1), seed.Count(t, 50)
	for i := range uint64(seeds) {
		w, err := playOnline(first+i, false)
		if err != nil {
			t.Fatalf("seed %d: %v", first+i, err)
		}
		committed += w.Verdicts[store.Committed]
	}
	t.Log(committed, "transactions committed")
	if committed < 20*seeds {
		t.Errorf("only %d transactions committed", committed)
	}
}

// TestLeavingEarlyIsNoticed has sites leave before what they voted for is settled, as an operator
// must not: some seed must notice.
func TestLeavingEarlyIsNoticed(t *testing.T) {
	for seed := range uint64(1000) {
		if _, err := playOnline(1+seed, true); err != nil {
			t.Logf("seed %d: %.600v", 1+seed, err)
			return
		}
	}
	t.Error("nobody noticed")
}

// TestCopyIsPaced: a newcomer leaves its sources, and itself, time for others, so its copy takes at
// least the least time for each value that it is sent, whoever sends it. It fails if pages are
// asked for at once, or of each source as if there was no other one.
func TestCopyIsPaced(t *testing.T) {
	s := newScript(t, nil)
	const keys, size = 6000, 1000
	for part := range keys / 1000 {
		var all []store.Key
		for i := range 1000 {
			all = append(all, store.Key(fmt.Sprintf("%06d", part*1000+i)))
		}
		d, _ := s.done(200, s.submit(200, strings.Repeat("x", size), all...))
		want(t, d, store.Committed)
	}
	s.settle()
	s.newEpoch(false)
	server := s.Layout.Sites[2].Shards[0]
	start := s.Sim.Now()
	for s.status(server).Syncing {
		s.run(roundTrip / 10)
	}
	// Half of the keys are the shard's, and both sources send them. A page of 256 KiB is sent in a
	// round trip, and then the server waits.
	pages := time.Duration(keys * size / 2 / maxPageBytes)
	if took, least := s.Sim.Now()-start, pages*roundTrip+2*store.SendTime(keys*size/2); took < least {
		t.Errorf("%d pages were copied in %v; want %v at least", pages, took, least)
	} else {
		t.Logf("%d pages were copied in %v; want %v at least", pages, took, least)
	}
}

// TestRetiringAsksAgainSoon: what a site that leaves asks the others about, and is not answered, is
// asked about again at the pace of one that leaves, whatever its number: an operator waits. A site
// that was started again shortly before knows of nothing that it is carried out elsewhere.
func TestRetiringAsksAgainSoon(t *testing.T) {
	s := newScript(t, func(c *store.Config) { c.Retain = time.Hour })
	const n = 400
	for i := range n {
		s.submit(200, "v", store.Key(fmt.Sprint("k", i)))
	}
	s.run(4 * roundTrip)
	s.crashSite(2)
	s.restartSite(2)
	s.run(roundTrip)
	left := func() int {
		sum := 0
		for _, id := range s.Layout.Sites[2].Shards {
			sum += s.Sim.Get(id).(*server).unsettled()
		}
		return sum
	}
	for _, id := range s.Layout.Sites[2].Shards {
		s.Sim.Deliver(id, store.Retire{})
	}
	for _, id := range []protocol.ID{11, 12, 21, 22} {
		s.Sim.Cut(30, id)
	}
	s.run(20 * roundTrip)
	if left() < n*9/10 {
		t.Fatalf("%d of %d are left: the test notices nothing", left(), n)
	}
	s.Sim.Heal()
	begun := s.Sim.Now()
	if err := s.Sim.RunUntil(time.Minute, func() bool { return left() == 0 }); err != nil {
		t.Fatal(err)
	}
	if took := s.Sim.Now() - begun; took > 10*time.Second {
		t.Errorf("what is left takes %v", took)
	}
}
