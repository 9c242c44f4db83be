package replicatedcommit

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storetest"
)

// takesPart reports whether a server is up, was admitted and was not refused.
func (s *script) takesPart(id protocol.ID) bool {
	n, ok := s.Sim.Get(id).(*server)
	return ok && n.admission.admitted && n.admission.refused == ""
}

// wantOlder checks that a server says that its disk is an older copy.
func (s *script) wantOlder(id protocol.ID) {
	s.t.Helper()
	for _, m := range s.answers[id] {
		if r, ok := m.(store.Refused); ok && r.Forgot && strings.Contains(r.Reason, "an older copy of itself") {
			return
		}
	}
	s.t.Errorf("server %d said %v, want that its disk is an older copy", id, s.answers[id])
}

// TestRestoredDiskIsRefused: a disk that was started since its backup, or has voted since, is
// refused when it is restored, again and again. A disk that has missed nothing is not.
func TestRestoredDiskIsRefused(t *testing.T) {
	for _, tc := range []struct {
		name    string
		since   func(s *script)
		refused bool
	}{
		{"nothing happened since", func(*script) {}, false},
		{"it was started since", func(s *script) {
			s.Sim.Crash(11, 0)
			s.Sim.Restart(11)
			s.run(time.Second)
		}, true},
		{"it has voted since", func(s *script) { // as if the end of its log was cut off
			d, _ := s.done(200, s.submit(200, "a", "k", "l"))
			want(s.t, d, store.Committed)
			s.run((3*markEvery + 2) * roundTrip)
		}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newScript(t, nil)
			s.run(time.Second)
			restore := s.Sim.Backup(11)
			tc.since(s)
			restore()
			for range 2 {
				s.answers[11] = nil
				s.Sim.Restart(11)
				s.run(time.Second)
				if s.takesPart(11) == tc.refused {
					t.Errorf("it takes part: %v", !tc.refused)
				}
				if tc.refused {
					s.wantOlder(11)
				}
				s.Sim.Crash(11, 0)
			}
			d, _ := s.done(200, s.submit(200, "b", "k", "l")) // the others go on
			want(t, d, store.Committed)
		})
	}
}

// TestRestoredDiskMustBeRefused: as TestLostDiskMustBeRefused, with a disk from a backup: the yes
// that only the client heard is not on it, and what was acknowledged would be lost.
func TestRestoredDiskMustBeRefused(t *testing.T) {
	s := newScript(t, nil)
	s.run(time.Second)
	var restores []func()
	for _, id := range s.SiteNodes(2)[1:] {
		restores = append(restores, s.Sim.Backup(id))
	}
	for _, at := range s.SiteNodes(2) { // marks arrive, votes do not
		s.Sim.Cut(10, at)
		s.Sim.Cut(20, at)
	}
	for _, to := range append(s.SiteNodes(0), s.SiteNodes(1)...) {
		s.Sim.Cut(30, to)
		s.Sim.Cut(to, 30)
	}
	b := s.blindYes()
	s.run((3*markEvery + 2) * roundTrip)
	for _, restore := range restores {
		restore()
	}
	for _, id := range s.SiteNodes(2) {
		s.Sim.Restart(id)
	}
	s.yesIsMissed(b)
}

// TestRestartNeedsAMajority: a server whose disk was admitted before takes part again with one
// other site of three, as no majority is without it, but not alone. What a site knows that comes
// later counts.
func TestRestartNeedsAMajority(t *testing.T) {
	s := newScript(t, nil)
	restores := []func(){s.Sim.Backup(11), s.Sim.Backup(12)} // a whole site
	s.crashSite(1)                                           // which misses what follows
	for range 2 {
		for _, id := range s.SiteNodes(0) {
			s.Sim.Crash(id, 0)
			s.Sim.Restart(id)
		}
		s.run(time.Second)
	}
	if !s.takesPart(11) || !s.takesPart(12) {
		t.Fatal("site a does not take part with site c")
	}
	s.crashSite(2)
	s.restartSite(1)
	for _, restore := range restores {
		restore()
	}
	s.crashSite(1)
	s.restartSite(0)
	s.run(10 * time.Second)
	if s.takesPart(11) || s.takesPart(12) {
		t.Fatal("site a takes part alone")
	}
	s.restartSite(1) // which knows no better
	s.run(time.Second)
	if !s.takesPart(11) || !s.takesPart(12) {
		t.Fatal("site a does not take part with site b")
	}
	s.restartSite(2) // which does
	s.run((lastHello + 2) * roundTrip)
	for _, id := range []protocol.ID{11, 12} {
		if s.takesPart(id) {
			t.Errorf("server %d takes part", id)
		}
		s.wantOlder(id)
	}
}

// TestAllSitesStartAtOnce: after a loss of power each waits for the others, and all go on.
func TestAllSitesStartAtOnce(t *testing.T) {
	s := newScript(t, nil)
	for range 3 {
		for _, id := range s.Nodes() {
			s.Sim.Crash(id, 0)
			s.Sim.Restart(id)
		}
		s.run(time.Second)
		d, _ := s.done(200, s.submit(200, "a", "k", "l"))
		want(t, d, store.Committed)
	}
	for id, why := range s.answers {
		if _, ok := why[0].(store.Refused); ok {
			t.Errorf("server %d was refused: %v", id, why)
		}
	}
}

// TestCorruptNumbers: a server takes no part, and says what is wrong, if a number on its disk, or
// what it knows of a peer's, cannot be read.
func TestCorruptNumbers(t *testing.T) {
	for key, want := range map[string]string{
		oldKey: `the key "old": `, doneKey: `the key "done": `, markKey: `the key "mark": `,
		string(peerKey(peerPrefix, 21)): "of server 21: replicatedcommit: a disk's mark: ",
	} {
		for _, b := range [][]byte{{}, {1, 2}, bytes.Repeat([]byte{0xff}, 24)} {
			s, err := newServer(store.Config{ID: 11, Layout: layout(3, 1)})
			if err != nil {
				t.Fatal(err)
			}
			disk := storetest.KeySpace{key: b}
			env := protocol.NewEnv[message](disk, 1, rand.New(rand.NewPCG(1, 1)))
			s.Start(env, nil)
			if why := s.admission.refused; !strings.HasPrefix(why, want) || s.admission.admitted {
				t.Errorf("%x under %q: the server is refused as %q", b, key, why)
			}
		}
	}
}
