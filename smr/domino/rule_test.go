package domino

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"
)

// The model of one slot of the shared track: acceptors that vote in ballot 0 or pass the slot, and
// coordinators of ballots 1 and 2. What an acceptor is like is six bits.
const (
	mVote   = 3      // in ballot 0: 0 for none yet, then the no-op, and two commands
	mPassed = 1      // the no-op
	mRound  = 3 << 2 // the highest ballot that it promised
	mOne    = 1 << 4 // it accepted what ballot 1's coordinator proposes
	mTwo    = 1 << 5
)

type modelState struct {
	acceptors [5]uint8 // in order: which is which does not matter
	proposals [3]uint8 // of the coordinators, by ballot; like mVote
}

// model explores all states of a slot that acceptors and coordinators can come to.
type model struct {
	rule     rule
	commands int // how many clients use the slot
	choose   func(r rule, votes []int, passed int) choice
	seen     map[modelState]bool
	todo     []modelState
}

// explore returns a state in which two values are decided, if there is one.
func (m *model) explore() (bad modelState, found bool) {
	m.seen = map[modelState]bool{}
	m.add(modelState{})
	for len(m.todo) > 0 {
		s := m.todo[len(m.todo)-1]
		m.todo = m.todo[:len(m.todo)-1]
		if m.decided(s) > 1 {
			return s, true
		}
		m.steps(s)
	}
	return modelState{}, false
}

func (m *model) add(s modelState) {
	slices.Sort(s.acceptors[:m.rule.n])
	if !m.seen[s] {
		m.seen[s] = true
		m.todo = append(m.todo, s)
	}
}

// decided returns how many values are.
func (m *model) decided(s modelState) int {
	n := 0
	for v := uint8(1); v <= 3; v++ {
		count := [3]int{}
		for _, a := range s.acceptors[:m.rule.n] {
			if a&mVote == v {
				count[0]++
			}
			if a&mOne != 0 && s.proposals[1] == v {
				count[1]++
			}
			if a&mTwo != 0 && s.proposals[2] == v {
				count[2]++
			}
		}
		needed := m.rule.command
		if v == mPassed {
			needed = m.rule.noOp
		}
		if count[0] >= needed || count[1] >= m.rule.classic || count[2] >= m.rule.classic {
			n++
		}
	}
	return n
}

func (m *model) steps(s modelState) {
	for i, a := range s.acceptors[:m.rule.n] {
		if i > 0 && s.acceptors[i-1] == a {
			continue
		}
		become := func(a uint8) {
			t := s
			t.acceptors[i] = a
			m.add(t)
		}
		round := a & mRound >> 2
		if a&mVote == 0 {
			for v := uint8(1); v <= uint8(1+m.commands); v++ {
				become(a | v)
			}
		}
		for b := uint8(1); b <= 2; b++ {
			if round < b {
				become(a&^mRound | b<<2)
			}
			if accepted := uint8(mOne) << (b - 1); s.proposals[b] != 0 && round <= b && a&accepted == 0 {
				t := a&^mRound | b<<2 | accepted
				if t&mVote == 0 {
					t |= mPassed // it votes in ballot 0 no more
				}
				become(t)
			}
		}
	}
	for b := uint8(1); b <= 2; b++ {
		if s.proposals[b] == 0 {
			for _, v := range m.proposals(s, b) {
				t := s
				t.proposals[b] = v
				m.add(t)
			}
		}
	}
}

// proposals returns what a ballot's coordinator may propose: any majority that has promised the
// ballot may tell it what was accepted in the one before, and any majority with final votes in
// ballot 0 what these are.
func (m *model) proposals(s modelState, b uint8) []uint8 {
	var out []uint8
	free := false
	for set := range 1 << m.rule.n {
		if bits.OnesCount(uint(set)) < m.rule.classic {
			continue
		}
		promised, accepted := true, false
		for i, a := range s.acceptors[:m.rule.n] {
			if set>>i&1 == 1 {
				promised = promised && a&mRound>>2 >= b
				accepted = accepted || b == 2 && a&mOne != 0
			}
		}
		switch {
		case promised && accepted:
			out = append(out, s.proposals[1])
		case promised:
			free = true
		}
	}
	if !free {
		return out
	}
	for set := range 1 << m.rule.n {
		if v, ok := m.coordinated(s, set); ok && !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}

func (m *model) coordinated(s modelState, set int) (uint8, bool) {
	if bits.OnesCount(uint(set)) < m.rule.classic {
		return 0, false
	}
	votes, passed := make([]int, m.commands), 0
	for i, a := range s.acceptors[:m.rule.n] {
		switch v := a & mVote; {
		case set>>i&1 == 0:
		case v == 0:
			return 0, false
		case v == mPassed:
			passed++
		default:
			votes[v-2]++
		}
	}
	return uint8(m.choose(m.rule, votes, passed) + 2), true
}

func chooseRight(r rule, votes []int, passed int) choice { return r.choose(votes, passed) }

// TestSlotRule explores every state of a slot that two clients use: the rule never lets two values
// be decided, and smaller quorums, or other choices, do.
func TestSlotRule(t *testing.T) {
	for _, n := range []int{3, 5} {
		right := fastPaxos(n)
		m := model{rule: right, commands: 2, choose: chooseRight}
		if bad, found := m.explore(); found {
			t.Errorf("n=%d: two values are decided: %+v", n, bad)
		}
		t.Logf("n=%d: %d states", n, len(m.seen))
		small := right
		small.command--
		for name, m := range map[string]model{
			"a quorum less one":                   {rule: small, commands: 2, choose: chooseRight},
			"a missing vote is one for the no-op": {rule: right, commands: 1, choose: missingIsNoOp},
			"majority, then any":                  {rule: right, commands: 1, choose: majorityOrNoOp},
		} {
			if _, found := m.explore(); !found && (n == 5 || name == "a quorum less one") {
				t.Errorf("n=%d, %s: no state with two values was found", n, name)
			}
		}
	}
}

// missingIsNoOp counts votes that were not heard as ones for the no-op.
func missingIsNoOp(r rule, votes []int, passed int) choice {
	for k, v := range votes {
		if v >= r.classic {
			return choice(k)
		}
	}
	_ = passed
	return noOp
}

// majorityOrNoOp takes what most of those that were heard voted for, and anything if there is no
// such thing: it is what the thesis' prototype does.
func majorityOrNoOp(r rule, votes []int, passed int) choice {
	heard := passed
	for _, v := range votes {
		heard += v
	}
	for k, v := range votes {
		if 2*v > heard && v >= r.classic {
			return choice(k)
		}
	}
	return noOp
}

// TestQuorumsOfOwnedSlots tries all pairs of quorums for slots that belong to one client: safe are
// exactly those of which any two, of different values, share a member with every majority.
func TestQuorumsOfOwnedSlots(t *testing.T) {
	for _, n := range []int{3, 5} {
		classic := n/2 + 1
		var safe []string
		for command := 1; command <= n; command++ {
			for noOp := 1; noOp <= n; noOp++ {
				m := model{rule: rule{n: n, command: command, noOp: noOp, classic: classic}, commands: 1, choose: chooseRight}
				if _, found := m.explore(); !found {
					safe = append(safe, fmt.Sprintf("%d+%d", command, noOp))
				}
			}
		}
		want := map[int][]string{3: {"2+3", "3+2", "3+3"}, 5: {"3+5", "4+4", "4+5", "5+3", "5+4", "5+5"}}[n]
		if !slices.Equal(safe, want) {
			t.Errorf("n=%d: safe are %v, want %v", n, safe, want)
		}
	}
}

// TestClosersAreExact: with so many acceptors that have passed a slot, a command that comes later
// is never decided in it, whatever a coordinator hears; with one less it may be.
func TestClosersAreExact(t *testing.T) {
	for _, r := range []rule{fastPaxos(1), fastPaxos(3), fastPaxos(4), fastPaxos(5), fastPaxos(7),
		{n: 3, command: 2, noOp: 3, classic: 2}, {n: 5, command: 3, noOp: 5, classic: 3}} {
		overtaken := func(closed int) bool {
			for votes := 0; votes <= r.n-closed; votes++ {
				for heard := 0; heard <= votes; heard++ {
					for passed := max(0, r.classic-heard); passed <= r.n-votes; passed++ {
						if votes >= r.command || heard > 0 && r.choose([]int{heard}, passed) != noOp {
							return true
						}
					}
				}
			}
			return false
		}
		if c := r.closers(); overtaken(c) || c > 0 && !overtaken(c-1) {
			t.Errorf("%+v: %d closers: overtaken %v, with one less %v", r, c, overtaken(c), overtaken(c-1))
		}
	}
}

// TestOpenIsExact: a slot is open if there is a way in which those who were not heard can vote that
// decides it.
func TestOpenIsExact(t *testing.T) {
	for n := 1; n <= 7; n++ {
		r := fastPaxos(n)
		for a := 0; a <= n; a++ {
			for b := 0; a+b <= n; b++ {
				for passed := 0; a+b+passed <= n; passed++ {
					unheard, can := n-a-b-passed, false
					for x := 0; x <= unheard; x++ {
						for y := 0; x+y <= unheard; y++ {
							can = can || a+x >= r.command || b+y >= r.command || passed+unheard-x-y >= r.noOp
						}
					}
					if got := r.open([]int{a, b}, passed); got != can {
						t.Errorf("n=%d, votes %d and %d, %d have passed: open %v, want %v", n, a, b, passed, got, can)
					}
				}
			}
		}
	}
}

// TestAcknowledgedAndOvertaken is the counterexample to "f+1 acceptors that have passed the slot
// are enough", with the quorums of owned slots, 2 of 3 for a command. Acceptors 1 and 2 accept A
// and have passed its slot, A is acknowledged, 2 crashes. B begins later, in an earlier slot, and
// reaches acceptor 3 only, whose clock is slow. The coordinator hears 1 and 3. As 2 may have voted
// for B, it must choose B, and B comes before A. With all three, which are the rule's closers, 3
// would not have voted.
func TestAcknowledgedAndOvertaken(t *testing.T) {
	r := rule{n: 3, command: 2, noOp: 3, classic: 2}
	if got := r.choose([]int{1}, 1); got != 0 {
		t.Errorf("the coordinator chooses %d, not B", got)
	}
	if r.closers() != 3 {
		t.Errorf("%d acceptors must have passed the slot, want all", r.closers())
	}
	// DFP with five replicas: a majority is not enough either.
	five := fastPaxos(5)
	if got := five.choose([]int{2}, 1); got != 0 || five.closers() != 4 {
		t.Errorf("two votes and one acceptor that has passed: %d is chosen; %d closers", got, five.closers())
	}
	three := fastPaxos(3)
	if got := three.choose([]int{1}, 1); got != noOp || three.closers() != 2 {
		t.Errorf("one vote and one acceptor that has passed: %d is chosen; %d closers", got, three.closers())
	}
}
