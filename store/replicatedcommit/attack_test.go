package replicatedcommit

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
)

// attack is a random schedule of what may go wrong together: loss and crashes of single nodes,
// sites and machines that leave and come back at any point, in a write as well, links that are cut,
// small pages, little room, and of five sites two that are replaced while two others have missed
// much.
func attack(seed uint64) (*world, error) {
	sc := scenario{
		seed: seed, clients: 5, keys: 4 + int(seed%3), coordinators: 2, page: 1 + int(seed/2%4), near: seed%2 == 0, appends: seed%4 == 3, test: "TestAttack",
	}
	if seed%5 > 0 {
		sc.faults = sim.Swarm(seed, sim.AllFaults&^sim.LostDisk)
	}
	if seed%3 == 0 {
		sc.sites = 5
	}
	room := 0
	if seed%7 == 5 {
		room = 60
	}
	w, err := newWorldOf(sc, func(c *store.Config) { c.Retain, c.MaxTxns = time.Second, room }, nil)
	if err != nil {
		return nil, err
	}
	w.watch()
	if sc.sites == 5 && seed%2 == 0 {
		return w, w.replaceTwo()
	}
	lasting := 14 * time.Second
	w.depart(lasting - 4*time.Second)
	return w, w.play(lasting)
}

// depart has nodes leave and come back, in groups that may overlap.
func (w *world) depart(until time.Duration) {
	n := len(w.layout.Sites)
	minority := n - w.layout.Majority()
	for at := w.sim.Now() + time.Second; at < until; at += time.Duration(w.rand.IntN(4000)) * time.Millisecond {
		away := time.Duration(300+w.rand.IntN(6000)) * time.Millisecond
		var gone []protocol.ID
		sites := w.rand.Perm(n)
		switch w.rand.IntN(4) {
		case 0: // whole sites
			for _, i := range sites[:1+w.rand.IntN(minority)] {
				gone = append(gone, w.siteNodes(i)...)
			}
		case 1: // a machine of each of some sites
			for _, i := range sites[:1+w.rand.IntN(minority)] {
				gone = append(gone, w.machine(i)...)
			}
		case 2: // a server
			s := w.layout.Sites[sites[0]].Shards
			gone = []protocol.ID{s[w.rand.IntN(len(s))]}
		default: // links
			w.cutSome(at, away)
			continue
		}
		w.leaveNodes(gone, at, away)
	}
}

// machine returns some of a site's servers, and one of its coordinators.
func (w *world) machine(site int) []protocol.ID {
	s := w.layout.Sites[site]
	ids := []protocol.ID{s.Coordinators[w.rand.IntN(len(s.Coordinators))]}
	for _, id := range s.Shards {
		if w.rand.IntN(len(s.Shards)) == 0 {
			ids = append(ids, id)
		}
	}
	return ids
}

// cutSome cuts some links for a while, in one direction each.
func (w *world) cutSome(at, away time.Duration) {
	all := w.nodes()
	for range 1 + w.rand.IntN(2*len(all)) {
		x, y := all[w.rand.IntN(len(all))], all[w.rand.IntN(len(all))]
		if x != y {
			w.sim.At(at, func() { w.sim.Cut(x, y) })
			w.sim.At(at+away, func() { w.sim.Mend(x, y) })
		}
	}
}

// rest has clients end what they do, and all that is up learn what they were told.
func (w *world) rest() error {
	w.stopped = true
	idle := func() bool { return !slices.ContainsFunc(w.clients, func(d *driver) bool { return d.busy }) }
	if err := w.sim.RunUntil(time.Minute, idle); err != nil {
		return err
	}
	err := w.sim.Run(3 * time.Second)
	w.stopped = false
	return err
}

// replaceTwo replaces two of five sites when the other two have been away for long enough that the
// last one forgets what they have missed.
func (w *world) replaceTwo() error {
	w.depart(5 * time.Second)
	if err := w.inject(); err != nil {
		return err
	}
	if err := w.sim.Run(8 * time.Second); err != nil {
		return err
	}
	w.sim.Heal()
	if err := w.rest(); err != nil {
		return err
	}
	order := w.rand.Perm(5)
	away, lost := order[:2], order[2:4]
	for _, i := range away {
		for _, id := range w.siteNodes(i) {
			w.sim.Crash(id, sim.Keep(w.rand.IntN(3)))
		}
	}
	for _, d := range w.clients {
		d.next()
	}
	if err := w.sim.Run(time.Duration(2+w.rand.IntN(4)) * time.Second); err != nil {
		return err
	}
	if err := w.rest(); err != nil {
		return err
	}
	for _, all := range w.versions {
		for v := range all {
			w.settled[v] = true
		}
	}
	w.silence(lost)
	for _, d := range w.clients {
		d.next()
	}
	if err := w.sim.Run(time.Duration(150+w.rand.IntN(450)) * time.Millisecond); err != nil {
		return err
	}
	if err := w.replace(change{sites: lost}); err != nil {
		return err
	}
	for range 3 {
		w.cutSome(w.sim.Now()+time.Duration(w.rand.IntN(2000))*time.Millisecond, time.Duration(w.rand.IntN(4000))*time.Millisecond)
	}
	w.depart(w.sim.Now() + 4*time.Second)
	return w.play(10 * time.Second)
}

// watch looks now and then whether a server has given up a transaction that was committed, as
// others have forgotten it, before it has copied what it wrote.
func (w *world) watch() {
	w.sim.After(50*time.Millisecond, func() {
		if err := w.uncopied(); err != nil && w.err == nil {
			w.err = err
		}
		w.watch()
	})
}

func (w *world) uncopied() error {
	for _, id := range w.nodes() {
		s, ok := w.sim.Get(id).(*Server)
		if !ok || s.newcomer.syncing {
			continue
		}
		_, keys, err := w.sim.Disk(id)
		if err != nil {
			continue
		}
		for _, r := range s.txns {
			b, ok := keys.Get(txnKey(r.id))
			if !ok || !r.tookForOld() {
				continue
			}
			stored, err := parseRecord(b)
			if err != nil {
				return err
			}
			for _, a := range stored.writes {
				if _, committed := w.versions[a.Key][r.id]; !committed || !stored.tookForOld() {
					continue
				}
				if b, ok := keys.Get([]byte(valuePrefix + string(a.Key))); !ok || r.id.After(parseValue(a.Key, b).Version) {
					return fmt.Errorf("server %d has given up %v, which was committed, and has not copied %q", id, r.id, a.Key)
				}
			}
		}
	}
	return nil
}

// TestAttack plays some seeds, or as many as FORESAY_ATTACKS says.
func TestAttack(t *testing.T) {
	seeds := uint64(24)
	if text := os.Getenv("FORESAY_ATTACKS"); text != "" {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			t.Fatalf("FORESAY_ATTACKS: %v", err)
		}
		seeds = n
	}
	first, committed := firstSeed(t), 0
	for seed := first; seed < first+seeds; seed++ {
		w, err := attack(seed)
		if err != nil {
			t.Fatalf("seed %d: %.3000v", seed, err)
		}
		committed += w.verdicts[store.Committed]
	}
	if uint64(committed) < 20*seeds {
		t.Errorf("only %d transactions committed", committed)
	}
}
