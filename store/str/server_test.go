package str

import (
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/kit"
)

// TestWordsStay has a member that starts again carry out what follows the state on its disk: what
// is prepared there keeps its stamp.
func TestWordsStay(t *testing.T) {
	s := newSoloServer(t)
	at, p := raft.Position{Index: 4, Term: 1}, s.part(2000, s.key(0, "a"))
	s.isLogged(s.env, at, p)
	stamp := s.held[p.ID].stamp
	s.state.hold(&heldPart{part: p, at: at})
	s.state.loaded, s.state.results = true, make([]result, 1)
	command, err := s.state.format.Append(nil, ceil{})
	if err != nil {
		t.Fatal(err)
	}
	s.noted += 1000
	s.committed(s.env, raft.Position{Index: 14, Term: 1}, command)
	if h := s.held[p.ID]; h == nil || h.stage != agreed || h.stamp != stamp {
		t.Errorf("it was stamped %v, and is held as %+v", stamp, h)
	}
}

// TestFenced has a group refuse for good what somebody has asked about before it came.
func TestFenced(t *testing.T) {
	s := newSoloServer(t)
	p := s.part(2000, s.key(0, "a"))
	for i, m := range []store.Message{fence{p.ID}, prepare{p}} {
		command, err := s.state.format.Append(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		s.state.Apply(s.env, raft.Position{Index: uint64(i + 2), Term: 1}, command)
		if r := s.state.results[i]; r.State != aborted || r.Reason != store.Fenced {
			t.Errorf("%T: %+v", m, r)
		}
	}
}

// TestCertifiedIsOnDisk has a server that starts again keep what it has told a coordinator of its
// site (S20).
func TestCertifiedIsOnDisk(t *testing.T) {
	s := newSoloServer(t)
	got := s.certifies(2000, s.key(0, "a"))
	if len(got) != 1 || got[0].Stamp == 0 {
		t.Fatalf("it is certified so: %+v", got)
	}
	again, err := newServer(s.cfg, s.mode)
	if err != nil {
		t.Fatal(err)
	}
	again.Start(s.env, nil)
	if h := again.held[txnID(2000)]; h == nil || h.stage != tentative || h.stamp != got[0].Stamp {
		t.Errorf("it was told %v, and holds %+v", got[0].Stamp, h)
	}
}

// TestProposedHorizon has a leader refuse what is of a snapshot below the horizon that it has
// proposed: the group will not have its versions when the part is carried out (S24).
func TestProposedHorizon(t *testing.T) {
	s := newSoloServer(t)
	w := wanted{id: txnID(2000), at: 2000, keys: []store.Key{s.key(0, "a")}, log: true}
	if why, _ := s.judge(s.env, w); why != store.NoReason {
		t.Fatalf("it is refused: %v", why)
	}
	s.horizon = 2001
	if why, _ := s.judge(s.env, w); why != store.Old {
		t.Errorf("below the horizon on its way: %v", why)
	}
}

// TestServesAgainByCopy has a member that was dropped and admitted while it was away be blind to
// what was prepared before: it gets both with the state.
func TestServesAgainByCopy(t *testing.T) {
	s := newSoloServer(t)
	at, p := raft.Position{Index: 4, Term: 1}, s.part(2000, s.key(0, "a"))
	p.Readers = []protocol.ID{s.cfg.ID}
	s.state.hold(&heldPart{part: p, at: at})
	s.state.loaded, s.noted = true, 5000
	s.takeOver(s.env)
	if h := s.held[p.ID]; h.stage != agreed || h.stamp <= 5000 || h.shownFrom() != 2001 {
		t.Errorf("it is held as %+v, shown from %v", h, h.shownFrom())
	}
}

// TestEndsPerhaps has a part that a leader certifies for the log wait for one that the group is
// asked to abort unless its client was right: it may go on, or be aborted in between (seed 90133).
func TestEndsPerhaps(t *testing.T) {
	s := newSoloServer(t)
	p := s.part(2000, s.key(0, "a"))
	s.isLogged(s.env, raft.Position{Index: 4, Term: 1}, p)
	waits := func(over ...store.TxnID) bool {
		at := s.held[p.ID].stamp + 10
		why, waits := s.judge(s.env, wanted{id: txnID(9000), at: at, keys: []store.Key{s.key(0, "a")}, over: over, log: true})
		if why != store.NoReason {
			t.Fatal(why)
		}
		return waits
	}
	if waits(p.ID) {
		t.Error("on top of what is in the log")
	}
	if s.isToEnd(decide{ID: p.ID, Held: true}); !waits(p.ID) {
		t.Error("on top of what may be aborted first")
	}
	s.held[p.ID].over = &outcome{ID: p.ID, Commit: true, At: s.held[p.ID].stamp}
	if !waits() {
		t.Error("after what may go on")
	}
	if s.ended(decide{ID: p.ID, Held: true}, result{State: prepared}); !waits() {
		t.Error("after what goes on")
	}
	if s.isToEnd(decide{ID: p.ID, Commit: true}); waits() {
		t.Error("after what is to end before it")
	}
}

// TestLeadsAnew has a new leader say at once what those wait for who are to finish what the one
// before has left: who the members are.
func TestLeadsAnew(t *testing.T) {
	s := newSoloServer(t)
	p := s.part(2000, s.key(0, "a"))
	s.isLogged(s.env, raft.Position{Index: 4, Term: 1}, p)
	for range 2 {
		s.Receive(s.env, 30, wordWanted{Shard: 0, ID: p.ID})
	}
	s.said()
	s.leads(s.env, 2)
	if said := only[word](s.said()); len(said) != 1 {
		t.Errorf("it says %+v", said)
	}
}

// TestParked has a question wait at a server while nobody leads, for a while.
func TestParked(t *testing.T) {
	s := newSoloServer(t)
	for _, ref := range []uint64{3, 4, 3} {
		s.Receive(s.env, 20, kit.Ask{Ref: ref})
	}
	if said := only[kit.Elsewhere](s.said()); len(said) > 0 {
		t.Fatalf("it knows no other one, and says %+v", said)
	}
	s.env.Now += parkTrips*s.server.cfg.RoundTrip + 1
	s.Expire(s.env, sweepTimer{})
	if said := only[kit.Elsewhere](s.said()); len(said) != 2 || said[0].Leader != 0 {
		t.Errorf("it says %+v", said)
	}
}
