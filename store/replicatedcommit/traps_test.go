package replicatedcommit

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/store"
)

// commitAndDie has two of three sites vote for a transaction, lose their power after a while, and
// one of them go on with the third. It returns an error if that one commits what contradicts a
// transaction whose client was told that it is committed.
func commitAndDie(t *testing.T, after time.Duration) (acknowledged bool, err error) {
	s := newScript(t, nil)
	s.cut(slices.Concat(s.SiteNodes(0), s.SiteNodes(1)), s.SiteNodes(2))
	for _, id := range s.SiteNodes(2) {
		s.Sim.Cut(200, id)
	}
	rewrite := func(value string) store.Submit {
		s.ref++
		return store.Submit{Ref: s.ref, Reads: []store.Read{{Key: "k"}},
			Writes: []store.Write{{Key: "k", Bytes: []byte(value)}}}
	}
	s.Sim.Deliver(200, rewrite("first"))
	s.run(after)
	for _, id := range slices.Concat(s.SiteNodes(0), s.SiteNodes(1)) {
		s.Sim.Crash(id, sim.KeepNone)
	}
	s.run(3 * roundTrip / 2) // until what is on its way to the client has come
	acknowledged = slices.ContainsFunc(s.answers[200], func(m message) bool {
		d, ok := m.(store.Done)
		return ok && d.Outcome.Verdict == store.Committed
	})
	for _, id := range slices.Concat(s.SiteNodes(0), s.SiteNodes(2)) {
		for _, other := range append(s.SiteNodes(2), s.SiteNodes(0)...) {
			s.Sim.Mend(id, other)
		}
	}
	s.restartSite(0)
	s.run(roundTrip)
	again := rewrite("second")
	s.Sim.Deliver(202, again)
	second, _ := s.done(202, again.Ref)
	s.Sim.Heal()
	s.restartSite(1)
	if err := s.Sim.RunUntil(time.Minute, s.Quiet); err != nil {
		return acknowledged, fmt.Errorf("%v: %s", err, s.Unquiet())
	}
	if err := s.EqualSites(); err != nil {
		return acknowledged, err
	}
	g, _ := s.read(201, "k")
	if acknowledged && (second.Outcome.Verdict == store.Committed || string(g.Value.Bytes) != "first") {
		return acknowledged, fmt.Errorf("both have read that there was nothing: the first was committed, the second is "+
			"%v, and k is %q", second.Outcome, g.Value.Bytes)
	}
	return acknowledged, nil
}

// TestTwoSitesCommitAndDie: what two sites committed in their last moment stands when one of them
// goes on with the third, at whatever time they died: votes and their locks are on the disk.
func TestTwoSitesCommitAndDie(t *testing.T) {
	acknowledged := 0
	for after := time.Millisecond; after < 2*roundTrip; after += 4 * time.Millisecond {
		ack, err := commitAndDie(t, after)
		if ack {
			acknowledged++
		}
		if err != nil {
			t.Errorf("after %v: %v", after, err)
		}
	}
	if acknowledged < 10 {
		t.Errorf("%d transactions were acknowledged", acknowledged)
	}
}

// TestAppends: what was added to keys, and acknowledged, is there in the end, once, whatever failed
// meanwhile.
func TestAppends(t *testing.T) {
	added := 0
	for seed := uint64(1); seed <= 10; seed++ {
		sc := swarm(seed)
		sc.Appends, sc.Keys = true, 3
		w, err := playOnce(sc)
		if w == nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if lost := w.LostAppends(); lost != nil {
			t.Errorf("seed %d: %v", seed, lost)
		} else if err != nil && !plant.Planted() { // what is planted must show by what is lost
			t.Errorf("seed %d: %v", seed, err)
		}
		for _, all := range w.Appended {
			added += len(all)
		}
	}
	if added < 100 && !plant.Planted() {
		t.Errorf("%d were added", added)
	}
}
