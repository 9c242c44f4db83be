package replicatedcommit

import (
	"testing"

	"github.com/foresay/foresay/store"
)

// downScript is a script with site c down, of which client 200 knows.
func downScript(t *testing.T) *script {
	t.Helper()
	s := newScript(t, nil)
	s.crashSite(2)
	d, _ := s.done(200, s.submit(200, "first", "other"))
	want(t, d, store.Committed)
	s.run(5 * roundTrip)
	return s
}

// TestLateRequestBlocksNothing: a site is down, one that is left has voted yes, and the client's
// request to the other is lost, or later than the first one's question. Nobody else wants the key,
// so that question must not be what refuses.
func TestLateRequestBlocksNothing(t *testing.T) {
	s := downScript(t)
	s.Sim.Cut(200, 20)
	d, took := s.done(200, s.submit(200, "a", "k", "l"))
	want := store.Committed
	if d.Outcome.Verdict != want {
		t.Errorf("%+v after %v, want %v", d.Outcome, took, want)
	}
	s.Sim.Heal()
	s.restartSite(2)
	s.settle()
}

// TestRefusedIsNotUrged: the first site that is asked while another is down refuses, which is the
// end of it to the client. Recovery must not bring it about at others.
func TestRefusedIsNotUrged(t *testing.T) {
	s := downScript(t)
	s.Sim.Cut(201, 20)
	s.submit(201, "b", "k") // which site a alone hears of, and has it locked
	s.run(roundTrip * 3 / 4)
	d, _ := s.done(200, s.submit(200, "a", "k"))
	want(t, d, store.Aborted)
	s.run(roundTrip)
	s.restartSite(2)
	s.Sim.Heal()
	s.settle()
	if g, _ := s.read(200, "k"); string(g.Value.Bytes) == "a" {
		t.Errorf("k is %q", g.Value.Bytes)
	}
}
