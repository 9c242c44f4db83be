package domino

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/kv"
)

// placedSlots returns the slots of which clients were told in a call.
func placedSlots(env *protocol.Env[smr.Message]) (slots []smr.Slot) {
	for _, e := range env.Out {
		if m, ok := kit.Inside(e.Msg).(placed); ok {
			slots = append(slots, m.Slot)
		}
	}
	return slots
}

// TestRevokedSlotsAreNotAccepted: neither what another owner proposes up to a slot that was
// revoked, that included, nor what the replica itself does, counts for anybody.
func TestRevokedSlotsAreNotAccepted(t *testing.T) {
	for _, owner := range ids(1, 2) {
		w, r, env := inHand(t, "na3", 2)
		p, digit := r.peers[owner], uint64(owner)
		revoked := above(slotAt(w.Clock(2))+smr.Slot(100*time.Millisecond), digit)
		r.acceptor.revoke(env, owner, revoked)
		var items []item
		for _, s := range []smr.Slot{revoked - stride, revoked, revoked + stride} {
			items = append(items, item{Slot: s, Answer: owner,
				Entries: []kit.Entry{{Kind: kit.Command, Client: 9, Session: 1, Seq: kit.Seq(s)}}})
		}
		r.takeItems(env, p, news{First: p.have + 1, Items: items})
		if told := placedSlots(env); !slices.Equal(told, []smr.Slot{revoked + stride}) {
			t.Errorf("slots up to %d of replica %d are revoked; told of %v", revoked, owner, told)
		}
	}
}

// TestRevokedCommandIsProposedAgain: a command whose slot was decided to be empty gets another one.
func TestRevokedCommandIsProposedAgain(t *testing.T) {
	for _, kept := range []bool{false, true} {
		_, r, env := inHand(t, "na3", 2)
		o := r.learner.track(2)
		x := item{Slot: above(o.w+1000, r.digit), Answer: 2,
			Entries: []kit.Entry{{Kind: kit.Command, Client: 9, Session: 1, Seq: 1}}}
		o.queue = []numbered{{1 << 20, x}}
		c := closeSlots{Track: 2, Low: o.w, High: x.Slot + 100}
		if kept {
			c.Items = []item{x}
		}
		r.know(c)
		r.jumpTrack(env, o)
		if again := len(r.queue) == 1; again == kept {
			t.Errorf("the slot is decided to be the command's: %v; %d are to be proposed again", kept, len(r.queue))
		}
	}
}

// TestRevocationsAreBounded: nobody can have slots revoked that are far ahead.
func TestRevocationsAreBounded(t *testing.T) {
	for ahead, want := range map[time.Duration]bool{time.Second: true, time.Minute: false} {
		w, r, env := inHand(t, "na3", 2)
		high := slotAt(w.Clock(2) + ahead)
		leader := r.acceptor.promised.Owner()
		r.onRevoke(env, leader, revoke{Ballot: r.acceptor.promised, Track: 3, High: high})
		if revoked := r.acceptor.track(3).revoked == high; revoked != want {
			t.Errorf("%v ahead: revoked %v", ahead, revoked)
		}
	}
}

// TestACoordinatorIsNotDisturbed: who hears one promises no ballot to another, which may have been
// cut off.
func TestACoordinatorIsNotDisturbed(t *testing.T) {
	_, r, env := inHand(t, "na3", 2)
	before := r.acceptor.promised
	leader := before.Owner()
	if r.leader() != leader || leader == 2 {
		t.Fatalf("replica %d coordinates", leader)
	}
	other := 4 - leader
	r.onPrepare(env, other, prepare{Ballot: kit.NewBallot(before, other)})
	if r.acceptor.promised != before {
		t.Errorf("promised %v, though the coordinator of %v is there", r.acceptor.promised, before)
	}
	r.peers[leader].silent = suspectTicks
	r.onPrepare(env, other, prepare{Ballot: kit.NewBallot(before, other)})
	if r.acceptor.promised != kit.NewBallot(before, other) {
		t.Errorf("promised %v, though the coordinator of it is gone", r.acceptor.promised)
	}
}

// TestHigherBallotReplaces: what is accepted in a higher ballot takes the place of all that was
// accepted for those slots.
func TestHigherBallotReplaces(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 9))
		var c closes
		want := map[smr.Slot]kit.Ballot{}
		for b := kit.Ballot(1); b <= 6; b++ {
			m := closeSlots{Track: shared, Low: smr.Slot(rnd.IntN(20))}
			m.High = m.Low + 1 + smr.Slot(rnd.IntN(10))
			for s := m.Low + 1; s <= m.High; s++ {
				if delete(want, s); rnd.IntN(2) == 0 {
					m.Items = append(m.Items, item{Slot: s, Answer: protocol.ID(b)})
					want[s] = b
				}
			}
			c.accept(b, m)
		}
		got := map[smr.Slot]kit.Ballot{}
		for _, p := range c.parts(shared, 0) {
			for _, i := range p.Items {
				if got[i.Slot] = kit.Ballot(i.Answer); p.Ballot != kit.Ballot(i.Answer) {
					t.Errorf("seed %d: slot %d is told in ballot %v, accepted in %d", seed, i.Slot, p.Ballot, i.Answer)
				}
			}
		}
		if len(got) != len(want) {
			t.Errorf("seed %d: items %v, want %v", seed, got, want)
		}
		for s, b := range want {
			if got[s] != b {
				t.Errorf("seed %d: slot %d has the item of ballot %v, want %v", seed, s, got[s], b)
			}
		}
	}
}

// TestOrderedIsInclusive: a command is told to be ordered when its own slot is settled, not when
// those before it are.
func TestOrderedIsInclusive(t *testing.T) {
	for _, less := range []smr.Slot{0, stride} {
		w, r, env := inHand(t, "na3", 2)
		s := above(slotAt(w.Clock(2))+smr.Slot(200*time.Millisecond), sharedDigit)
		e := kit.Entry{Kind: kit.Command, Client: 77, Session: 1, Seq: 1}
		r.learner.decided.add(item{Slot: s, Answer: 2, Entries: []kit.Entry{e}})
		r.ordered, r.orderedFrom = []watched{{s, 77, 1, []kit.Seq{1}}}, 0
		r.pass(s-less, 1, 2, 3)
		for _, p := range r.peers {
			p.claims.Skipped = s
		}
		r.tellOrdered(env)
		if told := len(env.Out) == 1; told != (less == 0) {
			t.Errorf("all have passed slot %d, the command is in %d: told %v", s-less, s, told)
		}
	}
}

// TestSlowClockHoldsNothingUp: a replica whose clock is behind goes by what a majority has passed,
// so executions do not wait for it.
func TestSlowClockHoldsNothingUp(t *testing.T) {
	w := newWorld(t, setup{preset: "na3", opt: beyond(), clocks: func(id protocol.ID) sim.Clock {
		if id == 3 {
			return sim.Clock{Offset: -700 * time.Millisecond}
		}
		return sim.Clock{}
	}})
	for range 3 {
		w.Done = nil
		w.Call(w.Client("VA"), smr.Call{Kind: smr.Execute, Command: kv.Put([]byte("k"), []byte("v"))})
		w.Run(time.Second)
		if len(w.Done) != 1 || w.Done[0].Took > 250*time.Millisecond {
			t.Errorf("with a clock that is 700 ms behind: %+v", w.Done)
		}
	}
}

// TestClocksThatWereAhead: a majority of clocks is a minute ahead from the start on and then set
// right, with or without a restart of all replicas one by one. Commands and reads do not wait for
// the minute.
func TestClocksThatWereAhead(t *testing.T) {
	for name, opt := range map[string]Options{"domino": thesis(), "domino-direct": beyond()} {
		for _, restart := range []bool{false, true} {
			w := newWorld(t, setup{preset: "na3", opt: opt, clocks: off(time.Minute, 1, 2)})
			w.Run(2 * time.Second)
			w.jump(-time.Minute, 1, 2)
			w.Run(2 * time.Second)
			for id := protocol.ID(1); restart && id <= 3; id++ {
				w.Crash(id, sim.KeepAll)
				w.Run(100 * time.Millisecond)
				w.Restart(id)
				w.Run(2 * time.Second)
			}
			for _, kind := range []smr.CallKind{smr.Execute, smr.Read} {
				w.Done = nil
				c := smr.Call{Kind: kind, Command: kv.Put([]byte("k"), []byte("v"))}
				if kind == smr.Read {
					c.Command = []byte("k")
				}
				w.Call(w.Client("VA"), c)
				w.Run(5 * time.Second)
				if len(w.Done) != 1 || w.Done[0].Took > time.Second {
					t.Errorf("%s, restarted %v, call %v: %+v", name, restart, kind, w.Done)
				}
			}
		}
	}
}

// TestShortSilenceRevokesNothing: a member that is not heard for as long as a lost segment takes,
// two round trips and a half, keeps its slots and the fast path; one that is gone does not.
func TestShortSilenceRevokesNothing(t *testing.T) {
	w := newWorld(t, setup{preset: "na3", opt: thesis()})
	r := w.replica(1)
	w.Crash(2, sim.KeepAll)
	suspected, revoked := false, false
	for range 100 {
		w.Run(5 * time.Millisecond)
		silent := r.peers[2].silent
		suspected = suspected || silent >= 4
		if len(r.coord.revoking) > 0 {
			if revoked = true; silent <= 5 {
				t.Fatalf("slots are revoked after %d ticks", silent)
			}
		}
	}
	if !suspected || !revoked {
		t.Errorf("suspected: %v, revoked: %v", suspected, revoked)
	}
}
