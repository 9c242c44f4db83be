package tapir

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storedeploy"
)

// TestChoose has a coordinator go by answers of a shard's servers.
func TestChoose(t *testing.T) {
	mine, other := ballot{By: 9}, ballot{By: 8}
	later := ballot{Round: 1, By: 9}
	yes := answer{Vote: prepared, VotedAt: mine}
	before := answer{Vote: prepared, VotedAt: other}
	locked := answer{Vote: abstain, Reason: store.Locked, VotedAt: mine}
	stale := answer{Vote: refused, Reason: store.StaleRead, VotedAt: mine}
	none := answer{}
	took := func(b ballot, yes bool) answer { return answer{Vote: prepared, Accepted: b, Yes: yes} }
	const (
		first = true
		late  = true
	)
	for _, tc := range []struct {
		name        string
		copies      int
		b           ballot
		first, late bool
		answers     []answer
		want        next
		yes         bool
	}{
		{"all of three", 3, mine, first, false, []answer{yes, yes, yes}, goChosen, true},
		{"two of three are no fast quorum", 3, mine, first, false, []answer{yes, yes}, wait, false},
		{"but a majority, if it is late", 3, mine, first, late, []answer{yes, yes}, goAccept, true},
		{"or if the third one is against it", 3, mine, first, false, []answer{yes, yes, locked}, goAccept, true},
		{"unless that has a newer version", 3, mine, first, false, []answer{yes, yes, stale}, goAccept, false},
		{"four of five", 5, mine, first, false, []answer{yes, yes, yes, yes}, goChosen, true},
		{"three of five are no fast quorum", 5, mine, first, false, []answer{yes, yes, yes}, wait, false},
		{"two of three are against it, for good", 3, mine, first, false, []answer{locked, stale}, goChosen, false},
		{"three of five are, but a majority might find two votes", 5, mine, first, false, []answer{locked, locked, stale},
			wait, false},
		{"four of five are, for good", 5, mine, first, false, []answer{locked, locked, stale, stale}, goChosen, false},
		{"votes for another ballot are no fast quorum", 3, later, false, false, []answer{yes, yes, yes}, goAccept, true},
		{"of the first one neither", 3, mine, first, false, []answer{before, before, before}, goAccept, true},
		{"a later ballot finds what a fast quorum may have", 3, later, false, late, []answer{before, before}, goAccept, true},
		{"or cannot have", 3, later, false, late, []answer{before, none}, goAccept, false},
		{"or does not know", 5, later, false, late, []answer{before, before, none}, changeView, false},
		{"a fourth answer may tell", 5, later, false, late, []answer{before, before, none, none}, goAccept, false},
		{"or not", 5, later, false, late, []answer{before, before, before, none}, goAccept, true},
		{"one answer tells nothing", 3, later, false, late, []answer{before}, wait, false},
		{"what is accepted counts", 3, later, false, late, []answer{took(mine, true), none}, goAccept, true},
		{"also against votes", 3, later, false, late, []answer{took(mine, false), before}, goAccept, false},
		{"and the latest", 3, later, false, late, []answer{took(mine, true), took(ballot{Round: 0, By: 10}, false)}, goAccept,
			false},
		{"but a majority has to be asked", 3, later, false, late, []answer{took(mine, true)}, wait, false},
	} {
		p := newPart(storedeploy.Layout(tc.copies, 1), 0)
		for i, a := range tc.answers {
			p.answers[p.group[i]] = a
		}
		if got := p.choose(tc.b, tc.first, tc.late); got != tc.want || p.yes != tc.yes {
			t.Errorf("%s: it does %d with a yes: %v, want %d, %v", tc.name, got, p.yes, tc.want, tc.yes)
		}
	}
}

// TestDone tells when a transaction may be forgotten.
func TestDone(t *testing.T) {
	all3, two := []protocol.ID{11, 21, 31}, []protocol.ID{11, 21}
	all5 := []protocol.ID{11, 21, 31, 41, 51}
	said := func(from protocol.ID, view viewNumber, members []protocol.ID) func(*part) {
		return func(p *part) { p.carry(from, carried{View: view, Members: members}) }
	}
	for _, tc := range []struct {
		name        string
		copies      int
		said        []func(*part)
		done, stuck bool
	}{
		{"nobody has carried it out", 3, nil, false, false},
		{"a member has not", 3, []func(*part){said(11, 0, all3), said(21, 0, all3)}, false, true},
		{"all have", 3, []func(*part){said(11, 0, all3), said(21, 0, all3), said(31, 0, all3)}, true, false},
		{"all members of the latest view have", 3, []func(*part){said(11, 1, two), said(21, 1, two)}, true, false},
		{"but one of them before", 3, []func(*part){said(11, 0, all3), said(21, 0, all3), said(31, 1, all3)}, false, false},
		{"one says it again in a view before", 3, []func(*part){said(11, 1, two), said(21, 0, all3)}, false, false},
		{"of five, all have to be members", 5,
			[]func(*part){said(11, 1, all5[:3]), said(21, 1, all5[:3]), said(31, 1, all5[:3])}, false, false},
		{"as all of five are", 5, []func(*part){said(11, 1, all5), said(21, 1, all5), said(31, 1, all5), said(41, 1, all5),
			said(51, 1, all5)}, true, false},
	} {
		p := newPart(storedeploy.Layout(tc.copies, 1), 0)
		for _, say := range tc.said {
			say(p)
		}
		if p.done() != tc.done || p.stuck() != tc.stuck {
			t.Errorf("%s: done %v, stuck %v; want %v, %v", tc.name, p.done(), p.stuck(), tc.done, tc.stuck)
		}
	}
}

// TestBallots has a coordinator that takes a transaction on again do so with another ballot: with
// the same one it might ask for another result than before.
func TestBallots(t *testing.T) {
	c, err := newCoordinator(store.Config{ID: 10, Layout: storedeploy.Layout(3, 1)})
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
	seen := map[ballot]bool{}
	for range 2 {
		env.Begin(0)
		c.Receive(env, 11, finish{ID: at(5), Shards: []uint32{0}})
		for range maxTries + 1 {
			c.Expire(env, stepTimer{at(5)})
		}
		if len(c.entries) > 0 {
			t.Fatal("it does not give up")
		}
		seen[sent[propose](env)[0].Ballot] = true
	}
	if len(seen) < 2 {
		t.Errorf("its ballots are %v", seen)
	}
}

// TestLastRound: whatever round somebody says that it has promised, a coordinator that is preempted
// goes on with a later ballot, and never in round 0 again, in which votes alone may decide.
func TestLastRound(t *testing.T) {
	for _, by := range []ballot{{Round: 1, By: 1 << 63}, {lastRound - 1, 9}, {lastRound, 9}, {lastRound, math.MaxUint64}} {
		c, err := newCoordinator(store.Config{ID: 10, Layout: storedeploy.Layout(3, 1)})
		if err != nil {
			t.Fatal(err)
		}
		env := protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
		env.Begin(0)
		c.Receive(env, 11, finish{ID: at(5), Shards: []uint32{0}})
		c.Receive(env, 11, answer{ID: at(5), Promised: by})
		env.Begin(0)
		c.Expire(env, againTimer{at(5)})
		all := sent[propose](env)
		if len(all) == 0 {
			t.Fatalf("promised %v: it does not go on", by)
		}
		if b := all[0].Ballot; b.Round == 0 || b.compare(by) <= 0 && by.By < math.MaxUint64 || !all[0].Whole {
			t.Errorf("promised %v: it goes on with %v", by, b)
		}
	}
}
