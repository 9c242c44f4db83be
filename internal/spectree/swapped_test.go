package spectree

import (
	"slices"
	"testing"
)

// TestSwappedNames checks that a lane finds a call that took effect under the name of
// another one that did the same before, once, and only where names may be swapped.
func TestSwappedNames(t *testing.T) {
	for _, tt := range []struct {
		name          string
		first, replay []string // what each lane does, in the order of their forks
		shared        bool     // goroutines are known to share the lane that forks
		guesses       bool     // the replay stands on a guess
		calls         []int    // of the replay, lane by lane, from 1; those of the first run come first
		mutation      mutation
	}{
		{"two that swapped", []string{"a", "b"}, []string{"b", "a"}, false, false, []int{2, 1}, sound},
		{"one is gone", []string{"a", "b"}, []string{"b"}, false, false, []int{2}, sound},
		{"an equal one more", []string{"a", "b"}, []string{"b", "b", "a"}, false, false, []int{2, 4, 1}, sound},
		{"nothing is swapped", []string{"", "a"}, []string{"a", "a"}, false, false, []int{3, 1}, sound},
		{"nothing that shows", []string{"", "a"}, []string{"a", ""}, false, false, []int{3}, sound},
		{"goroutines share the lane", []string{"", "a"}, []string{"a", ""}, true, false, []int{1}, sound},
		{"and another one comes", []string{"", "a"}, []string{"a", "a"}, true, false, []int{1, 3}, sound},
		{"on a guess", []string{"a", "b"}, []string{"b", "a"}, true, true, []int{5, 6}, sound},
		{"the rule is gone", []string{"a", "b"}, []string{"b", "a"}, false, false, []int{4, 5}, trustNames},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := replayable
			cfg.mutation = tt.mutation
			s := play(t, cfg)
			s.does(1, tt.first)
			if tt.shared {
				s.Shared(s.lane(1))
			}
			guess := s.read(s.lane(1), "guess", 1)
			s.Answered(guess.Call, Actual)
			if tt.guesses {
				s.read(s.lane(2), "another guess", 1)
			}
			s.skip()
			if got := s.does(2, tt.replay); !slices.Equal(got, tt.calls) {
				t.Errorf("the calls are %v, want %v", got, tt.calls)
			}
		})
	}
}

// does has a lane each write what the list says, if anything, and be answered if it was
// sent. It returns the calls.
func (s *scenario) does(run int, ops []string) (calls []int) {
	var lanes []*Lane
	for range ops {
		lanes = append(lanes, s.Fork(s.lane(run)))
	}
	for i, op := range ops {
		if op == "" {
			continue
		}
		u := s.write(lanes[i], op, Immediate, 0)
		if calls = append(calls, u.Call.ID); u.Call.Confirmed() && u.Answer() == Waiting {
			s.Answered(u.Call, Actual)
		}
	}
	return calls
}
