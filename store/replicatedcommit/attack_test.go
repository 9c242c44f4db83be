package replicatedcommit

import (
	"fmt"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storetest"
)

// attack is a random schedule of what may go wrong together: loss and crashes of single nodes,
// sites and machines that leave and come back at any point, in a write as well, links that are cut,
// small pages, little room, and of five sites two that are replaced while two others have missed
// much.
func attack(seed uint64) (*world, error) {
	room := 0
	if seed%7 == 5 {
		room = 60
	}
	sc := storetest.Scenario{
		Seed: seed, Clients: 5, Keys: 4 + int(seed%3), Coordinators: 2, Near: seed%2 == 0, Appends: seed%4 == 3,
		Test: "TestAttack",
	}
	sc.Configure = func(c *store.Config) { c.Retain, c.MaxTxns = time.Second, room }
	if seed%5 > 0 {
		sc.Faults = sim.Swarm(seed, sim.AllFaults&^sim.LostDisk)
	}
	if seed%3 == 0 {
		sc.Sites = 5
	}
	w, err := newWorldOf(subject(1+int(seed/2%4)), sc)
	if err != nil {
		return nil, err
	}
	w.watch()
	if sc.Sites == 5 && seed%2 == 0 {
		return w, w.replaceTwo()
	}
	lasting := 14 * time.Second
	w.Depart(lasting - 4*time.Second)
	return w, w.Play(lasting)
}

// replaceTwo replaces two of five sites when the other two have been away for long enough that the
// last one forgets what they have missed.
func (w *world) replaceTwo() error {
	w.Depart(5 * time.Second)
	if err := w.Inject(); err != nil {
		return err
	}
	if err := w.Sim.Run(8 * time.Second); err != nil {
		return err
	}
	w.Sim.Heal()
	if err := w.Rest(); err != nil {
		return err
	}
	order := w.Rand.Perm(5)
	away, lost := order[:2], order[2:4]
	for _, i := range away {
		for _, id := range w.SiteNodes(i) {
			w.Sim.Crash(id, sim.Keep(w.Rand.IntN(3)))
		}
	}
	for _, d := range w.Clients {
		d.Next()
	}
	if err := w.Sim.Run(time.Duration(2+w.Rand.IntN(4)) * time.Second); err != nil {
		return err
	}
	if err := w.Rest(); err != nil {
		return err
	}
	for _, all := range w.Versions {
		for v := range all {
			w.settled[v] = true
		}
	}
	w.silence(lost)
	for _, d := range w.Clients {
		d.Next()
	}
	if err := w.Sim.Run(time.Duration(150+w.Rand.IntN(450)) * time.Millisecond); err != nil {
		return err
	}
	if err := w.replace(change{sites: lost}); err != nil {
		return err
	}
	for range 3 {
		w.CutSome(w.Sim.Now()+time.Duration(w.Rand.IntN(2000))*time.Millisecond,
			time.Duration(w.Rand.IntN(4000))*time.Millisecond)
	}
	w.Depart(w.Sim.Now() + 4*time.Second)
	return w.Play(10 * time.Second)
}

// watch looks now and then whether a server has given up a transaction that was committed, as
// others have forgotten it, before it has copied what it wrote.
func (w *world) watch() {
	w.Sim.After(50*time.Millisecond, func() {
		if err := w.uncopied(); err != nil && w.Err == nil {
			w.Err = err
		}
		w.watch()
	})
}

func (w *world) uncopied() error {
	for _, id := range w.Nodes() {
		s, ok := w.Sim.Get(id).(*server)
		if !ok || s.newcomer.syncing {
			continue
		}
		_, keys, err := w.Sim.Disk(id)
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
				if _, committed := w.Versions[a.Key][r.id]; !committed || !stored.tookForOld() {
					continue
				}
				if b, ok := keys.Get([]byte(valuePrefix + string(a.Key))); !ok || r.id.After(values.Parse(a.Key, b).Version) {
					return fmt.Errorf("server %d has given up %v, which was committed, and has not copied %q", id, r.id, a.Key)
				}
			}
		}
	}
	return nil
}

// TestAttack plays some seeds, or as many as FORESAY_SEEDS says.
func TestAttack(t *testing.T) {
	seeds := uint64(seed.Count(t, 60))
	first, committed := seed.First(t, 1), 0
	for n := first; n < first+seeds; n++ {
		w, err := attack(n)
		if err != nil {
			t.Fatalf("seed %d: %.3000v", n, err)
		}
		committed += w.Verdicts[store.Committed]
	}
	if uint64(committed) < 20*seeds {
		t.Errorf("only %d transactions committed", committed)
	}
}
