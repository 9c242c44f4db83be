package carousel

import (
	"math"
	"testing"
	"time"

	"github.com/foresay/foresay/clock"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/raft"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storetest"
)

// carryOut has the group's entry be carried out.
func (a *alone) carryOut(t *testing.T, entry store.Message) {
	t.Helper()
	a.call(func(env *protocol.Env[store.Message]) {
		b, err := a.state.format.Append(nil, entry)
		if err != nil {
			t.Fatal(err)
		}
		a.state.Apply(a.written(env), raft.Position{Index: 1, Term: 3}, b)
	})
}

func (a *alone) closedUpTo() (at clock.Stamp) {
	a.call(func(env *protocol.Env[store.Message]) { at = a.closedAt(env) })
	return at
}

// TestClosed: what is closed is below all that is prepared, and may end there; nothing is closed
// while there is a part that may end at any time.
func TestClosed(t *testing.T) {
	writes := ballot{Yes: true, Stamp: 300, footprint: footprint{Writes: []store.Read{{Key: "k"}}}}
	part := partID{txnID(1), 1}
	a := leader(t, 0)
	a.carryOut(t, closed{At: 100})
	expect(t, "closed", a.closedUpTo(), clock.Stamp(100))
	a.carryOut(t, prepared{Part: part, Ballot: writes})
	a.carryOut(t, closed{At: 400})
	expect(t, "closed, with a part at 300", a.closedUpTo(), clock.Stamp(299))
	a.carryOut(t, ended{finish{ID: part.ID, Commit: true, Version: store.Version{Time: 350},
		Writes: []store.Write{{Key: "k"}}}})
	a.carryOut(t, closed{At: 400})
	expect(t, "closed, when it has ended", a.closedUpTo(), clock.Stamp(400))
	a.carryOut(t, closed{At: 399})
	expect(t, "closed, once more", a.closedUpTo(), clock.Stamp(400))

	writes.Stamp = 900
	a.carryOut(t, prepared{Part: partID{txnID(2), 1}, Ballot: writes, Recovered: true})
	a.carryOut(t, closed{At: 800})
	expect(t, "closed, with a part that was recovered", a.closedUpTo(), clock.Stamp(400))
}

// TestWritesAreAboveClosed: a leader prepares above what it has closed, also before that is on
// record; whoever takes over above what is.
func TestWritesAreAboveClosed(t *testing.T) {
	a := leader(t, 0)
	a.asked = 700 // as proposed
	expect(t, "prepared after 700 was closed", a.stampOf("k"), uint64(701))
	a.carryOut(t, closed{At: 900})
	a.call(a.follows)
	expect(t, "recovered after 900 was closed", a.stampOf("k"), uint64(901))
	a.call(func(env *protocol.Env[store.Message]) { a.serve(env, 4) })
	expect(t, "prepared by the next leader", a.stampOf("k"), uint64(901))
}

// TestHorizon: snapshots are kept for Config.Retain, and longer if somebody copies them. A leader
// that has just begun does not know of those.
func TestHorizon(t *testing.T) {
	a := leader(t, 0)
	a.began = 20 * time.Second
	at := func(now time.Duration) (h clock.Stamp) {
		a.call(func(env *protocol.Env[store.Message]) {
			env.Now = now
			h = a.horizon(env)
		})
		return h
	}
	expect(t, "a leader that has just begun", at(79*time.Second), clock.Stamp(0))
	expect(t, "a leader", at(90*time.Second), 30*second)
	a.call(func(env *protocol.Env[store.Message]) {
		env.Now = 90 * time.Second
		a.Receive(env, a.where.members[0][1], closeWanted{Hold: 40 * second})
	})
	expect(t, "while a snapshot is copied", at(5*time.Minute), 40*second)
	expect(t, "when that is over", at(20*time.Minute), 19*60*second)
}

// TestNothingIsWrittenBelowTheHorizon: it does not pass what is prepared.
func TestNothingIsWrittenBelowTheHorizon(t *testing.T) {
	a := leader(t, 0)
	writes := ballot{Yes: true, Stamp: 300, footprint: footprint{Writes: []store.Read{{Key: "k"}}}}
	a.carryOut(t, prepared{Part: partID{txnID(1), 1}, Ballot: writes})
	a.carryOut(t, closed{At: 900, Horizon: 800})
	a.call(func(env *protocol.Env[store.Message]) {
		expect(t, "the horizon", a.state.values.Horizon(a.group.State(env)), clock.Stamp(299))
	})
}

// TestVersionsAreCollected has few keys be written for long. Of what was overwritten before the
// horizon nothing is left at any member.
func TestVersionsAreCollected(t *testing.T) {
	w, err := storetest.New(subject(basicMode), storetest.Scenario{Seed: 1, Clients: 6, Keys: 2, Hot: true,
		CheckEvery: 50})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Play(15 * time.Second); err != nil {
		t.Fatal(err)
	}
	written := 0
	for _, versions := range w.Versions {
		written += len(versions)
	}
	for _, site := range w.Layout.Sites {
		left := 0
		for _, id := range site.Servers() {
			_, disk, err := w.Sim.Disk(id)
			if err != nil {
				t.Fatal(err)
			}
			s := w.Sim.Get(id).(*server)
			left += len(s.state.values.Copy(s.group.StateIn(disk), nil, math.MaxInt).Items)
		}
		if left > written/2 {
			t.Errorf("site %s has %d of %d versions", site.Name, left, written)
		}
	}
}

// TestPages: what a server says of a snapshot: what it had, that it may still change, that it is
// gone, or that it has not come.
func TestPages(t *testing.T) {
	a := leader(t, 0)
	a.put("a", 100)
	a.put("a", 300)
	a.put("b", 300)
	at := func(at clock.Stamp) (out store.PageReply) {
		for _, m := range a.call(func(env *protocol.Env[store.Message]) {
			env.Now = time.Duration(second)
			a.Receive(env, 10, store.PageRequest{At: uint64(at)})
		}) {
			out = m.(store.PageReply)
		}
		return out
	}
	a.carryOut(t, closed{At: 300})
	expect(t, "the future", at(2*second).Reason, store.Ahead)
	expect(t, "what is not closed", at(301).Reason, store.Locked)
	expect(t, "the present", at(0).At, uint64(second))
	expect(t, "the keys of 300", len(at(300).Items), 2)
	expect(t, "the keys of 299", len(at(299).Items), 1)
	expect(t, "what is held", a.held[299], time.Duration(second))
	a.carryOut(t, closed{At: 300, Horizon: 300})
	old := at(299)
	expect(t, "what is gone", old.Reason, store.Old)
	expect(t, "what is left", clock.Stamp(old.Horizon), clock.Stamp(300))
}
