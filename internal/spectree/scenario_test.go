package spectree

import (
	"slices"
	"strings"
	"testing"
)

// scenario drives a tree step by step.
type scenario struct {
	*testing.T
	*Tree
}

// ample are limits that no scenario reaches.
var ample = Limits{Depth: 32, Width: 4, Replays: 64, Runs: 16}

func play(t *testing.T, cfg Config) *scenario {
	if cfg.Limits == (Limits{}) {
		cfg.Limits = ample
	}
	s := &scenario{t, New(cfg)}
	s.Start()
	return s
}

// replayable is a task whose calls may be predicted.
var replayable = Config{Replayable: true}

// want takes the actions and compares them, as describe words them, and holds
// the tree to its invariants.
func (s *scenario) want(actions ...string) {
	s.Helper()
	var got []string
	for _, a := range s.Take() {
		got = append(got, describe(&a))
	}
	if !slices.Equal(got, actions) {
		s.Errorf("got:\n\t%s\nwant:\n\t%s", strings.Join(got, "\n\t"), strings.Join(actions, "\n\t"))
	}
	if err := s.check(); err != nil {
		s.Error(err)
	}
}

// skip takes the actions without a look at them.
func (s *scenario) skip() {
	s.Helper()
	s.Take()
	if err := s.check(); err != nil {
		s.Error(err)
	}
}

// run returns the live run with this ID.
func (s *scenario) run(id int) *Run {
	s.Helper()
	for _, r := range s.runs {
		if r.ID == id {
			return r
		}
	}
	s.Fatalf("run %d is not alive", id)
	return nil
}

// lane returns the main lane of the live run with this ID.
func (s *scenario) lane(id int) *Lane {
	s.Helper()
	return s.run(id).Main()
}

// read makes a call without side effects.
func (s *scenario) read(l *Lane, op string, predictions int) *Use {
	return s.Call(l, &CallSpec{Op: op, Predictions: predictions})
}

// write makes a call with side effects.
func (s *scenario) write(l *Lane, op string, e Effect, predictions int) *Use {
	return s.Call(l, &CallSpec{Op: op, Effect: e, Predictions: predictions})
}

// answers reports what a run got from its call.
func (s *scenario) answers(u *Use, want int) {
	s.Helper()
	if u.Answer() != want {
		s.Errorf("the answer of call %d is %d, want %d", u.Call.ID, u.Answer(), want)
	}
}

// returned ends a run's goroutine.
func (s *scenario) returned(r *Run) {
	s.Exited(r)
	s.Returned(r)
}
