package replicatedcommit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
)

// replaceOnline replaces a site that is there, while clients go on: it retires, and when all that
// it voted for is settled the other sites and the clients go on in the next epoch, one after the
// other, in any order. Nodes of different epochs do not hear each other meanwhile. Nothing that
// clients were told may be lost.
func (w *world) replaceOnline(leaving int, away []protocol.ID) error {
	for _, id := range w.layout.Sites[leaving].Shards {
		w.sim.Deliver(id, store.Retire{})
	}
	settled := func() bool {
		return !slices.ContainsFunc(w.layout.Sites[leaving].Shards, func(id protocol.ID) bool {
			s := w.sim.Get(id).(*Server)
			return !s.retirement.retired || s.unsettled() > 0 && !w.sc.hasty
		})
	}
	if w.sim.RunUntil(10*time.Second, settled) != nil {
		for _, id := range away { // what waits for a site that is away, as it may
			w.sim.Restart(id)
		}
	}
	if err := w.sim.RunUntil(time.Minute, settled); err != nil {
		return fmt.Errorf("site %d leaves: %w", leaving, err)
	}
	for _, id := range w.siteNodes(leaving) {
		w.sim.Crash(id, sim.KeepNone)
		w.sim.LoseDisk(id)
	}
	w.epoch++
	w.newSites++
	base := protocol.ID(10 * (len(w.layout.Sites) + w.newSites))
	site := store.Site{Name: fmt.Sprint("new", w.epoch), Coordinators: []protocol.ID{base}, Since: w.epoch}
	for j := range w.layout.Sites[leaving].Shards {
		site.Shards = append(site.Shards, base+1+protocol.ID(j))
	}
	w.layout.Sites = slices.Clone(w.layout.Sites)
	w.layout.Sites[leaving] = site

	var groups [][]protocol.ID
	for i := range w.layout.Sites {
		// else it is away, and hears of the epoch when it is back
		if i != leaving && w.sim.Get(w.layout.Sites[i].Shards[0]) != nil {
			groups = append(groups, w.siteNodes(i))
		}
	}
	for _, d := range w.clients {
		groups = append(groups, []protocol.ID{d.id})
	}
	w.rand.Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
	moved := w.siteNodes(leaving)
	for _, id := range moved {
		w.add(id, w.places[leaving])
	}
	w.apart(nil, moved, slices.Concat(groups...))
	for n, ids := range groups {
		if err := w.move(ids, func() { w.apart(moved, ids, slices.Concat(groups[n+1:]...)) }); err != nil {
			return err
		}
		moved = append(moved, ids...)
	}
	return cmp.Or(w.sim.Run(300*time.Millisecond), w.err) // until all clients go on
}

// mute has the other sites hear nothing of a site for a while, and clients hear only votes: what
// rests on its votes is known to clients, and nowhere else.
func (w *world) mute(site int) error {
	var mend []func()
	cut := func(from, to protocol.ID) {
		w.sim.Cut(from, to)
		mend = append(mend, func() { w.sim.Mend(from, to) })
	}
	for i := range w.layout.Sites {
		for _, to := range w.siteNodes(i) {
			for _, from := range w.siteNodes(site) {
				if i != site {
					cut(from, to)
				}
			}
		}
	}
	w.sim.After(3*time.Second, func() {
		for _, f := range mend {
			f()
		}
	})
	return w.sim.Run(time.Duration(200+w.rand.IntN(600)) * time.Millisecond)
}

// apart has nodes of different epochs not hear each other, and mends the links to those that have
// moved.
func (w *world) apart(moved, ids, others []protocol.ID) {
	for _, id := range ids {
		for _, other := range moved {
			w.sim.Mend(id, other)
			w.sim.Mend(other, id)
		}
		for _, other := range others {
			w.sim.Cut(id, other)
			w.sim.Cut(other, id)
		}
	}
}

// move has a site's nodes, or a client, go on in the next epoch.
func (w *world) move(ids []protocol.ID, started func()) error {
	var then []func()
	for _, id := range ids {
		for _, d := range w.clients {
			if d.id != id {
				continue
			}
			if t, ok := d.stop(); ok {
				then = append(then, func() {
					d.queries = 1
					d.ref++
					w.sim.Deliver(d.id, store.Query{Ref: d.ref, Txn: t})
				})
			} else {
				d.busy = true // until it is back
				then = append(then, func() {
					d.busy = false
					d.next()
				})
			}
		}
		w.sim.Crash(id, sim.Keep(w.rand.IntN(3)))
	}
	if err := w.sim.Run(roundTrip); err != nil { // what is on its way is lost with its connection
		return err
	}
	started()
	for _, id := range ids {
		w.sim.Restart(id)
	}
	for _, f := range then {
		w.sim.After(time.Duration(1+w.rand.IntN(300))*time.Millisecond, f)
	}
	return w.sim.Run(time.Duration(w.rand.IntN(400)) * time.Millisecond)
}

// playOnline replaces one site after another, with another one away in some runs.
func playOnline(seed uint64, hasty bool) (*world, error) {
	sc := scenario{seed: seed, clients: 6, keys: 4, hasty: hasty, test: "TestSiteIsReplacedOnline"}
	if seed%3 == 2 {
		sc.sites = 5
	}
	w, err := newWorld(sc)
	if err != nil {
		return nil, err
	}
	first := w.rand.IntN(len(w.layout.Sites))
	if err := w.sim.Run(2 * time.Second); err != nil {
		return w, err
	}
	var away []protocol.ID
	if sc.sites == 5 {
		away = w.siteNodes((first + 1) % 5)
		for _, id := range away {
			w.sim.Crash(id, sim.KeepAll)
		}
		if err := w.sim.Run(time.Duration(w.rand.IntN(3000)) * time.Millisecond); err != nil {
			return w, err
		}
	}
	if sc.sites == 0 {
		if err := w.mute(first); err != nil {
			return w, err
		}
	}
	if err := w.replaceOnline(first, away); err != nil {
		return w, err
	}
	for _, id := range away {
		w.sim.Restart(id)
	}
	synced := func() bool {
		return !slices.ContainsFunc(w.layout.Sites[first].Shards, func(id protocol.ID) bool {
			return w.sim.Get(id).(*Server).newcomer.syncing
		})
	}
	if err := w.sim.RunUntil(time.Minute, synced); err != nil {
		return w, fmt.Errorf("site %d copies: %w", first, err)
	}
	// that it has copied all is on its disks before an operator hears of it
	if err := w.sim.Run(roundTrip); err != nil {
		return w, err
	}
	if seed%2 == 1 {
		if err := w.replaceOnline((first+2)%len(w.layout.Sites), nil); err != nil {
			return w, err
		}
	}
	return w, w.play(2 * time.Second)
}

// TestSiteIsReplacedOnline checks the histories of clients that go on while sites that are there
// are replaced: unlike with a site that is lost, nothing is.
func TestSiteIsReplacedOnline(t *testing.T) {
	committed := 0
	first := firstSeed(t)
	for i := range uint64(24) {
		w, err := playOnline(first+i, false)
		if err != nil {
			t.Fatalf("seed %d: %v", first+i, err)
		}
		committed += w.verdicts[store.Committed]
	}
	t.Log(committed, "transactions committed")
	if committed < 500 {
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

// TestCopyIsPaced: a newcomer leaves its sources time for others, so its copy takes at least the
// least time for each value. It fails if pages are asked for at once.
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
	server := s.layout.Sites[2].Shards[0]
	start := s.sim.Now()
	for s.status(server).Syncing {
		s.run(roundTrip / 10)
	}
	// Half of the keys are the shard's. A page of 256 KiB is sent in a round trip, and then the
	// server waits.
	pages := time.Duration(keys * size / 2 / maxPageBytes)
	if took, least := s.sim.Now()-start, pages*roundTrip+store.SendTime(keys*size/2)*3/4; took < least {
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
	s.run(5 * time.Second)
	s.crashSite(2)
	s.restartSite(2)
	s.run(roundTrip)
	left := func() int {
		sum := 0
		for _, id := range s.layout.Sites[2].Shards {
			sum += s.sim.Get(id).(*Server).unsettled()
		}
		return sum
	}
	for _, id := range s.layout.Sites[2].Shards {
		s.sim.Deliver(id, store.Retire{})
	}
	for _, id := range []protocol.ID{11, 12, 21, 22} {
		s.sim.Cut(30, id)
	}
	s.run(20 * roundTrip)
	if left() < n*9/10 {
		t.Fatalf("%d of %d are left: the test notices nothing", left(), n)
	}
	s.sim.Heal()
	begun := s.sim.Now()
	if err := s.sim.RunUntil(time.Minute, func() bool { return left() == 0 }); err != nil {
		t.Fatal(err)
	}
	if took := s.sim.Now() - begun; took > 10*time.Second {
		t.Errorf("what is left takes %v", took)
	}
}
