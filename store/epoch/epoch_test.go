package epoch_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/foresay/foresay/store/epoch"
)

// acceptor is how a test's machines take steps, rightly or not.
type acceptor struct {
	prepare func(*epoch.State, epoch.Ballot) bool
	accept  func(*epoch.State, epoch.Ballot, []byte) bool
	report  func(epoch.State) epoch.State // what a proposer is told
	durable bool
	quorum  func(s epoch.Sites, proposer uint64) epoch.Sites // of which it needs a majority
}

func right() acceptor {
	return acceptor{
		prepare: (*epoch.State).Prepare, accept: (*epoch.State).Accept, durable: true,
		report: func(s epoch.State) epoch.State { return s }, quorum: func(s epoch.Sites, _ uint64) epoch.Sites { return s },
	}
}

// proposer makes ballots for its own change, one after the other, until one is chosen. It may crash
// at any step, and begins anew.
type proposer struct {
	id       uint64
	round    uint64
	want     []byte
	proposal *epoch.Proposal
}

type message struct {
	from    *proposer
	p       *epoch.Proposal
	machine string
	value   []byte // nil: a prepare
}

// play has proposers, which want different things, race in any order, with losses, repeats,
// machines that restart and proposers that crash at each step. It returns how often a value was
// chosen, or an error when two different ones were.
func play(seed uint64, a acceptor) (int, error) {
	r := rand.New(rand.NewPCG(seed, 0))
	sites := [...]epoch.Sites{
		{{"a"}, {"b"}, {"c"}},
		{{"a1", "a2"}, {"b"}, {"c"}},
		{{"a"}, nil, {"c"}}, // b is fenced
		{{"a"}, {"b"}, {"c"}, {"d"}, {"e"}},
	}[seed%4]
	var machines []string
	states := map[string]*epoch.State{}
	for _, site := range sites {
		for _, m := range site {
			machines = append(machines, m)
			states[m] = &epoch.State{}
		}
	}
	proposers := []*proposer{{id: 1, want: []byte("fence b")}, {id: 2, want: []byte("replace c")},
		{id: 3, want: []byte("replace a")}}
	var wire []message
	var chosen []byte
	n := 0
	for range 400 {
		p, k := proposers[r.IntN(len(proposers))], r.IntN(20)
		switch {
		case k == 0 || p.proposal == nil: // it gives up, or crashes, and tries again
			p.round += 1 + r.Uint64N(3)
			p.proposal = epoch.Propose(a.quorum(sites, p.id), epoch.Ballot{Round: p.round, Proposer: p.id}, p.want)
			for _, m := range machines {
				wire = append(wire, message{p, p.proposal, m, nil})
			}
		case k == 1 && !a.durable:
			*states[machines[r.IntN(len(machines))]] = epoch.State{}
		case len(wire) > 0:
			i := r.IntN(len(wire))
			m := wire[i]
			if r.IntN(5) > 0 { // else it arrives again
				wire = append(wire[:i], wire[i+1:]...)
			}
			if r.IntN(6) == 0 {
				continue // it is lost
			}
			s := states[m.machine]
			if m.value == nil {
				_, before := m.p.Value()
				if a.prepare(s, m.p.Ballot) {
					m.p.Promised(m.machine, a.report(*s))
				}
				if value, ok := m.p.Value(); ok && !before {
					for _, to := range machines {
						wire = append(wire, message{m.from, m.p, to, bytes.Clone(value)})
					}
				}
				continue
			}
			if a.accept(s, m.p.Ballot, m.value) {
				m.p.Accepted(m.machine, *s)
			}
			if m.p.Chosen() {
				n++
				if chosen != nil && !bytes.Equal(chosen, m.value) {
					return n, fmt.Errorf("%q was chosen, and %q", chosen, m.value)
				}
				chosen = m.value
			}
		}
	}
	return n, nil
}

// TestOneIsChosen races proposers that want different things.
func TestOneIsChosen(t *testing.T) {
	chosen := 0
	for seed := range uint64(2000) {
		n, err := play(seed, right())
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if n > 0 {
			chosen++
		}
	}
	if chosen < 1500 {
		t.Errorf("something was chosen with %d seeds of 2000", chosen)
	}
}

// TestMutations leaves out one rule at a time.
func TestMutations(t *testing.T) {
	for name, change := range map[string]func(*acceptor){
		"a lower ballot is accepted": func(a *acceptor) {
			a.accept = func(s *epoch.State, b epoch.Ballot, v []byte) bool {
				s.Accepted, s.Value = b, v
				return true
			}
		},
		"a promise brings nothing that was accepted": func(a *acceptor) {
			a.report = func(s epoch.State) epoch.State { return epoch.State{Promised: s.Promised} }
		},
		"what was accepted is not durable": func(a *acceptor) { a.durable = false },
		"one site is enough": func(a *acceptor) {
			a.quorum = func(s epoch.Sites, proposer uint64) epoch.Sites { return s[proposer-1 : proposer] }
		},
		"a promise is not kept": func(a *acceptor) {
			a.prepare = func(s *epoch.State, b epoch.Ballot) bool {
				s.Promised = b
				return true
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := right()
			change(&a)
			for seed := range uint64(2000) {
				if _, err := play(seed, a); err != nil {
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			t.Error("nobody noticed")
		})
	}
}

// TestQuorum is of sites, whose machines all count.
func TestQuorum(t *testing.T) {
	s := epoch.Sites{{"a1", "a2"}, {"b"}, nil}
	for _, x := range []struct {
		in   string
		want bool
	}{{"a1 a2 b", true}, {"a1 b", false}, {"a1 a2", false}, {"b", false}} {
		if got := s.Quorum(func(m string) bool { return bytes.Contains([]byte(x.in), []byte(m)) }); got != x.want {
			t.Errorf("%s: %v, want %v", x.in, got, x.want)
		}
	}
}
